"""A lexicon file as rows that know their place. Knows no language.

A file consists of a header line and tab-separated rows; empty lines and lines that begin with # are skipped.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from endeavour.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a lexicon file, which knows its place for error messages."""

    place: str  # "nouns.tsv, line 4"
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def entry(self, make: Callable[..., T], **computed: object) -> T:
        """An entry with the cells as its fields, except for those that are `computed`."""
        return make(**self.cells | computed)

    def error(self, message: str) -> UserError:
        return UserError(f"{self.place}: {message}")

    def one_of(self, column: str, known: Collection[str]) -> str:
        """The cell, refused if it is not among `known`."""
        cell = self[column]
        if cell not in known:
            raise self.error(f"{column} {cell!r} is unknown; choose {_list(known)}")
        return cell

    def words(
        self, column: str, known: Collection[str] | None = None, separator: str | None = None
    ) -> tuple[str, ...]:
        """The words of the cell, by default separated by spaces; each is refused if it is not among `known`."""
        words = tuple(self[column].split(separator))
        for word in words:
            if known is not None and word not in known:
                # All classes and words of the lexicon would be too long a list.
                choice = f"choose {_list(known)}" if len(known) < 30 else "no entry has this class or name"
                raise self.error(f"{column} {word!r} is unknown; {choice}")
        return words


def _list(known: Iterable[str]) -> str:
    return ", ".join(word or "nothing" for word in sorted(known))


def read_table(path: Path, columns: list[str]) -> list[Row]:
    """The rows of a lexicon file with these columns.

    Raises:
        UserError: the header names other columns, or a row has more or fewer cells than the header.
    """
    rows: list[Row] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        place, cells = f"{path.name}, line {number}", line.split("\t")
        if rows is None:
            rows = []
            if cells != columns:
                raise UserError(f"{place}: the columns should be {' '.join(columns)}, separated by tabs")
        elif len(cells) != len(columns):
            raise UserError(
                f"{place}: {len(cells)} cells, but the header names {len(columns)} columns; "
                "separate the cells by single tabs and leave empty cells empty"
            )
        else:
            rows.append(Row(place, dict(zip(columns, cells, strict=True))))
    return rows or []
