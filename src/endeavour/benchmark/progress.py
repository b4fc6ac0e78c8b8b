"""What a benchmark shows while it measures. Knows the number of steps, not what they are."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Rows = list[dict[str, Any]]
# Given the number of steps there will be, a function to be called after each.
Steps = Callable[[int], Callable[[], None]]


def with_bar(console: Console, part: str, measure: Callable[[Steps], Rows]) -> Rows:
    """Calls `measure` under a progress bar, or after one line where there is no terminal."""
    if not console.is_terminal:
        console.print(f"measuring {part}", markup=False, highlight=False)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar as progress:
        task = progress.add_task(part, total=None)

        def steps(total: int) -> Callable[[], None]:
            progress.update(task, total=total)
            return lambda: progress.advance(task)

        return measure(steps)
