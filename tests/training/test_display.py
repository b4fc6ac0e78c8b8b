"""What a training says of the time that is left."""

import io

from rich.console import Console

from endeavour.training.display import TrainingDisplay


def log_line(display: TrainingDisplay, console: Console, update: int, seconds: float) -> str:
    metrics = {"loss": 3.0, "tokens_per_second": 1000.0, "padding": 0.1, "epoch": 0, "seconds": seconds}
    display.trained(update, metrics)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()[-1]


def test_the_time_left_is_by_the_rate_so_far() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with TrainingDisplay(console, total_updates=100, done=0) as display:
        assert log_line(display, console, 10, seconds=20).endswith("left 3:00")


def test_after_a_resume_the_time_left_is_by_the_rate_of_this_session() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with TrainingDisplay(console, total_updates=100, done=40) as display:
        assert "left" not in log_line(display, console, 50, seconds=5000), "the rate is not known yet"
        assert log_line(display, console, 60, seconds=5020).endswith("left 1:20")


def test_without_a_number_of_updates_no_time_is_left() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with TrainingDisplay(console, total_updates=None, done=0) as display:
        assert "left" not in log_line(display, console, 10, seconds=20)
