"""A test set, wherever it is from. Knows its lines; not what is translated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class EvaluationSet:
    """Lines to translate and to score against: untouched, but that each is `one_line`.

    Attributes:
        tokenized_references: as papers score them, from a file.
        labels: of each sentence, by what they are: domain, document …
        standard: sacreBLEU's name of it.
        copy_of: the test set of which this one is an altered copy.
    """

    name: str
    sources: list[str]
    references: list[str]
    tokenized_references: list[str] | None = None
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    standard: str | None = None
    copy_of: str | None = None


def one_line(text: str) -> str:
    """A sentence as one line to every reader of its file, to some of which `\\n` is not the only end of a line.

    No metric sees the difference.
    """
    return " ".join(text.splitlines())
