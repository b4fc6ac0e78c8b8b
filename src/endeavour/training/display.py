"""What the user sees of training: a live bar on a terminal, otherwise a line at each log. Knows only numbers."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from endeavour.progress import say


class TrainingDisplay:
    """Shows the progress of one run; a context manager around the loop."""

    def __init__(self, console: Console, *, total_updates: int | None, done: int) -> None:
        self._console = console
        self._total = total_updates
        # Update and seconds from which the rate is taken: sessions before this one may have been slower or faster.
        self._since = (0, 0.0) if done == 0 else None
        self._progress = Progress(
            TextColumn("[bold]training"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("training", total=total_updates, completed=done, figures="")
        self._figures: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def updated(self, update: int) -> None:
        self._progress.update(self._task, completed=update)

    def trained(self, update: int, metrics: Mapping[str, float]) -> None:
        """Shows the training metrics of the last updates."""
        self._figures |= {
            "loss": f"{metrics['loss']:.3f}",
            "tokens/s": f"{metrics['tokens_per_second']:,.0f}",
            "padding": f"{metrics['padding']:.1%}",
        }
        self._progress.update(self._task, completed=update, figures=self._line())
        if not self._console.is_terminal:
            share = f"/{self._total}" if self._total else ""
            left = self._time_left(update, metrics)
            self.note(f"update {update}{share}  epoch {metrics['epoch'] + 1}  {self._line()}{left}")

    def validated(
        self, update: int, metrics: Mapping[str, float], samples: list[tuple[str, str, str]]
    ) -> None:
        """Shows a validation and one of its translations."""
        self._figures["BLEU"] = f"{metrics['bleu']:.1f}"
        self._progress.update(self._task, figures=self._line())
        self.note(
            f"update {update}  validation: loss {metrics['loss']:.3f}  perplexity {metrics['perplexity']:.2f}  "
            f"BLEU {metrics['bleu']:.2f}"
        )
        for source, hypothesis, _ in samples[:1]:
            self.note(f"    {source}\n  → {hypothesis}")

    def note(self, text: str) -> None:
        say(self._console, text)

    def _line(self) -> str:
        return "  ".join(f"{name} {value}" for name, value in self._figures.items())

    def _time_left(self, update: int, metrics: Mapping[str, float]) -> str:
        if self._since is None:
            self._since = (update, metrics["seconds"])
        first_update, first_seconds = self._since
        if not self._total or update == first_update:
            return ""
        seconds_each = (metrics["seconds"] - first_seconds) / (update - first_update)
        minutes, seconds = divmod(int(seconds_each * (self._total - update)), 60)
        return f"  left {minutes}:{seconds:02d}"
