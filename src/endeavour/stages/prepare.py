"""The data stage: from a corpus to a prepared folder."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from endeavour.config import Config
from endeavour.data.prepare import prepare as prepare_data
from endeavour.data.prepared import PreparedData
from endeavour.stages.pretrained import vocabularies, with_its_vocabulary


def prepare(config: Config, console: Console | None = None, *, run: Path | None = None) -> PreparedData:
    """Builds the prepared data of `config`, unless it is there, verifies it, and says where it lies.

    Args:
        run: the folder of the run that was trained on them, if there is one.

    Raises:
        UserError: the corpus or a setting is wrong, or the data was altered since it was prepared.
    """
    console = console or Console(stderr=True)
    if run is None:
        config = with_its_vocabulary(config)
    given = vocabularies(config, run)
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

        data = prepare_data(
            corpus=config.corpus,
            cleaning=config.cleaning,
            tokenizer=config.tokenizer,
            direction=config.direction,
            vocabularies=given,
            folder=Path(config.data_folder),
            progress=show,
        )
    data.verify()
    sizes = ", ".join(f"{split} {counts['pairs']:,}" for split, counts in data.splits.items())
    console.print(f"data: {data.folder} ({sizes} pairs)", markup=False, highlight=False, soft_wrap=True)
    return data


def progress_bar(console: Console) -> Progress:
    """A bar for work of known or unknown length; nothing where there is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
