"""What was measured, as tables for the screen and for report.md. Knows rows and units, not how they are measured."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from endeavour.markdown import markdown_table

# A dict is a rate, as `measure.spread` returns it; of a list the length is shown.
Row = Mapping[str, str | float | dict[str, float] | list[str] | None]


class Column(NamedTuple):
    """A heading, and below it what each row has by `key`.

    Attributes:
        form: how a number is formatted; none for text.
        scale: what a number is multiplied by.
        none: what stands for a value that is not there.
        screen: whether the column is on the screen too, which is narrow.
    """

    heading: str
    key: str
    form: str = ""
    scale: float = 1
    none: str = "–"
    screen: bool = True

    def cell(self, row: Row, *, screen: bool = False) -> str:
        """A rate is the median of the turns and, except on the screen, in brackets the lowest and the highest."""
        match row[self.key]:
            case None:
                return self.none
            case str(text):
                return text
            case dict(rate):
                form = self.form if rate["median"] >= 20 else ".2f"
                median, lowest, highest = (format(rate[key], form) for key in ("median", "lowest", "highest"))
                return median if screen else f"{median} ({lowest}–{highest})"
            case list(items):
                return format(len(items), self.form)
            case number:
                return format(number * self.scale, self.form)


MEGA, GIGA = 1e-6, 1e-9

# What torch.compile did, as `host_costs.compiled_so_far` has it.
COMPILED = [
    Column("graphs", "graphs", "d", screen=False),
    Column("graph breaks", "graph_breaks", "d", screen=False),
    Column("compiled again", "recompilations", "d", screen=False),
]

# Part → title and columns, in the order of the report.
TABLES: dict[str, tuple[str, list[Column]]] = {
    "precision": (
        "What precision=auto is here",
        [
            Column("size", "size"),
            Column("what", "what"),
            Column("precision", "precision"),
            Column("why", "reason"),
        ],
    ),
    "training": (
        "Training",
        [
            Column("size", "size"),
            Column("toolkit", "toolkit"),
            Column("precision", "precision"),
            Column("parameters", "parameters", ",d", screen=False),
            Column("target tokens/s", "target_tokens_per_second", ",.0f"),
            Column("all tokens/s", "tokens_per_second", ",.0f"),
            Column("ms per update", "milliseconds_per_update", ",.0f"),
            Column("padding", "padding", ".1%"),
            Column("model GFLOP/s", "flop_per_second", ",.1f", scale=GIGA),
            Column("of matrix product", "share_of_product", ".0%"),
            Column("peak GB", "peak_memory", ".2f", scale=GIGA),
            Column("first update, s", "first_update_seconds", ".1f", screen=False),
            *COMPILED,
            Column("waits an update", "waits_per_update", ".1f", screen=False),
        ],
    ),
    "epochs": (
        "Training over epochs",
        [
            Column("size", "size"),
            Column("precision", "precision"),
            Column("tokens/s, first epoch", "first_epoch_tokens_per_second", ",.0f"),
            Column("second epoch", "second_epoch_tokens_per_second", ",.0f"),
            Column("repeated batches", "repeated_tokens_per_second", ",.0f"),
            Column("second by repeated", "second_by_repeated", ".2f"),
            Column("batch shapes", "batch_shapes", ",d"),
            Column("product shapes", "product_shapes", ",d"),
            *COMPILED,
        ],
    ),
    "peers": (
        "Training with other toolkits",
        [
            Column("size", "size"),
            Column("toolkit", "toolkit"),
            Column("precision", "precision"),
            Column("target tokens/s", "target_tokens_per_second", ",.0f"),
            Column("endeavour by this", "ours_by_this", ".2f"),
        ],
    ),
    "decoding": (
        "Decoding",
        [
            Column("size", "size"),
            Column("toolkit", "toolkit"),
            Column("precision", "precision"),
            Column("beam", "beam_size", "d"),
            Column("batch", "batch", "d", none="own"),
            Column("sentences/s", "sentences_per_second", ",.0f"),
            Column("tokens/s", "tokens_per_second", ",.0f"),
            Column("latency of one, ms", "latency_milliseconds", ",.1f"),
        ],
    ),
    "data": (
        "Data preparation",
        [
            Column("corpus", "corpus"),
            Column("tokenizer", "tokenizer"),
            Column("pairs", "pairs", ",d"),
            Column("seconds", "seconds", ".1f"),
            Column("pairs/s", "pairs_per_second", ",.0f"),
            Column("peak GB", "peak_memory", ".2f", scale=GIGA),
        ],
    ),
    "startup": (
        "Start-up",
        [
            Column("command", "command"),
            Column("what", "what"),
            Column("seconds", "seconds", ".2f"),
        ],
    ),
    "scale": (
        "Millions of pairs",
        [
            Column("tokenizer", "tokenizer"),
            Column("pairs", "pairs", ",d"),
            Column("seconds", "seconds", ".0f"),
            Column("pairs/s", "pairs_per_second", ",.0f"),
            Column("peak GB", "peak_memory", ".2f", scale=GIGA),
            Column("first batch, s", "training_start_seconds", ".1f"),
            Column("and takes, GB", "training_start_memory", ".2f", scale=GIGA),
        ],
    ),
    "playground": (
        "The playground's page",
        [
            Column("what", "what"),
            Column("times", "count", "d"),
            Column("median, ms", "median_milliseconds", ",.1f"),
            Column("95th percentile, ms", "percentile_95_milliseconds", ",.1f"),
        ],
    ),
    "serving": (
        "The playground's POST /translate",
        [
            Column("lines joined", "joined_lines", "d"),
            Column("clients", "clients", "d"),
            Column("requests/s", "requests_per_second", ",.1f"),
            Column("median, ms", "median_milliseconds", ",.1f"),
            Column("95th percentile, ms", "percentile_95_milliseconds", ",.1f"),
            Column("failed", "failed", ",d"),
            Column("other than alone", "wrong", ",d"),
            Column("MB before", "memory_before", ",.0f", scale=MEGA),
            Column("MB after", "memory_after", ",.0f", scale=MEGA),
        ],
    ),
    "growth": (
        "Cost growth",
        [
            Column("varied", "varied"),
            Column("tokens per batch", "tokens_per_batch", ",d"),
            Column("width", "width", "d"),
            Column("target tokens/s", "target_tokens_per_second", ",.0f"),
            Column("model GFLOP/s", "flop_per_second", ",.1f", scale=GIGA),
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
    title, all_columns = TABLES[part]
    columns = [column for column in all_columns if column.screen]
    table = Table(title=title, padding=(0, 0), pad_edge=False)
    for column in columns:
        # Broken between words: figures are narrower than what they are called.
        heading = column.heading.replace(" ", "\n").replace("s/s", "s\n/s")
        table.add_column(heading, justify="right" if column.form else "left")
    for row in rows:
        table.add_row(*(column.cell(row, screen=True) for column in columns))
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
        texts = [number for number, column in enumerate(columns) if not column.form]
        lines += ["", f"## {heading}", "", markdown_table(head, rows, texts=texts)]
        if part == "growth":
            lines += ["", "![target tokens/s against batch size and width](growth.png)"]
    if results["notes"]:
        lines += ["", "## Notes", "", *(f"- {note}" for note in results["notes"])]
    return "\n".join([*lines, "", "## How it was counted", "", LEGEND])
