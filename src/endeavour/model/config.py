"""The settings of a model. Knows names and numbers; no tensors."""

from typing import Literal, Self

from pydantic import PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from endeavour.settings import STRICT, ShareBelow1


@dataclass(kw_only=True, config=STRICT)
class ModelConfig:
    """Values and their meaning: conf/model/*.yaml."""

    name: str
    width: PositiveInt
    encoder_layers: PositiveInt
    decoder_layers: PositiveInt
    num_heads: PositiveInt
    feed_forward: PositiveInt
    activation: Literal["relu", "gelu", "silu", "swiglu"]
    norm: Literal["pre", "post"]
    positions: Literal["sinusoidal", "learned", "rotary"]
    max_length: PositiveInt
    tie: Literal["none", "decoder", "all"]
    dropout: ShareBelow1
    attention_dropout: ShareBelow1
    activation_dropout: ShareBelow1
    embedding_dropout: ShareBelow1

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.width % self.num_heads:
            raise ValueError(
                f"model.width={self.width} is not a multiple of model.num_heads={self.num_heads}"
            )
        if self.positions == "rotary" and self.width // self.num_heads % 2:
            raise ValueError("model.positions=rotary needs an even number of model.width / model.num_heads")
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError("model.positions=sinusoidal needs an even model.width")
        return self
