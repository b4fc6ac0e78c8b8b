"""What a preparation read, changed, dropped and kept, as Markdown. Pure."""

from typing import Any


def as_markdown(report: dict[str, Any], title: str) -> str:
    """The report of `build` for a reader: a table of steps, one of splits, and examples of each step."""
    lines = [
        f"# {title}",
        "",
        f"Training pairs read: {report['read']:,}; kept: {report['kept']:,}.",
        "Validation and test were neither cleaned nor altered.",
        "",
        "| step | texts changed | pairs dropped |",
        "| --- | ---: | ---: |",
        *(f"| {step['name']} | {step['changed']:,} | {step['dropped']:,} |" for step in report["steps"]),
        "",
        "| split | pairs | source tokens | target tokens |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {split['pairs']:,} | {split['source_tokens']:,} | {split['target_tokens']:,} |"
            for name, split in report["splits"].items()
        ),
    ]
    for step in report["steps"]:
        if step["examples"]:
            lines += ["", f"## {step['name']}", ""]
            lines += [
                "- " + " → ".join(_code(text) for text in example.values()) for example in step["examples"]
            ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if fence == "``" or not text.strip() else f"{fence}{text}{fence}"
