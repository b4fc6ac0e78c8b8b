"""Output rates that reveal a broken model, and which of them are anomalies when compared with the references.

Knows lines of text only, which it compares in their normal form, as models read and write them. Every rate can be taken
of the references too, which shows what is normal for the corpus: names are copied there as well, and some sentences
repeat themselves.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from endeavour.data.normalization import normalize
from endeavour.data.protection import SPAN, lost_spans
from endeavour.evaluation.metrics import check_counts, length_ratio
from endeavour.evaluation.words import words_of

# Words that may be added to either side before a length counts as wrong: "Yes." may be "Aber ja, natürlich."
SLACK = 3
NORMAL_LENGTH = (0.9, 1.1)


@dataclass(frozen=True)
class OutputRates:
    """Shares (0–1) of all outputs, unless stated otherwise, and the overall length ratio."""

    empty: float  # nothing but spaces
    copied: float  # equal to the source line
    repetitive: float  # some 1–4 words three or more times in a row
    too_long: float  # more than 2 × the source's words + SLACK
    too_short: float  # 2 × its words + SLACK are still fewer than the source's; no empty line
    untranslated: float  # of all output words with a letter: those in the source line, same case
    unseen_characters: float | None  # with a character that no target line of the training text has
    lost_spans: float | None  # of the sources' tags, placeholders and addresses those that the output lacks
    length_ratio: float  # output words ÷ reference words, over all lines


def output_flags(source: str, hypothesis: str) -> list[str]:
    """Which of the shares' faults one output has, by the names in `OutputRates`; those that need its source only."""
    output, original = normalize(hypothesis), normalize(source)
    ours, theirs = len(output.split()), len(original.split())
    faults = {
        "empty": not output,
        "copied": bool(output) and output == original,
        "repetitive": _is_repetitive(output.split()),
        "too_long": ours > 2 * theirs + SLACK,
        "too_short": ours > 0 and theirs > 2 * ours + SLACK,
    }
    return [name for name, found in faults.items() if found]


def output_rates(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    known_characters: Collection[str] | None = None,
) -> OutputRates:
    """The rates of `hypotheses`; without `known_characters` there is no share of unseen ones.

    Give the references as hypotheses too, to see what is normal for the corpus. Raises UserError where the
    line counts differ or there are no lines.
    """
    check_counts(sources=sources, hypotheses=hypotheses, references=references)
    sources, outputs, references = (_normalized(lines) for lines in (sources, hypotheses, references))
    flags = Counter(flag for columns in zip(sources, outputs, strict=True) for flag in output_flags(*columns))

    def share(hits: Sequence[bool]) -> float:
        return sum(hits) / max(len(hits), 1)

    unseen = None
    if known_characters is not None:
        known = {*known_characters, " "}
        unseen = share([not known.issuperset(output) for output in outputs])
    return OutputRates(
        empty=flags["empty"] / len(outputs),
        copied=flags["copied"] / len(outputs),
        repetitive=flags["repetitive"] / len(outputs),
        too_long=flags["too_long"] / len(outputs),
        too_short=flags["too_short"] / len(outputs),
        untranslated=share(_in_source(outputs, sources)),
        unseen_characters=unseen,
        lost_spans=_share_lost(sources, outputs),
        length_ratio=length_ratio(outputs, references),
    )


def anomalies(rates: OutputRates, normal: OutputRates, sources: Sequence[str]) -> list[str]:
    """The names of the rates that are not normal, where `normal` are those of the references.

    A share is an anomaly if it exceeds one and a half times theirs by more than two sentences' worth, or that of spans
    by more than two spans: one slip in a small test set is no anomaly. The length ratio is one outside NORMAL_LENGTH.
    """
    low, high = NORMAL_LENGTH
    # Of words two sentences' are the share that two sentences are.
    counts = {"lost_spans": _spans(_normalized(sources))}
    found: list[str] = []
    for name, value in asdict(rates).items():
        if name == "length_ratio":
            if not low <= value <= high:
                found.append(name)
        elif value is not None and value > 1.5 * getattr(normal, name) + 2 / counts.get(name, len(sources)):
            found.append(name)
    return found


def _normalized(lines: Sequence[str]) -> list[str]:
    return [normalize(line) for line in lines]


def _share_lost(sources: Sequence[str], outputs: Sequence[str]) -> float | None:
    """None where the sources have none."""
    spans = _spans(sources)
    lost = sum(len(lost_spans(*columns)) for columns in zip(sources, outputs, strict=True))
    return lost / spans if spans else None


def _spans(sources: Sequence[str]) -> int:
    return sum(len(SPAN.findall(source)) for source in sources)


def _in_source(outputs: Sequence[str], sources: Sequence[str]) -> list[bool]:
    """Of each output word with a letter, whether its source line has it."""
    found: list[bool] = []
    for output, source in zip(outputs, sources, strict=True):
        there = set(words_of(source))
        words = [word for word in words_of(output) if any(mark.isalpha() for mark in word)]
        found += [word in there for word in words]
    return found


def _is_repetitive(words: list[str]) -> bool:
    """Whether some 1–4 words stand three or more times in a row."""
    for period in range(1, 5):
        run = 0  # words in a row that equal the one `period` before
        for word, earlier in zip(words[period:], words, strict=False):
            run = run + 1 if word == earlier else 0
            if run == 2 * period:
                return True
    return False
