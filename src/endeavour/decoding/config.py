"""The settings of a decoding, and which of them describe none. Knows names and numbers alone."""

import math
from dataclasses import dataclass

from endeavour.errors import UserError

ENGINES = ("pytorch", "ctranslate2")
PRECISIONS = ("fp32", "bf16")
UTILITIES = ("bleu", "chrf")
# What the keys of sampling are where nothing is drawn.
UNSAMPLED = {"temperature": 1.0, "top_k": None, "epsilon": 0.0, "seed": 1}
LARGEST_PENALTY = (
    10  # of length; 2 already takes the longest there is, and some hundreds leave the range of numbers
)


@dataclass(kw_only=True)
class DecodingConfig:
    """Values and their meaning: conf/decoding/*.yaml."""

    name: str
    engine: str
    precision: str
    beam_size: int
    length_penalty: float
    max_length_ratio: float
    max_length_offset: int
    num_hypotheses: int
    sampling: bool
    temperature: float
    top_k: int | None
    epsilon: float
    seed: int
    utility: str | None
    tokens_per_batch: int

    def check(self) -> None:
        """Raises UserError, naming the key, for values that describe no decoding."""
        if not self.name or set(self.name) & set("/\\") or self.name in (".", ".."):
            raise UserError(f"decoding.name={self.name!r} must name a folder, without / or \\")
        _check_choice("engine", self.engine, ENGINES)
        _check_choice("precision", self.precision, PRECISIONS)
        if self.precision != "fp32" and self.engine != "pytorch":
            raise UserError(
                f"decoding.precision={self.precision} needs decoding.engine=pytorch: set fp32, an export has a "
                "quantization=… instead"
            )
        if self.utility not in (None, *UTILITIES):
            raise UserError(f"decoding.utility={self.utility}: choose one of {', '.join(UTILITIES)}, null")
        if self.sampling:
            self._check_sampling()
        else:
            self._refuse_of_sampling()
        check_search(
            self.num_hypotheses if self.sampling else self.beam_size,
            self.length_penalty,
            self.max_length_ratio,
            self.max_length_offset,
            self.num_hypotheses,
        )
        if self.utility is not None and self.num_hypotheses < 2:
            raise UserError(
                f"decoding.utility={self.utility} chooses among decoding.num_hypotheses={self.num_hypotheses}: "
                "ask for two or more, or for decoding=mbr"
            )
        if self.tokens_per_batch < 1:
            raise UserError(f"decoding.tokens_per_batch={self.tokens_per_batch}: must be at least 1")

    def _check_sampling(self) -> None:
        if self.engine != "pytorch":
            raise UserError(f"decoding.sampling=true needs decoding.engine=pytorch: {self.engine} searches")
        if self.beam_size != 1:
            raise UserError(
                f"decoding.beam_size={self.beam_size}: sampling searches nothing; how many translations are drawn is "
                "decoding.num_hypotheses"
            )
        if self.num_hypotheses < 1:
            raise UserError(f"decoding.num_hypotheses={self.num_hypotheses}: must be at least 1")
        if not 1e-6 <= self.temperature <= 1e6:  # what lies beyond, float32 cannot divide by
            raise UserError(f"decoding.temperature={self.temperature}: must be from 0.000001 to 1000000")
        if self.top_k is not None and self.top_k < 1:
            raise UserError(f"decoding.top_k={self.top_k}: must be at least 1, or null")
        if not 0 <= self.epsilon < 1:
            raise UserError(f"decoding.epsilon={self.epsilon}: must be from 0 to below 1")
        if not 0 <= self.seed < 2**63:
            raise UserError(f"decoding.seed={self.seed}: must be from 0 to below 2^63")

    def _refuse_of_sampling(self) -> None:
        """Raises UserError for what a search does not read."""
        for key, value in UNSAMPLED.items():
            if getattr(self, key) != value:
                raise UserError(f"decoding.{key}={getattr(self, key)} is for sampling: add decoding=sample")


def check_search(
    beam_size: int, length_penalty: float, ratio: float, offset: int, num_hypotheses: int
) -> None:
    """Raises UserError, naming the key, for numbers that describe no beam search."""
    if beam_size < 1:
        raise UserError(f"decoding.beam_size={beam_size}: must be at least 1 (1 is greedy)")
    if not 1 <= num_hypotheses <= beam_size:
        raise UserError(
            f"decoding.num_hypotheses={num_hypotheses}: must lie from 1 to decoding.beam_size={beam_size}"
        )
    numbers = {"length_penalty": length_penalty, "max_length_ratio": ratio, "max_length_offset": offset}
    for key, value in numbers.items():
        if not 0 <= value < math.inf:  # nor NaN
            raise UserError(f"decoding.{key}={value}: must be a number that is not negative")
    if length_penalty > LARGEST_PENALTY:
        raise UserError(f"decoding.length_penalty={length_penalty}: at most {LARGEST_PENALTY}")


def _check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"decoding.{key}={value}: choose one of {', '.join(choices)}")
