"""What a preparation or a filter read, changed, dropped and kept, as Markdown. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from endeavour.data.cleaning import visible
from endeavour.data.corpus import RARE
from endeavour.data.denoising import MASKING
from endeavour.data.scored_pairs import Selection
from endeavour.markdown import markdown_table

Steps = Sequence[dict[str, Any]]

COUNTS = ("pairs", "source_tokens", "target_tokens")  # of a split


def as_markdown(report: dict[str, Any], title: str) -> str:
    """The report of `build` for a reader: a table of steps, one of splits, and examples of each step."""
    masked = any(step["name"] == MASKING for step in report["steps"])
    lines = [
        f"# {title}",
        "",
        f"Training pairs read: {report['read']:,}; kept: {report['kept']:,}.",
        f"Validation and test were {'masked, but not otherwise' if masked else 'not'} cleaned.",
        *([f"{RARE} was taken from the clean training pairs."] if RARE in report["splits"] else []),
        "",
        _steps(report["steps"]),
        "",
        split_table(report["splits"]),
        *_parts(report.get("parts", {})),
        *_copies(report.get("copies", [])),
        *_examples([*report["steps"], *report.get("copies", [])]),
    ]
    return "\n".join(lines) + "\n"


def filter_as_markdown(report: dict[str, Any], selection: Selection, title: str) -> str:
    """The report of `endeavour filter`: a table of steps, the scores to choose a limit by, and examples."""
    steps = [*report["steps"], asdict(selection.step)]
    deciles = [
        [
            f"{number / len(selection.deciles):.0%}",
            f"{score:g}",
            " → ".join(_code(visible(text)) for text in pair),
        ]
        for number, (score, pair) in enumerate(selection.deciles, start=1)
    ]
    lines = [
        f"# {title}",
        "",
        f"Pairs read: {report['read']:,}; scored: {selection.pairs:,}; kept: {selection.kept:,}.",
        "",
        _steps(steps),
        "",
        markdown_table(("best", "score down to", "a pair of that score"), deciles, texts=(2,)),
        *_examples(steps),
    ]
    return "\n".join(lines) + "\n"


def split_table(
    splits: Mapping[str, Mapping[str, Any]], *, what: str = "split", counts: Sequence[str] = COUNTS
) -> str:
    """Pairs and tokens of each split, or of other text."""
    head = (what, *(count.replace("_", " ") for count in counts))
    return markdown_table(head, ([name, *_numbers(split, counts)] for name, split in splits.items()))


def _parts(parts: dict[str, dict[str, Any]]) -> list[str]:
    """A table of the parts of the training split, and what each step did to each of them."""
    if not parts:
        return []
    lines = ["", split_table(parts, what="part of train", counts=("read", *COUNTS))]
    for name, part in parts.items():
        lines += ["", f"## Part {name}", "", _steps(part["steps"])]
    return lines


def _copies(steps: Steps) -> list[str]:
    """Of the altered copies how many were added."""
    if not steps:
        return []
    head = ("copies of training pairs", "added", "too long, or in validation or test")
    return ["", "Pairs of train, in the table above, include altered copies:", "", _steps(steps, head)]


def _steps(steps: Steps, head: Sequence[str] = ("step", "texts changed", "pairs dropped")) -> str:
    return markdown_table(head, ([step["name"], *_numbers(step, ("changed", "dropped"))] for step in steps))


def _numbers(counted: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [f"{counted[key]:,}" for key in keys]


def _examples(steps: Steps) -> list[str]:
    lines: list[str] = []
    for step in steps:
        if step["examples"]:
            lines += ["", f"## {step['name']}", ""]
            lines += [
                "- " + " → ".join(_code(text) for text in example.values()) for example in step["examples"]
            ]
    return lines


def _code(text: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text or not text.strip() else f"{fence}{text}{fence}"
