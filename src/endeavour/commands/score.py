"""`endeavour score`: how probable a trained run finds given translations, to filter a corpus or to judge confidence."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TextIO

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.commands.output import open_output, open_standard_input
from endeavour.data.files import Pair, directed, read_pairs
from endeavour.data.tokenizer import encode_pairs
from endeavour.directions import Direction
from endeavour.errors import UserError, named_memory_error
from endeavour.progress import progress_bar
from endeavour.runs.choice import require_translators, select_runs
from endeavour.runs.translators import Loaded, load_runs, score_pairs
from endeavour.settings import STRICT
from endeavour.special import EOS
from endeavour.training.device import choose_device
from endeavour.training.log import perplexity

WINDOW = 2048  # pairs that are sorted by length together
LONGEST = 2048  # tokens of either side; what is longer would fill the memory


@dataclass(kw_only=True, config=STRICT)
class ScoreRoot:
    """Values and their meaning: conf/score.yaml."""

    run: str | None
    text: str | None
    translation: str | None
    pairs: list[str]
    english_column: str
    german_column: str
    output: str | None
    pieces: bool
    device: str
    output_folder: str


def score(config: ScoreRoot) -> None:
    """Writes for each pair its log-probability (natural, the end included) and that per token, a tab between.

    At the end it says the perplexity of all. A pair of which one side has more than `LONGEST` tokens, or than the model
    has positions, has the score `nan`.

    Raises:
        UserError: no such run, one that does not translate, no such file, no pair, or a line that is none.
    """
    runs = select_runs(config.run, Path(config.output_folder))
    require_translators(runs)
    pairs = _pairs(config, runs[0].config.direction)
    loaded = load_runs(runs, choose_device(config.device), runs[0].config.decoding.tag)
    total, tokens, scored, too_long = 0.0, 0, 0, 0
    with ExitStack() as stack:
        from_standard_input = config.text is None and not config.pairs
        target = open_output(config.output, stack, config.pairs, standard_input=from_standard_input)
        progress = stack.enter_context(progress_bar(Console(stderr=True), shown=not target.isatty()))
        task = progress.add_task("scoring", total=None)
        while window := list(islice(pairs, WINDOW)):
            with named_memory_error("scoring", "score shorter pairs"):
                scores = score_pairs(loaded, window, longest=LONGEST)
            for pair, values in zip(window, scores, strict=True):
                print(_line(loaded, pair, values, pieces=config.pieces), file=target)
                if values is None:
                    too_long += 1
                else:
                    total, tokens, scored = total + sum(values), tokens + len(values), scored + 1
            progress.advance(task, len(window))
        if not scored + too_long:
            named = f"pairs=[{','.join(config.pairs)}]" if config.pairs else "standard input"
            raise UserError(f"{named}: no pair in it, so there is nothing to score")
        target.flush()
    if too_long:
        print(f"note: too long, and so without a score: {too_long:,}", file=sys.stderr)
    if scored:
        print(
            f"scored: {scored:,}, tokens: {tokens:,}, perplexity {perplexity(-total / tokens):.3f} a token",
            file=sys.stderr,
        )


def _line(loaded: Loaded, pair: Pair, values: list[float] | None, *, pieces: bool) -> str:
    """What is written for one pair, of whose pieces these are the log-probabilities."""
    if values is None:
        return "nan\tnan"
    columns = [f"{sum(values):.4f}", f"{sum(values) / len(values):.4f}"]
    if pieces:
        names = loaded.tokenizers[1].pieces([*encode_pairs(loaded.tokenizers, [pair])[1][0], EOS])
        columns.append(" ".join(f"{name}={value:.4f}" for name, value in zip(names, values, strict=True)))
    return "\t".join(columns)


def _pairs(config: ScoreRoot, direction: Direction) -> Iterator[Pair]:
    """(source, translation) pairs."""
    if (config.text is None) != (config.translation is None):
        raise UserError('score needs both sides: text="A sentence." translation="Ein Satz."')
    if config.text is not None and config.translation is not None:
        if config.pairs:
            raise UserError("text=… and pairs=… are two inputs: give one of them")
        return iter([(config.text, config.translation)])
    if not config.pairs:
        return _typed_pairs(open_standard_input("replace"))
    pairs = read_pairs(config.pairs, english_column=config.english_column, german_column=config.german_column)
    return directed(pairs, direction)


def _typed_pairs(lines: TextIO) -> Iterator[Pair]:
    for number, line in enumerate(lines, start=1):
        source, tab, target = line.removesuffix("\n").partition("\t")
        if not tab or "\t" in target:
            raise UserError(f"standard input, line {number}: not two columns with a tab between")
        yield source, target
