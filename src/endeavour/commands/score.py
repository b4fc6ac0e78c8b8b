"""`endeavour score`: how probable a trained run finds given translations, to filter a corpus or to judge confidence."""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.data.files import Pair, read_pairs
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer
from endeavour.decoding.scoring import score_pieces
from endeavour.errors import UserError, named_memory_error
from endeavour.progress import progress_bar
from endeavour.runs.run import select_runs
from endeavour.runs.translators import Loaded, load_runs
from endeavour.settings import STRICT
from endeavour.special import EOS
from endeavour.storage import write_errors
from endeavour.training.device import choose_device

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

    At the end it says the perplexity of all. A pair of which one side is too long for the model has the score `nan`.

    Raises:
        UserError: no such run, no such file, or a line that is no pair.
    """
    runs = select_runs(config.run, Path(config.output_folder))
    pairs = _pairs(config, reverse=runs[0].config.direction == "de-en")
    loaded = load_runs(runs, choose_device(config.device))
    total, tokens, scored, too_long = 0.0, 0, 0, 0
    with ExitStack() as stack:
        target = sys.stdout
        if config.output is not None:
            stack.enter_context(write_errors(Path(config.output), "output"))
            target = stack.enter_context(Path(config.output).expanduser().open("w", encoding="utf-8"))
        progress = stack.enter_context(progress_bar(Console(stderr=True), shown=not target.isatty()))
        task = progress.add_task("scoring", total=None)
        while window := list(islice(pairs, WINDOW)):
            for row in _scores(loaded, window):
                if row is None:
                    too_long += 1
                    print("nan\tnan", file=target)
                    continue
                value = sum(one for _, one in row)
                total, tokens, scored = total + value, tokens + len(row), scored + 1
                shown = [f"{value:.4f}", f"{value / len(row):.4f}"]
                if config.pieces:
                    shown.append(" ".join(f"{piece}={one:.4f}" for piece, one in row))
                print("\t".join(shown), file=target)
            progress.advance(task, len(window))
        target.flush()
    if too_long:
        print(f"note: too long for the model, and so without a score: {too_long:,}", file=sys.stderr)
    if scored:
        perplexity = math.exp(min(-total / tokens, 700.0))
        print(f"{scored:,} pairs, {tokens:,} tokens: perplexity {perplexity:.3f} a token", file=sys.stderr)


def _scores(loaded: Loaded, pairs: list[Pair]) -> list[list[tuple[str, float]] | None]:
    """Pieces and their log-probabilities; None for a pair that is too long."""
    source_side, target_side = loaded.tokenizers
    sources = [[*ids, EOS] for ids in _encode(source_side, [source for source, _ in pairs])]
    targets = _encode(target_side, [target for _, target in pairs])
    longest = min(LONGEST, loaded.model.max_target_length or LONGEST)
    rows = [row for row in range(len(pairs)) if max(len(sources[row]), len(targets[row]) + 1) <= longest]
    with named_memory_error("scoring", "score shorter pairs"):
        found = score_pieces(
            loaded.model,
            [sources[row] for row in rows],
            [targets[row] for row in rows],
            device=loaded.first.output_weight.device,
        )
    results: list[list[tuple[str, float]] | None] = [None] * len(pairs)
    for row, pieces in zip(rows, found, strict=True):
        names = target_side.pieces([piece.token for piece in pieces])
        results[row] = [(name, piece.log_probability) for name, piece in zip(names, pieces, strict=True)]
    return results


def _encode(tokenizer: Tokenizer, lines: list[str]) -> list[list[int]]:
    return tokenizer.encode([normalize(line) for line in lines])


def _pairs(config: ScoreRoot, *, reverse: bool) -> Iterator[Pair]:
    """(source, translation) pairs. `reverse`: the files have the source second."""
    if (config.text is None) != (config.translation is None):
        raise UserError('score needs both sides: text="A sentence." translation="Ein Satz."')
    if config.text is not None and config.translation is not None:
        if config.pairs:
            raise UserError("text=… and pairs=… are two inputs: give one of them")
        return iter([(config.text, config.translation)])
    if not config.pairs:
        return _typed_pairs()
    pairs = read_pairs(
        [Path(path).expanduser() for path in config.pairs],
        english_column=config.english_column,
        german_column=config.german_column,
    )
    return ((german, english) for english, german in pairs) if reverse else pairs


def _typed_pairs() -> Iterator[Pair]:
    sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    for number, line in enumerate(sys.stdin, start=1):
        source, tab, target = line.removesuffix("\n").partition("\t")
        if not tab or "\t" in target:
            raise UserError(f"standard input, line {number}: not two columns with a tab between")
        yield source, target
