"""Size, speed and BLEU of one model's exports beside PyTorch, as a table. Knows what was measured, not how."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from endeavour.export.parity import Parity


@dataclass(frozen=True, kw_only=True)
class Written:
    """One export: its folder's name, the bytes of its largest file, and its comparison with the model."""

    name: str
    size: int
    parity: Parity


def size_of_model(folder: Path) -> int:
    """Bytes of the weights in an exported folder, or of the package that holds them."""
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def format_table(exports: Sequence[Written]) -> Table:
    """A row an export; narrow enough for a screen of 80 columns."""
    sentences = exports[0].parity.sentences
    legend = (
        f"\nspeed: of PyTorch's; BLEU: of {sentences} validation sentences, and its difference from PyTorch's; same: "
        "translations that are PyTorch's"
    )
    table = Table(box=None, pad_edge=False, caption=legend, caption_justify="left")
    table.add_column("export", no_wrap=True)
    for column in ("MB", "speed", "BLEU", "", "same"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("computes in", no_wrap=True)
    for export in exports:
        parity = export.parity
        table.add_row(
            export.name,
            f"{export.size / 1e6:.1f}",
            f"{parity.speed:.2f}",
            f"{parity.bleu_exported:.2f}",
            f"{parity.bleu_difference:+.2f}",
            str(parity.identical),
            parity.compute_type,
        )
    return table
