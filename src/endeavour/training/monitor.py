"""Where a run is followed: its log, its tracker and its display, which the loop addresses as one.

Knows what each of the three is told; not how a run is trained, validated or tested.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from endeavour.training.display import TrainingDisplay
from endeavour.training.log import MetricLog
from endeavour.training.tracking import Tracker


@dataclass(frozen=True)
class Validation:
    """One validation: loss (label-smoothed) and perplexity per target token, BLEU, and some translations.

    `samples` are (source, hypothesis, reference). `attention` belongs to one pair, the same at every validation: its
    source pieces, its target pieces, and for each target piece the weights over the source pieces.
    """

    loss: float
    perplexity: float
    bleu: float
    samples: list[tuple[str, str, str]]
    attention: tuple[list[str], list[str], list[list[float]]] | None = None


@dataclass
class Monitor:
    """Log, tracker and display of one run."""

    log: MetricLog
    tracker: Tracker
    display: TrainingDisplay

    def note(self, text: str) -> None:
        """Shows a line of text."""
        self.display.note(text)

    def updated(self, update: int) -> None:
        """Advances the progress bar to `update`."""
        self.display.updated(update)

    def trained(self, update: int, metrics: Mapping[str, float]) -> None:
        """Records the training metrics of the updates since the last call, as `MetricWindow.close` returns them."""
        self.log.write("train", update, metrics)
        self.tracker.log({f"train/{key}": value for key, value in metrics.items()}, update)
        self.display.trained(update, metrics)

    def validated(self, update: int, validation: Validation) -> None:
        """Records a validation after `update`, with its translations and its attention weights."""
        metrics = {"loss": validation.loss, "perplexity": validation.perplexity, "bleu": validation.bleu}
        self.log.write("validation", update, metrics)
        if validation.attention is not None:
            keys = ("source", "target", "weights")
            self.log.write("attention", update, dict(zip(keys, validation.attention, strict=True)))
        self.log.write("samples", update, {"samples": validation.samples})
        self.tracker.log({f"validation/{key}": value for key, value in metrics.items()}, update)
        self.tracker.log_samples(validation.samples, update)
        self.display.validated(update, metrics, validation.samples)

    def tested(self, update: int, split: str, scores: Mapping[str, float]) -> None:
        """Records the scores of the final model, which was made after `update`, on a test split."""
        self.tracker.log({f"{split}/{key}": value for key, value in scores.items()}, update)

    def close(self) -> None:
        """Finishes tracking."""
        self.tracker.finish()
