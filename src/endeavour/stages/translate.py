"""The translate stage: a sentence, a file or standard input through a run's model, line by line."""

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from rich.console import Console

from endeavour.config import Config
from endeavour.decoding.translator import WINDOW, Translator
from endeavour.errors import UserError
from endeavour.stages.engines import open_engine
from endeavour.stages.ensembles import further_runs, join_models
from endeavour.stages.prepare import progress_bar
from endeavour.stages.run_folder import as_decoded, find_run
from endeavour.training.checkpoint import load_model
from endeavour.training.device import choose_device

# Of a line more is left out: nobody wrote it, and it would fill the memory.
LONGEST_LINE = 1_000_000  # characters
KEEP_BYTES = "surrogateescape"  # bytes that are no UTF-8, until it is noted where they stand


def translate(config: Config) -> None:
    """Writes one line for each line read; with `decoding.num_hypotheses` > 1 and no `decoding.utility` to choose
    among them, the n best, each as line number, score and text with tabs between.

    An input called `.gz` is decompressed. Bytes that are no UTF-8 are read as U+FFFD, so that no line is lost. A line
    of more than 512 tokens, or than the model has positions, is translated in parts, and what it holds beyond a
    million characters is left out. Notes say so.

    Raises:
        UserError: no such run, no such file, or a damaged one.
    """
    folder, trained = find_run(config)
    config = as_decoded(config, trained)
    others = further_runs(config)
    if config.text is not None and config.input is not None:
        raise UserError("text=… and input=… are two inputs: give one of them")
    device = choose_device(config.device)
    with ExitStack() as stack:
        source = _open_input(config, stack)
        own, tokenizers = load_model(folder / "model", device)
        model = join_models(folder, own, tokenizers, others, config, device)
        engine = open_engine(config, folder, model)
        target = _open_output(config, stack)  # last of all: it empties a file that is there
        interactive = config.text is None and config.input is None and sys.stdin.isatty()
        if interactive:
            print("type a sentence a line; Ctrl-D ends", file=sys.stderr)
        translator = Translator(
            engine,
            tokenizers,
            window=1 if interactive else WINDOW,
            decoding=config.decoding,
        )
        best_alone = config.decoding.num_hypotheses == 1 or config.decoding.utility is not None
        # A bar would wipe out what is typed, and stand before each translation on the same screen.
        shown = config.text is None and not interactive and not target.isatty()
        progress = stack.enter_context(progress_bar(Console(stderr=True), shown=shown))
        task = progress.add_task("translating", total=None)
        for number, hypotheses in enumerate(translator.translate_n_best(source), start=1):
            if best_alone:
                print(hypotheses[0].text, file=target)
            else:
                for hypothesis in hypotheses:
                    print(f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}", file=target)
            if interactive:
                target.flush()
            progress.advance(task)
        target.flush()
    if translator.in_parts:
        many = f"{translator.in_parts} line{'s' if translator.in_parts > 1 else ''}"
        print(f"note: {many} of more than {translator.longest} tokens translated in parts", file=sys.stderr)


def _open_input(config: Config, stack: ExitStack) -> Iterator[str]:
    if config.text is not None:
        return iter([config.text])
    if config.input is None:
        sys.stdin.reconfigure(encoding="utf-8", errors=KEEP_BYTES, newline="\n")  # type: ignore[union-attr]
        return _lines(sys.stdin)
    path = Path(config.input).expanduser()
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
        raise UserError(f"input={path}: damaged gzip ({error}); obtain the file anew") from error


def _open_output(config: Config, stack: ExitStack) -> TextIO:
    if config.output is None:
        if hasattr(
            sys.stdout, "reconfigure"
        ):  # a captured one, in a test or a notebook, has no encoding to set
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        return sys.stdout
    output = Path(config.output).expanduser()
    try:
        if output.exists() and _is_input(output, config):
            raise UserError(f"output={output} is the input itself, which would be lost: choose another file")
        return stack.enter_context(output.open("w", encoding="utf-8"))
    except OSError as error:
        raise UserError(f"output={config.output} cannot be written ({error.strerror})") from error


def _is_input(output: Path, config: Config) -> bool:
    """Whether the file that is there is the one to be read, by name or through standard input."""
    if config.text is not None:
        return False
    if config.input is not None:
        return output.samefile(Path(config.input).expanduser())
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
    except (OSError, ValueError):  # a standard input of no file, as in a notebook
        return False


def _lines(file: TextIO) -> Iterator[str]:
    number, noted = 0, False
    while line := file.readline(LONGEST_LINE):
        number += 1
        more = line
        while more and not more.endswith("\n"):
            more = file.readline(LONGEST_LINE)
            if more.removesuffix("\n"):
                print(f"note: line {number} is cut after {LONGEST_LINE:,} characters", file=sys.stderr)
                while more and not more.endswith("\n"):
                    more = file.readline(LONGEST_LINE)
        try:
            line.encode()
        except UnicodeEncodeError:
            line = line.encode(errors=KEEP_BYTES).decode(errors="replace")
            if not noted:
                note = f"note: line {number} is no valid UTF-8 (read as \ufffd); others are not noted"
                print(note, file=sys.stderr)
            noted = True
        yield line.removesuffix("\n")
