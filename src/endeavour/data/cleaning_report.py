"""What a preparation or a filter read, changed, dropped and kept, as Markdown. Pure."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from endeavour.data.cleaning import visible
from endeavour.data.corpus import RARE
from endeavour.data.scored_pairs import Selection

Steps = Sequence[dict[str, Any]]


def as_markdown(report: dict[str, Any], title: str) -> str:
    """The report of `build` for a reader: a table of steps, one of splits, and examples of each step."""
    lines = [
        f"# {title}",
        "",
        f"Training pairs read: {report['read']:,}; kept: {report['kept']:,}.",
        "Validation and test were not cleaned.",
        *([f"{RARE} was taken from the clean training pairs."] if RARE in report["splits"] else []),
        "",
        *_table(report["steps"]),
        "",
        "| split | pairs | source tokens | target tokens |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {split['pairs']:,} | {split['source_tokens']:,} | {split['target_tokens']:,} |"
            for name, split in report["splits"].items()
        ),
        *_parts(report.get("parts", {})),
        *_copies(report.get("copies", [])),
        *_examples([*report["steps"], *report.get("copies", [])]),
    ]
    return "\n".join(lines) + "\n"


def filter_as_markdown(report: dict[str, Any], selection: Selection, title: str) -> str:
    """The report of `endeavour filter`: a table of steps, the scores to choose a limit by, and examples."""
    steps = [*report["steps"], asdict(selection.step)]
    tenths = len(selection.deciles)
    lines = [
        f"# {title}",
        "",
        f"Pairs read: {report['read']:,}; scored: {selection.pairs:,}; kept: {selection.kept:,}.",
        "",
        *_table(steps),
        "",
        "| best | score down to | a pair of that score |",
        "| ---: | ---: | --- |",
        *(
            f"| {number / tenths:.0%} | {score:.3g} | {' → '.join(_cell(visible(text)) for text in pair)} |"
            for number, (score, pair) in enumerate(selection.deciles, start=1)
        ),
        *_examples(steps),
    ]
    return "\n".join(lines) + "\n"


def _parts(parts: dict[str, dict[str, Any]]) -> list[str]:
    """A table of the parts of the training split, and what each step did to each of them."""
    if not parts:
        return []
    lines = [
        "",
        "| part of train | read | pairs | source tokens | target tokens |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {part['read']:,} | {part['pairs']:,} | {part['source_tokens']:,} | {part['target_tokens']:,} |"
            for name, part in parts.items()
        ),
    ]
    for name, part in parts.items():
        lines += ["", f"## Part {name}", "", *_table(part["steps"])]
    return lines


def _copies(steps: Steps) -> list[str]:
    """Of the altered copies how many were added."""
    if not steps:
        return []
    rows = (f"| {step['name']} | {step['changed']:,} | {step['dropped']:,} |" for step in steps)
    head = [
        "| copies of training pairs | added | too long, or in validation or test |",
        "| --- | ---: | ---: |",
    ]
    return ["", "Pairs of train, in the table above, include altered copies:", "", *head, *rows]


def _table(steps: Steps) -> list[str]:
    rows = (f"| {step['name']} | {step['changed']:,} | {step['dropped']:,} |" for step in steps)
    return ["| step | texts changed | pairs dropped |", "| --- | ---: | ---: |", *rows]


def _examples(steps: Steps) -> list[str]:
    lines: list[str] = []
    for step in steps:
        if step["examples"]:
            lines += ["", f"## {step['name']}", ""]
            lines += [
                "- " + " → ".join(_code(text) for text in example.values()) for example in step["examples"]
            ]
    return lines


def _cell(text: str) -> str:
    """In a table, where a bar would end the cell even within code."""
    return _code(text.replace("|", "\\|"))


def _code(text: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text or not text.strip() else f"{fence}{text}{fence}"
