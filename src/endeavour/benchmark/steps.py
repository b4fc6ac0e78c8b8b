"""What a benchmark shows while it measures. Knows the number of steps, not what they are."""

from collections.abc import Callable
from typing import Any

from rich.console import Console

from endeavour.progress import progress_bar, say

Results = list[dict[str, Any]]
# Given the number of steps there will be, a function to be called after each.
Steps = Callable[[int], Callable[[], None]]


def with_bar(console: Console, part: str, measure: Callable[[Steps], Results]) -> Results:
    """Calls `measure` under a progress bar, or after one line where there is no terminal."""
    if not console.is_terminal:
        say(console, f"measuring {part}")
    with progress_bar(console) as progress:
        task = progress.add_task(part, total=None)

        def steps(total: int) -> Callable[[], None]:
            progress.update(task, total=total)
            return lambda: progress.advance(task)

        return measure(steps)
