"""`endeavour translate`: a sentence, a file or standard input through a trained run, line by line."""

import gc
import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.commands.opened import TranslatingRoot, open_runs
from endeavour.commands.output import STANDARD_STREAM, open_output, open_standard_input
from endeavour.decoding.translator import WINDOW, Translator
from endeavour.errors import UserError
from endeavour.interface import TrainedRun
from endeavour.progress import progress_bar
from endeavour.settings import STRICT
from endeavour.storage import user_path

# The rest of a longer line is left out: nobody wrote it, and it would fill the memory.
LONGEST_LINE = 1_000_000  # characters
KEEP_BYTES = "surrogateescape"  # bytes that are not UTF-8, until they are reported
# What stands between two sentences stays there, but it would break the columns and the lines of the output.
_OTHER_SPACE = re.compile(r"[^\S ]")


@dataclass(kw_only=True, config=STRICT)
class TranslateRoot(TranslatingRoot):
    """Values and their meaning: conf/translate.yaml."""

    text: str | None
    input: str | None
    output: str | None
    log_probabilities: bool
    alignments: bool

    def __post_init__(self) -> None:
        if self.input == STANDARD_STREAM:
            self.input = None


def translate(config: TranslateRoot) -> None:
    """Writes one line for each line read; with `decoding.num_hypotheses` > 1, and nothing that chooses among them, the
    n best, each as line number, score and text with tabs between. `log_probabilities` puts a column before the text,
    `alignments` one after it: which word of the line (from 0) each word of the translation belongs to.

    An input called `.gz` is decompressed, such an output compressed. Bytes that are not UTF-8 are read as U+FFFD, so
    that no line is lost. A line of more than 512 tokens, or than the model has positions, is translated in parts, and
    what it holds beyond a million characters is left out. Notes say so.

    Raises:
        UserError: no such run, no such file, or a damaged one.
    """
    if config.text is not None and config.input is not None:
        raise UserError("text=… and input=… are two inputs: give one of them")
    run = open_runs(config)
    with ExitStack() as stack:
        source = _open_input(config, stack)
        if config.decoding.engine == "pytorch":
            _import_torch()
        reads_standard_input = config.text is None and config.input is None
        interactive = reads_standard_input and sys.stdin.isatty()
        translator = run.translator(window=1 if interactive else WINDOW)
        read = [] if config.input is None else [config.input]
        target = open_output(config.output, stack, read, standard_input=reads_standard_input)
        if interactive:
            print("type a sentence a line; Ctrl-D ends", file=sys.stderr)
        # A bar would wipe out what is typed, and stand before each translation on the same screen.
        shown = config.text is None and not interactive and not target.isatty()
        progress = stack.enter_context(progress_bar(Console(stderr=True), shown=shown))
        task = progress.add_task("translating", total=None)
        for lines in _output_lines(config, translator, run, source):
            print(lines, file=target, flush=interactive)
            progress.advance(task)
        target.flush()
    if translator.in_parts:
        many = f"{translator.in_parts} line{'s' if translator.in_parts > 1 else ''}"
        print(f"note: {many} of more than {translator.longest} tokens translated in parts", file=sys.stderr)


def _import_torch() -> None:
    """In three fifths of the time: of the 250,000 objects that it makes, hardly any can go, and Python's garbage
    collector would look through them again and again while they are made, and once more when the process ends.
    """
    if "torch" in sys.modules:
        return
    gc.disable()
    try:
        import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]

        if "triton" not in sys.modules:  # which takes for leaked what is not collected in the end
            gc.freeze()
    finally:
        gc.enable()


def _output_lines(
    config: TranslateRoot, translator: Translator, run: TrainedRun, source: Iterator[str]
) -> Iterator[str]:
    """What is written for each line of the source."""
    best_alone = config.decoding.num_hypotheses == 1 or config.decoding.chooses
    for number, hypotheses in enumerate(translator.translate_n_best(source), start=1):
        written: list[str] = []
        for one in hypotheses[:1] if best_alone else hypotheses:
            columns = [] if best_alone else [str(number), f"{one.score:.4f}"]
            if config.log_probabilities:
                columns.append(f"{one.log_probability:.4f}")
            columns.append(_OTHER_SPACE.sub(" ", one.text))
            if config.alignments:
                pairs = run.align_parts(one.parts)
                columns.append(" ".join(f"{source}-{target}" for source, target in pairs))
            written.append("\t".join(columns))
        yield "\n".join(written)


def _open_input(config: TranslateRoot, stack: ExitStack) -> Iterator[str]:
    if config.text is not None:
        return iter([config.text])
    if config.input is None:
        return _lines(open_standard_input(KEEP_BYTES))
    path = user_path(config.input)
    open_text = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        # A line ends at \n and nowhere else, or the output would have more lines than the input.
        opened = stack.enter_context(open_text(path, "rt", encoding="utf-8", errors=KEEP_BYTES, newline="\n"))
    except OSError as error:
        raise UserError(f"input={config.input} cannot be read ({error.strerror})") from error
    return _undamaged(_lines(opened), path)


def _undamaged(lines: Iterator[str], path: Path) -> Iterator[str]:
    try:
        yield from lines
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"input={path}: damaged gzip ({error}); copy it again, or, if it is plain text, rename it"
        ) from error


def _lines(file: TextIO) -> Iterator[str]:
    noted = False
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), start=1):
        rest, cut = line, False
        while rest and not rest.endswith("\n"):
            rest = file.readline(LONGEST_LINE)
            cut |= rest not in ("", "\n")
        if cut:
            print(f"note: line {number} is cut after {LONGEST_LINE:,} characters", file=sys.stderr)
        try:
            line.encode()
        except UnicodeEncodeError:
            line = line.encode(errors=KEEP_BYTES).decode(errors="replace")
            if not noted:
                note = (
                    f"note: line {number} is not valid UTF-8 (read as \ufffd); further ones are not reported"
                )
                print(note, file=sys.stderr)
            noted = True
        yield line.removesuffix("\n")
