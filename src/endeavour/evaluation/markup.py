"""What the HTML and Markdown reports share: tables, escaping, the page around its parts and its look.

Knows text only: no scores, runs or files. A page needs no scripts, fonts or images from elsewhere.
"""

from collections.abc import Collection, Sequence
from html import escape


def html_page(title: str, parts: Sequence[str]) -> str:
    """A whole page of HTML `parts`; `title` is plain text."""
    head = [
        "<!doctype html>",
        f"<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<style>{STYLE}</style></head><body>",
    ]
    return "\n".join([*head, *parts, "</body></html>", ""])


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    flagged: Collection[tuple[int, int]] = (),
    numeric: Collection[int] = (),
) -> str:
    """A table of plain text; the cells at the (row, column) of `flagged` stand out, `numeric` columns are aligned."""

    def cells(tag: str, texts: Sequence[str], row: int) -> str:
        made = ""
        for column, text in enumerate(texts):
            classes = ["flag"] * ((row, column) in flagged) + ["number"] * (column in numeric)
            attribute = f" class='{' '.join(classes)}'" if classes else ""
            made += f"<{tag}{attribute}>{escape(text)}</{tag}>"
        return f"<tr>{made}</tr>"

    body = "".join(cells("td", texts, row) for row, texts in enumerate(rows))
    top = cells("th", head, -1)
    return f"<div class='wide'><table><thead>{top}</thead><tbody>{body}</tbody></table></div>"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]<>|~#$&" else mark for mark in text)
    return " ".join(escaped.splitlines())


STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #66727f; --page: #fbfbf9; --card: #fff;
  --line: #dfe3e6; --bar: #2b7a9e; --all: #c2571a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #98a4b0; --page: #15191d;
  --card: #1e2429; --line: #343c44; --bar: #5fb0d3; --all: #eb9660; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; } p, small, dt { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.card, article { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem 1rem; }
.card { flex: 1 1 8rem; } .card h3 { margin: 0; font-size: .85rem; font-weight: 500; }
.card b { display: block; font-size: 1.9rem; line-height: 1.3; } article { margin: .6rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; vertical-align: top; }
td:last-child { overflow-wrap: anywhere; } td:not(:last-child) { white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } summary { cursor: pointer; font-weight: 600; margin-top: 1rem; }
dl { display: grid; grid-template-columns: 6.5rem 1fr; gap: .15rem .5rem; margin: .3rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; } small { font-size: .8rem; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--ink); text-anchor: middle; stroke: var(--page); stroke-width: 3;
  paint-order: stroke; }
svg text.soft { fill: var(--soft); }
svg text.end { text-anchor: end; } svg text.start { text-anchor: start; }
.two dl { grid-template-columns: minmax(6.5rem, 11rem) 1fr; } dt { overflow-wrap: anywhere; }
del, ins { text-decoration: none; border-radius: 3px; padding: 0 .15em; } em { color: var(--soft); }
del { background: color-mix(in srgb, var(--all) 22%, transparent); }
ins { background: color-mix(in srgb, var(--bar) 25%, transparent); }
.bar { fill: var(--bar); }
.number { text-align: right; } .legend span { margin-right: 1rem; } .legend { color: var(--ink); }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
.run0 { fill: var(--soft); background: var(--soft); } .run1 { fill: var(--bar); background: var(--bar); }
.run2 { fill: var(--all); background: var(--all); } .run3 { fill: #7a5fa8; background: #7a5fa8; }
.run4 { fill: #4f9a57; background: #4f9a57; } .run5 { fill: #b8963a; background: #b8963a; }
.flag { color: var(--all); font-weight: 600; }
.thin { opacity: .4; } .grid { stroke: var(--line); }
.all { stroke: var(--all); stroke-dasharray: 5 4; } .frame { fill: none; stroke: var(--line); }
"""
