"""Progress bars on a terminal, or lines without one; and the console for tables of results."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

Report = Callable[[str, int, int | None], None]  # (what, done, total or None)


def results_console() -> Console:
    """Standard output; where it is no terminal, or is closed, wide enough for tables."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(width=None if on_terminal else 120)


def say(console: Console, line: str) -> None:
    """Prints a line as it is: no markup, no wrapping."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def progress_bar(console: Console, *, shown: bool = True) -> Progress:
    """A bar for work of known or unknown length; nothing without a terminal, or if it is not to be shown."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
    )


@contextmanager
def reported_progress(console: Console) -> Generator[Report]:
    """A function (what, done, total) that shows a bar for each kind of work; without a terminal a line each."""
    with progress_bar(console) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                for task in tasks.values():
                    progress.update(task, total=progress.tasks[task].completed or 1)
                tasks[what] = progress.add_task(what, total=total)
                if not console.is_terminal:
                    say(console, what)
            progress.update(tasks[what], completed=done, total=total)

        yield show
