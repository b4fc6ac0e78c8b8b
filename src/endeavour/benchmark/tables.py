"""What was measured, as tables for the screen and for report.md. Knows rows and units, not how they are measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from endeavour.markdown import markdown_table

Row = Mapping[str, Any]


class Column(NamedTuple):
    """A heading, and the cell of a row below it.

    Attributes:
        short: the same for the screen, where columns are narrow; None leaves the column out there.
        right: whether the column is aligned right.
    """

    heading: str
    cell: Callable[[Row], str]
    short: Callable[[Row], str] | None
    right: bool


def _text(heading: str, key: str) -> Column:
    def cell(row: Row) -> str:
        return str(row[key])

    return Column(heading, cell, cell, right=False)


def _number(
    heading: str, key: str, form: str = ",.0f", *, scale: float = 1, none: str = "–", screen: bool = True
) -> Column:
    def cell(row: Row) -> str:
        return none if row[key] is None else format(row[key] * scale, form)

    return Column(heading, cell, cell if screen else None, right=True)


def _rate(heading: str, key: str) -> Column:
    """The median, and in a file the lowest and the highest of the turns in brackets."""

    def figure(row: Row, which: str) -> str:
        return format(row[key][which], ",.0f" if row[key]["median"] >= 20 else ".2f")

    def cell(row: Row) -> str:
        return f"{figure(row, 'median')} ({figure(row, 'lowest')}–{figure(row, 'highest')})"

    def median(row: Row) -> str:
        return figure(row, "median")

    return Column(heading, cell, median, right=True)


def _compiled_again(row: Row) -> str:
    return str(len(row["recompilations"]))


MEGA, GIGA = 1e-6, 1e-9

# What torch.compile did, as `host_costs.compiled_so_far` has it.
COMPILED = [
    _number("graphs", "graphs", "d", screen=False),
    _number("graph breaks", "graph_breaks", "d", screen=False),
    Column("compiled again", _compiled_again, None, right=True),
]

# Part → title and columns, in the order of the report.
TABLES: dict[str, tuple[str, list[Column]]] = {
    "precision": (
        "What precision=auto is here",
        [
            _text("size", "size"),
            _text("what", "what"),
            _text("precision", "precision"),
            _text("why", "reason"),
        ],
    ),
    "training": (
        "Training",
        [
            _text("size", "size"),
            _text("toolkit", "toolkit"),
            _text("precision", "precision"),
            _number("parameters", "parameters", ",d", screen=False),
            _rate("target tokens/s", "target_tokens_per_second"),
            _rate("all tokens/s", "tokens_per_second"),
            _number("ms per update", "milliseconds_per_update"),
            _number("padding", "padding", ".1%"),
            _number("model GFLOP/s", "flop_per_second", ",.1f", scale=GIGA),
            _number("of matrix product", "share_of_product", ".0%"),
            _number("peak GB", "peak_memory", ".2f", scale=GIGA),
            _number("first update, s", "first_update_seconds", ".1f", screen=False),
            *COMPILED,
            _number("waits an update", "waits_per_update", ".1f", screen=False),
        ],
    ),
    "epochs": (
        "Training over epochs",
        [
            _text("size", "size"),
            _text("precision", "precision"),
            _number("tokens/s, first epoch", "first_epoch_tokens_per_second"),
            _number("second epoch", "second_epoch_tokens_per_second"),
            _rate("repeated batches", "repeated_tokens_per_second"),
            _number("second by repeated", "second_by_repeated", ".2f"),
            _number("batch shapes", "batch_shapes", ",d"),
            _number("product shapes", "product_shapes", ",d"),
            *COMPILED,
        ],
    ),
    "peers": (
        "Training with other toolkits",
        [
            _text("size", "size"),
            _text("toolkit", "toolkit"),
            _text("precision", "precision"),
            _rate("target tokens/s", "target_tokens_per_second"),
            _number("endeavour by this", "ours_by_this", ".2f"),
        ],
    ),
    "decoding": (
        "Decoding",
        [
            _text("size", "size"),
            _text("toolkit", "toolkit"),
            _text("precision", "precision"),
            _number("beam", "beam_size", "d"),
            _number("batch", "batch", "d", none="own"),
            _rate("sentences/s", "sentences_per_second"),
            _rate("tokens/s", "tokens_per_second"),
            _number("latency of one, ms", "latency_milliseconds", ",.1f"),
        ],
    ),
    "data": (
        "Data preparation",
        [
            _text("corpus", "corpus"),
            _text("tokenizer", "tokenizer"),
            _number("pairs", "pairs", ",d"),
            _number("seconds", "seconds", ".1f"),
            _number("pairs/s", "pairs_per_second"),
            _number("peak GB", "peak_memory", ".2f", scale=GIGA),
        ],
    ),
    "startup": (
        "Start-up",
        [
            _text("command", "command"),
            _text("what", "what"),
            _number("seconds", "seconds", ".2f"),
        ],
    ),
    "scale": (
        "Millions of pairs",
        [
            _text("tokenizer", "tokenizer"),
            _number("pairs", "pairs", ",d"),
            _number("seconds", "seconds", ".0f"),
            _number("pairs/s", "pairs_per_second"),
            _number("peak GB", "peak_memory", ".2f", scale=GIGA),
            _number("first batch, s", "training_start_seconds", ".1f"),
            _number("and takes, GB", "training_start_memory", ".2f", scale=GIGA),
        ],
    ),
    "playground": (
        "The playground's page",
        [
            _text("what", "what"),
            _number("times", "count", "d"),
            _number("median, ms", "median_milliseconds", ",.1f"),
            _number("95th percentile, ms", "percentile_95_milliseconds", ",.1f"),
        ],
    ),
    "serving": (
        "The playground's POST /translate",
        [
            _number("lines joined", "joined_lines", "d"),
            _number("clients", "clients", "d"),
            _number("requests/s", "requests_per_second", ",.1f"),
            _number("median, ms", "median_milliseconds", ",.1f"),
            _number("95th percentile, ms", "percentile_95_milliseconds", ",.1f"),
            _number("failed", "failed", ",d"),
            _number("other than alone", "wrong", ",d"),
            _number("MB before", "memory_before", ",.0f", scale=MEGA),
            _number("MB after", "memory_after", ",.0f", scale=MEGA),
        ],
    ),
    "growth": (
        "Cost growth",
        [
            _text("varied", "varied"),
            _number("tokens per batch", "tokens_per_batch", ",d"),
            _number("width", "width", "d"),
            _rate("target tokens/s", "target_tokens_per_second"),
            _number("model GFLOP/s", "flop_per_second", ",.1f", scale=GIGA),
        ],
    ),
}

LEGEND = """\
Rates are medians over turns, the lowest and the highest in brackets. Target tokens count EOS and no padding. Training
includes collating the batches, clipping and the optimizer; all contenders get the same batches, in turn, in one
process.
FLOP of the model: 2 per multiply-add of its matrix products, the backward pass as twice the forward pass, padding not
counted; the matrix product they are compared with is this machine's fastest among the model's shapes, in the same run.
Peak memory is that of a process of its own (on a GPU: of its tensors; where endeavour trains by CUDA graphs, whose
tensors are not counted, all that was reserved), in which the first update, with all that it compiles, is timed too;
graphs are those of torch.compile, and waits the times that the host waited for the GPU in one update (–: no CUDA
device). Decoding: untrained weights that never choose EOS, so that every translation has the same length, in the
precision of the row.
Epochs: endeavour in a process of its own trains on the batches of two epochs, or on as many as bench.epoch_updates
says, and after each again and again on its first ones. Whatever is compiled for new shapes is in the rates of the
epochs: kernels of oneDNN for bf16 products on CPUs, one for each shape of a product, and the graphs of torch.compile.
Other toolkits: each turn of each, and of endeavour, is a process of its own that trains on the same pairs, in batches
of its own making; the first half, with all starting, does not count, nor how endeavour compiles or makes CUDA graphs.
Theirs is the speed that their logs state. "endeavour by this" is the median of the ratios of each turn, with endeavour
in its faster precision.
The playground is a process of its own with a trained run, asked over HTTP by clients on the same cores; each asks again
as soon as it is answered. Sentences are those of the run's first evaluation that have about 16 pieces.
"""


def part_table(part: str, rows: Sequence[Row]) -> Table:
    """The rows of a part for the terminal, narrow enough for 80 columns."""
    title, columns = TABLES[part]
    table = Table(title=title, padding=(0, 0), pad_edge=False)
    for column in columns:
        if column.short:
            # Broken between words: figures are narrower than what they are called.
            heading = column.heading.replace(" ", "\n").replace("s/s", "s\n/s")
            table.add_column(heading, justify="right" if column.right else "left")
    for row in rows:
        table.add_row(*(column.short(row) for column in columns if column.short))
    return table


def as_markdown(title: str, results: Mapping[str, Any]) -> str:
    """The whole of bench.json for a reader: the machine, one table a part, and how it was counted."""
    lines = [f"# {title}", ""]
    start = results["start"]
    device = start["device"]
    kernels = ", kernels in C" if device["kernels"] else ""
    lines += [
        f"- `{' '.join(start['command'])}`",
        f"- {device['name']}, {start['cores']} cores, {device['threads']} threads{kernels}",
        f"- git commit {start['git_commit']}, torch {start['packages']['torch']}",
        *(f"- {name}: version {version}" for name, version in results["references"].items()),
    ]
    for part, (heading, columns) in TABLES.items():
        if not results.get(part):
            continue
        head = [column.heading for column in columns]
        rows = [[column.cell(row) for column in columns] for row in results[part]]
        texts = [number for number, column in enumerate(columns) if not column.right]
        lines += ["", f"## {heading}", "", markdown_table(head, rows, texts=texts)]
        if part == "growth":
            lines += ["", "![target tokens/s against batch size and width](growth.png)"]
    if results["notes"]:
        lines += ["", "## Notes", "", *(f"- {note}" for note in results["notes"])]
    return "\n".join([*lines, "", "## How it was counted", "", LEGEND])
