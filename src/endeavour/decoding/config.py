"""The settings of a decoding, and which of them describe none. Knows names and numbers alone."""

from dataclasses import dataclass

from endeavour.errors import UserError

ENGINES = ("pytorch", "ctranslate2")
CANDIDATES = ("beam", "sampling")
UTILITIES = ("bleu", "chrf")


@dataclass(kw_only=True)
class DecodingConfig:
    """Values and their meaning: conf/decoding/*.yaml."""

    name: str
    engine: str
    candidates: str
    beam_size: int
    length_penalty: float
    max_length_ratio: float
    max_length_offset: int
    num_hypotheses: int
    sampling_epsilon: float
    utility: str | None
    tokens_per_batch: int

    @property
    def sampled(self) -> bool:
        """Whether hypotheses are drawn, not searched for."""
        return self.candidates == "sampling"

    def check(self) -> None:
        """Raises UserError, naming the key, for values that describe no decoding."""
        _check_choice("engine", self.engine, ENGINES)
        _check_choice("candidates", self.candidates, CANDIDATES)
        if self.utility is not None:
            _check_choice("utility", self.utility, (*UTILITIES, "null"))
        if self.sampled and self.engine != "pytorch":
            raise UserError(
                f"decoding.engine={self.engine} searches and cannot draw decoding.candidates=sampling: "
                "use decoding.engine=pytorch or decoding.candidates=beam"
            )
        check_search(
            self.beam_size,
            self.length_penalty,
            self.max_length_ratio,
            self.max_length_offset,
            1 if self.sampled else self.num_hypotheses,
        )
        check_samples(self.num_hypotheses, self.sampling_epsilon)
        if self.tokens_per_batch < 1:
            raise UserError(f"decoding.tokens_per_batch={self.tokens_per_batch}: must be at least 1")


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
    if length_penalty < 0:
        raise UserError(f"decoding.length_penalty={length_penalty}: must not be negative")
    if ratio < 0 or offset < 0:
        raise UserError(
            f"decoding.max_length_ratio={ratio}, decoding.max_length_offset={offset}: must not be negative"
        )


def check_samples(num_samples: int, epsilon: float) -> None:
    """Raises UserError, naming the key, for numbers with which nothing can be drawn."""
    if num_samples < 1:
        raise UserError(f"decoding.num_hypotheses={num_samples}: must be at least 1")
    if not 0 <= epsilon < 1:
        raise UserError(f"decoding.sampling_epsilon={epsilon}: a probability, from 0 to below 1")


def _check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"decoding.{key}={value}: choose one of {', '.join(choices)}")
