"""The settings of decoding. Knows names and numbers, neither models nor text."""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from endeavour.settings import STRICT

# The values of the keys of sampling where nothing is drawn.
UNSAMPLED = {"temperature": 1.0, "top_k": None, "epsilon": 0.0, "seed": 1}

CHANGE_NO_SEARCH = ("tokens_per_batch", "cuda_graphs")  # keys; samples depend on their batch
# Bytes of a decoding's name, and characters of a test set's: both are parts of folders' names, with those of an export
# and of an ensemble's runs.
LONGEST_NAME = 50
MOST = 10**6  # beyond which a number is a mistake, and soon out of the range of tensors

# How an export stores its weights; computed is in the same type where the device can, in float32 (or int8 with it)
# elsewhere.
Quantization = Literal["int8", "int8_float16", "int8_bfloat16", "float16", "bfloat16", "float32"]

Count = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(kw_only=True, config=STRICT)
class DecodingConfig:
    """Values and their meaning: conf/decoding/*.yaml."""

    name: str
    engine: Literal["pytorch", "ctranslate2"]
    quantization: Quantization | None
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    beam_size: Count
    # 2 already prefers the longest hypotheses; some hundreds exceed the range of numbers.
    length_penalty: Annotated[float, Field(ge=0, le=10)]
    max_length_ratio: Annotated[float, Field(ge=0, le=1000)]  # 1e308 × a length exceeds the range of numbers
    max_length_offset: Annotated[int, Field(ge=0, le=MOST)]
    num_hypotheses: Count
    sampling: bool
    temperature: Annotated[float, Field(ge=1e-6, le=1e6)]  # float32 cannot divide by others
    top_k: PositiveInt | None
    epsilon: Annotated[float, Field(ge=0, lt=1)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    utility: Literal["bleu", "chrf"] | None
    backward: str | None
    backward_weight: Annotated[float, Field(ge=0, le=1000)]
    split_sentences: bool
    tag: str | None
    tokens_per_batch: PositiveInt
    cuda_graphs: bool

    @model_validator(mode="after")
    def _check_keys_together(self) -> Self:
        self._check_name()
        if self.engine != "pytorch" and self.precision in ("bf16", "fp16"):
            raise ValueError(
                f"decoding.precision={self.precision} needs decoding.engine=pytorch: set fp32; an export has a "
                "decoding.quantization instead"
            )
        if self.engine == "pytorch" and self.quantization is not None:
            raise ValueError(
                f"decoding.quantization={self.quantization} is of an export: add decoding.engine=ctranslate2, or "
                "set null"
            )
        if self.sampling:
            self._check_sampling()
        else:
            self._check_search()
        self._check_choice()
        return self

    @property
    def export_quantization(self) -> Quantization:
        """Of the export that CTranslate2 reads."""
        return self.quantization or "int8"

    @property
    def chooses(self) -> bool:
        """Whether the hypotheses are candidates, of which the translation is not simply the most probable one."""
        return self.utility is not None or self.backward is not None

    @property
    def drawn(self) -> bool:
        """Whether the translations are samples, and not the best of them."""
        return self.sampling and not self.chooses

    def _check_choice(self) -> None:
        if self.utility is not None and self.backward is not None:
            raise ValueError(
                f"decoding.utility={self.utility} and decoding.backward both choose: set one null"
            )
        if self.chooses and self.num_hypotheses < 2:
            key, option = ("backward", "reranked") if self.utility is None else ("utility", "mbr")
            raise ValueError(
                f"decoding.{key}={getattr(self, key)} chooses among decoding.num_hypotheses={self.num_hypotheses}: "
                f"set two or more, or decoding={option}"
            )
        if self.backward is not None and self.engine != "pytorch":
            raise ValueError(f"decoding.backward={self.backward} needs decoding.engine=pytorch")

    def _check_name(self) -> None:
        is_folder = (
            self.name.isprintable() and not set(self.name) & set("/\\") and self.name not in ("", ".", "..")
        )
        if not is_folder or len(self.name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"decoding.name={self.name[:LONGEST_NAME]!r} must be a folder name of at most {LONGEST_NAME} bytes, "
                "without / or \\"
            )
        if any(f"-{word}-" in f"{self.name}-" for word in ("with", "ctranslate2")):
            raise ValueError(
                f"decoding.name={self.name!r}: -with- and -ctranslate2- tell ensembles and exports apart; choose "
                "another name"
            )

    def _check_sampling(self) -> None:
        if self.engine != "pytorch":
            raise ValueError(
                f"decoding.sampling=true needs decoding.engine=pytorch: {self.engine} cannot sample"
            )
        if self.beam_size != 1:
            raise ValueError(
                f"decoding.beam_size={self.beam_size}: sampling needs 1; decoding.num_hypotheses says how many "
                "translations are drawn"
            )

    def _check_search(self) -> None:
        for key, value in UNSAMPLED.items():
            if getattr(self, key) != value:
                raise ValueError(f"decoding.{key}={getattr(self, key)} is for sampling: add decoding=sample")
        if self.num_hypotheses > self.beam_size:
            raise ValueError(
                f"decoding.num_hypotheses={self.num_hypotheses}: at most decoding.beam_size={self.beam_size}"
            )
