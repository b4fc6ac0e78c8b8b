"""Tables in Markdown, whatever their cells hold."""

from collections.abc import Collection, Iterable, Sequence


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: Collection[int] = (0,)
) -> str:
    """Lines, the last without a line end; the columns `texts` stand on the left, those of numbers on the right."""
    rules = ["---" if number in texts else "---:" for number in range(len(head))]
    lines = [_cells(head), rules, *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Sequence[str]) -> list[str]:
    return [" ".join(cell.replace("|", "\\|").splitlines()) for cell in row]
