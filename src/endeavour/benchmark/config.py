"""What a benchmark measures, and how often. Knows neither machines nor measurements."""

import re
import shlex
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)
from pydantic.dataclasses import dataclass

from endeavour.settings import STRICT, ShareBelow1

OURS = "endeavour"  # the name of our own rows

NonEmpty = Field(min_length=1)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$")]  # a part of files' and folders' names


def _has_program(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"not a command ({error})") from error
    if not words:
        raise ValueError("names no program")
    return command


Command = Annotated[str, AfterValidator(_has_program)]


@dataclass(kw_only=True, config=STRICT)
class BenchSize:
    """The numbers of a model that its cost depends on; all others are those of `model`."""

    name: Name
    encoder_layers: int
    decoder_layers: int
    width: int
    num_heads: int
    feed_forward: int


@dataclass(kw_only=True, config=STRICT)
class Peer:
    """Another toolkit, in an environment of its own. Values and their meaning: conf/bench/peers/fairseq.yaml."""

    environment: str | None
    precision: Literal["fp32", "bf16"]
    device: dict[str, str]
    files: dict[str, str]
    prepare: list[Command]
    train: Command
    rate: str
    counts: Literal["target_tokens", "pairs"]

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            groups = re.compile(self.rate).groups
        except re.error as error:
            raise ValueError(f"rate={self.rate}: not a regular expression ({error})") from error
        if groups != 1:
            raise ValueError(f"rate={self.rate}: one group in brackets is the number")
        return self


@dataclass(kw_only=True, config=STRICT)
class BenchConfig:
    """Values and their meaning: conf/bench/default.yaml."""

    parts: list[
        Literal[
            "training",
            "decoding",
            "data",
            "startup",
            "growth",
            "scale",
            "playground",
            "serving",
            "peers",
            "epochs",
        ]
    ]
    sizes: Annotated[list[str], NonEmpty]
    known_sizes: list[BenchSize]
    references: list[Literal["torch", "huggingface", "ctranslate2"]]
    peers: dict[Name, Peer]
    precisions: Annotated[list[Literal["fp32", "bf16", "fp16"]], NonEmpty]
    repeats: PositiveInt
    tokens_per_batch: PositiveInt
    compile: Literal["auto", "always", "never"]
    cuda_graphs: Literal["auto", "always", "never"]
    label_smoothing: ShareBelow1
    clip_norm: PositiveFloat | None
    optimizer: Literal["adam", "muon"]
    learning_rate: PositiveFloat
    adam_beta1: ShareBelow1
    adam_beta2: ShareBelow1
    adam_epsilon: PositiveFloat
    weight_decay: NonNegativeFloat
    warmup_updates: NonNegativeInt
    updates: PositiveInt
    epoch_updates: PositiveInt
    beam_sizes: Annotated[list[PositiveInt], NonEmpty]
    decoding_sentences: PositiveInt
    decoding_tokens: Annotated[int, Field(ge=2)]
    decoding_batches: Annotated[list[Annotated[int, Field(ge=2)]], NonEmpty]
    latency_sentences: PositiveInt
    growth_tokens: PositiveInt
    growth_batches: Annotated[list[PositiveInt], NonEmpty]
    growth_widths: Annotated[list[PositiveInt], NonEmpty]
    scale_pairs: PositiveInt
    peer_minutes: PositiveFloat
    played_run: str | None
    played_repeats: PositiveInt
    serving_clients: Annotated[list[PositiveInt], NonEmpty]
    serving_seconds: PositiveFloat
    profile: bool

    def size(self, name: str) -> BenchSize:
        """The size of that name."""
        return next(size for size in self.known_sizes if size.name == name)

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = [size.name for size in self.known_sizes]
        for name in self.sizes:
            if name not in known:
                raise ValueError(f"bench.sizes: {name} is not a size; choose from {', '.join(known)}")
        if self.warmup_updates > self.updates:
            raise ValueError(
                f"bench.warmup_updates={self.warmup_updates}: from 0 to bench.updates={self.updates}"
            )
        if "peers" in self.parts and not any(peer.environment for peer in self.peers.values()):
            raise ValueError("bench.parts: peers need bench.peers.NAME.environment=FOLDER of at least one")
        if not self.parts and not self.profile:
            raise ValueError("bench.parts is empty: name at least one, or set bench.profile=true")
        return self
