"""The parts of a benchmark that need a prepared corpus: tasks of the config's sizes, measured, and what `auto` is.

Knows the sections of the config that a benchmark reads, no screen and no result files but pictures and profiles.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError

from endeavour.benchmark.config import OURS, BenchConfig
from endeavour.benchmark.contenders import TrainingTask, sized, training_contenders
from endeavour.benchmark.decoders import DecodingTask, decoding_contenders
from endeavour.benchmark.decoding import decoding_cases, measure_decoding
from endeavour.benchmark.epochs import measure_epochs
from endeavour.benchmark.growth import measure_growth, widened
from endeavour.benchmark.peers import measure_peers, why_no_peer
from endeavour.benchmark.steps import Results, Steps
from endeavour.benchmark.trace import write_profile
from endeavour.benchmark.training import check_budget, draw_epoch, draw_rows, measure_training
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import exported_positions
from endeavour.model.config import ModelConfig
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
        vocabularies: ids of source and target.
        data: the prepared folder.
        references: those of the config that can be measured here.
        notes: a line for each of what was left out.
    """

    settings: BenchConfig
    model: ModelConfig
    decoding: DecodingConfig
    vocabularies: tuple[int, int]
    data: Path
    references: list[str]
    device: torch.device
    seed: int
    notes: list[str]

    def check(self) -> None:
        """Raises `UserError` for what would otherwise fail after the first parts were measured."""
        settings = self.settings
        trained = {"training", "epochs", "scale", "growth", "peers"}
        budgets = [settings.tokens_per_batch] if trained & set(settings.parts) else []
        budgets += settings.growth_batches if "growth" in settings.parts else []
        budgets += [settings.tokens_per_batch] if settings.profile else []
        if budgets:
            check_budget(self.data, min(budgets))
        for size in settings.sizes:
            _named(f"bench.sizes={size}", lambda size=size: self._sized(size))
        if "growth" in settings.parts:
            first = self._sized(settings.sizes[0])
            for width in settings.growth_widths:
                _named(f"bench.growth_widths={width}", lambda width=width: widened(first, width))
        positions = exported_positions(self.model)
        if "decoding" in settings.parts and settings.decoding_tokens > positions:
            raise UserError(
                f"bench.decoding_tokens={settings.decoding_tokens}: at most the model's {positions} positions"
            )

    def training(self, steps: Steps) -> Results:
        """Rows of `measure_training`, for all sizes."""
        settings = self.settings
        contenders = training_contenders(self.references, settings.precisions)
        done = steps(len(settings.sizes) * len(contenders) * (settings.repeats + 1))
        rows: Results = []
        for size in settings.sizes:
            rows += measure_training(
                self._training_task(size), contenders, repeats=settings.repeats, notes=self.notes, done=done
            )
        return rows

    def epochs(self, steps: Steps) -> Results:
        """Rows of `measure_epochs`, for all sizes, each in the precision of `auto`."""
        settings = self.settings
        first, second = (
            draw_epoch(
                self.data,
                tokens_per_batch=settings.tokens_per_batch,
                seed=self.seed,
                epoch=epoch,
                updates=settings.epoch_updates,
            )
            for epoch in range(2)
        )
        done = steps(len(settings.sizes))
        rows: Results = []
        for size in settings.sizes:
            task = self._training_task(size)
            rows.append(measure_epochs(task, self._ours(size), (first, second), repeats=settings.repeats))
            done()
        return rows

    def decoding_rows(self, steps: Steps) -> Results:
        """Rows of `measure_decoding`, for all sizes."""
        settings = self.settings
        contenders = decoding_contenders(self.references, settings.precisions, self.device)
        cases = decoding_cases(contenders, settings.beam_sizes, settings.decoding_batches)
        done = steps(len(settings.sizes) * len(cases) * settings.repeats)
        rows: Results = []
        for size in settings.sizes:
            task = DecodingTask(
                model=self._sized(size),
                decoding=self.decoding,
                vocabularies=self.vocabularies,
                data=self.data,
                sentences=settings.decoding_sentences,
                latency_sentences=settings.latency_sentences,
                batches=settings.decoding_batches,
                tokens=settings.decoding_tokens,
                beam_sizes=settings.beam_sizes,
                device=self.device,
                seed=self.seed,
            )
            rows += measure_decoding(task, contenders, repeats=settings.repeats, notes=self.notes, done=done)
        return rows

    def growth(self, folder: Path, steps: Steps) -> Results:
        """Rows of `measure_growth` with the first size, in the precision of `auto`; drawn to growth.png in `folder`."""
        settings = self.settings
        size = settings.sizes[0]
        task = self._training_task(size)
        rows = measure_growth(
            task,
            self._ours(size),
            tokens=settings.growth_tokens,
            tokens_per_batch=settings.tokens_per_batch,
            batches=settings.growth_batches,
            widths=settings.growth_widths,
            repeats=settings.repeats,
            done=steps(len(settings.growth_batches) + len(settings.growth_widths)),
        )
        draw_growth(rows, folder / "growth.png", title=f"training {task.model.name}, {self.device.type}")
        return rows

    def peers(self, folder: Path, steps: Steps) -> Results:
        """Rows of `measure_peers`, for all sizes; whatever has none is named in the notes, its log is in `folder`."""
        settings = self.settings
        named = {name: peer for name, peer in settings.peers.items() if peer.environment is not None}
        reasons = {name: why_no_peer(peer, self.model, self.device.type) for name, peer in named.items()}
        self.notes.extend(f"{name}: {reason}" for name, reason in reasons.items() if reason is not None)
        peers = {name: peer for name, peer in named.items() if reasons[name] is None}
        ours = training_contenders([], settings.precisions)
        done = steps(len(settings.sizes) * (len(ours) + len(peers)) * settings.repeats)
        rows: Results = []
        for size in settings.sizes:
            task = self._training_task(size, updates=2 * settings.updates)
            rows += measure_peers(
                task, ours, peers, repeats=settings.repeats, folder=folder, notes=self.notes, done=done
            )
        return rows

    def profiles(self, folder: Path) -> None:
        """Writes a profile of each size, in the precision of `auto`, to `folder`."""
        for size in self.settings.sizes:
            write_profile(self._training_task(size), self._ours(size), folder)

    def automatic(self) -> Results:
        """What precision=auto is here for training and each kind of decoding of each size, and why; a row each."""
        settings = self.settings
        rows: Results = []
        for size in settings.sizes:
            chosen = {"training": self._training_precision(size)}
            shape = self._shape(size)
            for beam in settings.beam_sizes:
                for batch in (*settings.decoding_batches, 1):
                    chosen[f"decoding, beam {beam}, batch {batch}"] = choose_decoding_precision(
                        self.device, **shape, rows=batch * beam
                    )
            rows += [
                {"size": size, "what": what, "precision": precision.name, "reason": precision.reason}
                for what, precision in chosen.items()
            ]
        return rows

    def _ours(self, size: str) -> str:
        return f"{OURS} {self._training_precision(size).name}"

    def _training_precision(self, size: str) -> Precision:
        tokens = self.settings.tokens_per_batch
        return choose_training_precision("auto", self.device, **self._shape(size), tokens=tokens)

    def _shape(self, size: str) -> dict[str, int]:
        model = self._sized(size)
        return {
            "width": model.width,
            "feed_forward": model.feed_forward,
            "vocabulary": self.vocabularies[1],
        }

    def _sized(self, size: str) -> ModelConfig:
        return sized(self.model, self.settings.size(size))

    def _training_task(self, size: str, updates: int | None = None) -> TrainingTask:
        settings = self.settings
        return TrainingTask(
            model=self._sized(size),
            settings=settings,
            vocabularies=self.vocabularies,
            data=self.data,
            rows=draw_rows(
                self.data,
                tokens_per_batch=settings.tokens_per_batch,
                seed=self.seed,
                updates=settings.updates if updates is None else updates,
            ),
            warmup=settings.warmup_updates,
            device=self.device,
            seed=self.seed,
        )


def _named(key: str, make: Callable[[], object]) -> None:
    """Raises `UserError`, naming the key, where `make` would make no valid model."""
    try:
        make()
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UserError(f"{key}: {message}") from error
