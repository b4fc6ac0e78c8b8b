"""The data stage: from a corpus to a prepared folder."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from endeavour.config import Config
from endeavour.data.corpus import ExtraPairs
from endeavour.data.corpus import Progress as ProgressReport
from endeavour.data.prepared import PreparedData, find_prepared
from endeavour.data.preparing import prepare_data
from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import UserError
from endeavour.stages.pretrained import vocabularies, with_its_vocabulary
from endeavour.stages.run_folder import data_digest
from endeavour.stages.teachers import keep_taught_text, taught_text


def prepare(
    config: Config, console: Console | None = None, *, run: Path | None = None, keep: bool = False
) -> PreparedData:
    """Builds the prepared data of `config`, unless it is there, verifies it, and says where it lies.

    Args:
        run: the folder of the run that was trained on them, if there is one; then they do where the corpus is gone.
        keep: copies the translations of teachers into the folder of the run that begins.

    Raises:
        UserError: the corpus or a setting is wrong, or the data was altered since it was prepared.
    """
    console = console or Console(stderr=True)
    if run is None:
        data = _prepared(with_its_vocabulary(config), console, None, keep)
    else:
        try:
            data = _prepared(config, console, run, keep)
        except UserError as error:
            data = _at_hand(run, config)
            if data is None:
                raise
            first = str(error).partition("\n")[0]
            note = f"note: {first}; what was prepared for this run earlier is at hand, and used"
            console.print(note, markup=False, highlight=False, soft_wrap=True)
            data.verify()
    sizes = ", ".join(f"{split} {counts['pairs']:,}" for split, counts in data.splits.items())
    console.print(f"data: {data.folder} ({sizes} pairs)", markup=False, highlight=False, soft_wrap=True)
    return data


def _at_hand(run: Path, config: Config) -> PreparedData | None:
    """What a finished run was trained on, whose corpus may be gone."""
    noted = data_digest(run)
    return None if noted is None else find_prepared(Path(config.data_folder), noted)


def _prepared(config: Config, console: Console, run: Path | None, keep: bool) -> PreparedData:
    data = _build(config, console, vocabularies(config, run))
    data.verify()
    if config.teachers is not None:  # whose translations do not change the vocabularies
        with _shown(console) as show:
            texts = taught_text(config, data, show, run)
        if keep:
            keep_taught_text(config, texts)
        data = _build(config, console, data.load_tokenizers(), texts)
        data.verify()
    return data


def _build(
    config: Config, console: Console, given: Tokenizers | None, extra_pairs: Sequence[ExtraPairs] = ()
) -> PreparedData:
    with _shown(console) as show:
        return prepare_data(
            corpus=config.corpus,
            cleaning=config.cleaning,
            tokenizer=config.tokenizer,
            direction=config.direction,
            tokenizers=given,
            extra_pairs=extra_pairs,
            folder=Path(config.data_folder),
            progress=show,
        )


@contextmanager
def _shown(console: Console) -> Generator[ProgressReport]:
    """A function that shows what is done, a bar each; without a terminal a line each."""
    with progress_bar(console) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                for task in tasks.values():
                    progress.update(task, total=progress.tasks[task].completed or 1)
                tasks[what] = progress.add_task(what, total=total)
                if not console.is_terminal:
                    console.print(what, markup=False, highlight=False)
            progress.update(tasks[what], completed=done, total=total)

        yield show


def progress_bar(console: Console, *, shown: bool = True) -> Progress:
    """A bar for work of known or unknown length; nothing where there is no terminal, or it is not to be shown."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
    )
