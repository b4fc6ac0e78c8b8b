"""The parts of a benchmark that need a prepared corpus: tasks of the config's sizes, measured, and what `auto` is.

Knows the sections of the config that a benchmark reads, no screen and no result files but pictures and profiles.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from endeavour.benchmark.config import OURS
from endeavour.benchmark.contenders import training_contenders
from endeavour.benchmark.decoders import decoding_contenders
from endeavour.benchmark.decoding import decoding_cases, measure_decoding
from endeavour.benchmark.epochs import measure_epochs
from endeavour.benchmark.growth import measure_growth, widened
from endeavour.benchmark.peers import measure_peers, why_no_peer
from endeavour.benchmark.steps import Results, Steps
from endeavour.benchmark.task import Task
from endeavour.benchmark.trace import write_profile
from endeavour.benchmark.training import measure_training
from endeavour.data.batching import require_pair_fits
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import exported_positions
from endeavour.reports.growth_picture import draw_growth
from endeavour.training.precision import (
    Precision,
    choose_decoding_precision,
    choose_training_precision,
)


@dataclass(frozen=True)
class Subject:
    """What is measured: models of all sizes on one prepared corpus.

    Attributes:
        task: without rows; its model gets the numbers of each size.
        references: those of the config that can be measured here.
        notes: a line for each of what was left out, or could be faster.
    """

    task: Task
    references: list[str]
    notes: list[str]

    def check(self) -> None:
        """Raises `UserError` for what would otherwise fail after the first parts were measured."""
        settings = self.task.settings
        trained = {"training", "epochs", "growth", "peers"}
        dataset = self.task.dataset()
        longest = int(max(dataset.source.lengths.max(), dataset.target.lengths.max()))
        if trained & set(settings.parts) or settings.profile:
            require_pair_fits(longest, settings.tokens_per_batch, "bench.tokens_per_batch")
        if "growth" in settings.parts:
            require_pair_fits(longest, min(settings.growth_batches), "bench.growth_batches")
        for size in settings.sizes:
            with _named(f"bench.sizes={size}"):
                self._task(size)
        if "growth" in settings.parts:
            first = self._task(settings.sizes[0])
            for width in settings.growth_widths:
                with _named(f"bench.growth_widths={width}"):
                    widened(first.model, width)
        positions = exported_positions(self.task.model)
        if "decoding" in settings.parts and settings.decoding_tokens > positions:
            raise UserError(
                f"bench.decoding_tokens={settings.decoding_tokens}: at most the model's {positions} positions"
            )

    def training(self, steps: Steps) -> Results:
        """Rows of `measure_training`, for all sizes."""
        settings = self.task.settings
        contenders = training_contenders(self.references, settings.precisions)
        done = steps(len(settings.sizes) * len(contenders) * (settings.repeats + 1))
        rows: Results = []
        for size in settings.sizes:
            task = self._task(size).with_rows(settings.updates)
            rows += measure_training(task, contenders, notes=self.notes, done=done)
        return rows

    def epochs(self, steps: Steps) -> Results:
        """Rows of `measure_epochs`, for all sizes, each in the precision of `auto`."""
        done = steps(len(self.task.settings.sizes))
        rows: Results = []
        for size in self.task.settings.sizes:
            rows.append(measure_epochs(self._task(size), self._ours(size)))
            done()
        return rows

    def decoding_rows(self, steps: Steps) -> Results:
        """Rows of `measure_decoding`, for all sizes."""
        settings = self.task.settings
        contenders = decoding_contenders(self.references, settings.precisions, self.task.device)
        done = steps(len(settings.sizes) * len(decoding_cases(contenders, settings)) * settings.repeats)
        rows: Results = []
        for size in settings.sizes:
            rows += measure_decoding(self._task(size), contenders, notes=self.notes, done=done)
        return rows

    def growth(self, folder: Path, steps: Steps) -> Results:
        """Rows of `measure_growth` with the first size, in the precision of `auto`; drawn to growth.png in `folder`."""
        settings = self.task.settings
        size = settings.sizes[0]
        done = steps(len(settings.growth_batches) + len(settings.growth_widths))
        rows = measure_growth(self._task(size), self._ours(size), done=done)
        draw_growth(rows, folder / "growth.png", title=f"training {size}, {self.task.device.type}")
        return rows

    def peers(self, folder: Path, steps: Steps) -> Results:
        """Rows of `measure_peers`, for all sizes; whatever has none is named in the notes, its log is in `folder`."""
        settings = self.task.settings
        named = {name: peer for name, peer in settings.peers.items() if peer.environment is not None}
        reasons = {
            name: why_no_peer(peer, self.task.model, self.task.device.type) for name, peer in named.items()
        }
        self.notes.extend(f"{name}: {reason}" for name, reason in reasons.items() if reason is not None)
        peers = {name: peer for name, peer in named.items() if reasons[name] is None}
        ours = training_contenders([], settings.precisions)
        done = steps(len(settings.sizes) * (len(ours) + len(peers)) * settings.repeats)
        rows: Results = []
        for size in settings.sizes:
            task = self._task(size).with_rows(2 * settings.updates)
            rows += measure_peers(task, ours, peers, folder=folder, notes=self.notes, done=done)
        return rows

    def profiles(self, folder: Path) -> None:
        """Writes a profile of each size, in the precision of `auto`, to `folder`."""
        for size in self.task.settings.sizes:
            task = self._task(size).with_rows(self.task.settings.updates)
            write_profile(task, self._ours(size), folder)

    def automatic(self) -> Results:
        """What precision=auto is here for training and each kind of decoding of each size, and why; a row each."""
        settings = self.task.settings
        rows: Results = []
        for size in settings.sizes:
            chosen = {"training": self._training_precision(size)}
            shape = self._shape(size)
            for beam in settings.beam_sizes:
                for batch in (*settings.decoding_batches, 1):
                    chosen[f"decoding, beam {beam}, batch {batch}"] = choose_decoding_precision(
                        self.task.device, **shape, rows=batch * beam
                    )
            rows += [
                {"size": size, "what": what, "precision": precision.name, "reason": precision.reason}
                for what, precision in chosen.items()
            ]
        return rows

    def _ours(self, size: str) -> str:
        return f"{OURS} {self._training_precision(size).name}"

    def _training_precision(self, size: str) -> Precision:
        tokens = self.task.settings.tokens_per_batch
        return choose_training_precision("auto", self.task.device, **self._shape(size), tokens=tokens)

    def _shape(self, size: str) -> dict[str, int]:
        model = self._task(size).model
        return {
            "width": model.width,
            "feed_forward": model.feed_forward,
            "vocabulary": self.task.vocabularies[1],
        }

    def _task(self, size: str) -> Task:
        """Of a model with the numbers, and under the name, of that size; without rows."""
        return replace(self.task, model=replace(self.task.model, **vars(self.task.settings.size(size))))


@contextmanager
def _named(key: str) -> Generator[None]:
    """Raises `UserError`, naming the key, where no valid model is made."""
    try:
        yield
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UserError(f"{key}: {message}") from error
