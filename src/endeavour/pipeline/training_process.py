"""One process's part in a training: from the first rehearsal to the final weights and their scores.

Its data are there, and its run's folder is locked. Knows a run and what is said of it; not its teachers, nor updates.
"""

import gc
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console

from endeavour.data.corpus import TRAIN
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.evaluation.sets import EvaluationSet
from endeavour.model.transformer import Transformer
from endeavour.pipeline.evaluator import Evaluator
from endeavour.pipeline.final_weights import load_final_weights
from endeavour.pipeline.fine_tuning import load_pretrained_weights
from endeavour.pipeline.improvement import improvement_line, improvement_of
from endeavour.pipeline.preflight import fresh_model, open_checkpoints, preflight
from endeavour.pipeline.seen import ending_lines
from endeavour.pipeline.validation import Validator
from endeavour.progress import say
from endeavour.reports.run_pictures import draw_attention, draw_curves, validation_table
from endeavour.runs.command_lines import play_command
from endeavour.runs.config import RunConfig
from endeavour.runs.run import Run, Summary
from endeavour.storage import atomic_folder, read_json_object
from endeavour.training.checkpoint import checkpoints_in, write_model
from endeavour.training.device import keep_memory
from endeavour.training.display import TrainingDisplay
from endeavour.training.distributed import Ranks
from endeavour.training.log import MetricLog
from endeavour.training.loop import train
from endeavour.training.monitor import Monitor
from endeavour.training.precision import Precision, choose_training_precision
from endeavour.training.sharding import whole_model
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.trackers import open_tracker
from endeavour.training.tracking import NoTracker, TrackedRun, Tracker

Prune = Callable[[], bool]


@dataclass(frozen=True)
class TrainingProcess:
    """One process's part in the training of a run whose folder is locked."""

    run: Run
    config: RunConfig
    data: PreparedData
    test_sets: Sequence[EvaluationSet]
    ranks: Ranks

    def rehearse(self, *, anew: bool) -> Precision:
        """Finds what would fail later, before anything is written or thrown away, and the precision to train with.

        Args:
            anew: whether what was trained in the folder is to be thrown away.
        """
        config, ranks = self.config, self.ranks
        if ranks.device.type == "cpu":
            keep_memory()
        precision = ranks.broadcast(self._precision(anew=anew) if ranks.main else None)
        assert precision is not None
        if config.training.preflight:
            preflight(config, self.data, ranks, precision.dtype)
            if config.training.sharded:
                gc.collect()  # its model, in cycles of references, would stay beside the next one
        return precision

    def train(self, precision: Precision, prune: Prune | None) -> Summary:
        """Trains the run, which was begun: its config is written."""
        run, config, ranks, device = self.run, self.config, self.ranks, self.ranks.device
        model, optimizer = fresh_model(config, self.data, ranks)
        checkpoints = open_checkpoints(config, run.folder, self.data)
        state, notes = checkpoints.restore_newest(model, optimizer, ranks)
        state.precision = precision.name
        pretrained = load_pretrained_weights(config, model, state)
        if pretrained is not None:
            notes.append(f"begins with the weights of {pretrained}")
        self._check_start(state)
        validator = Validator(self.data, config, precision.dtype)
        parts = {name: counts["pairs"] for name, counts in self.data.parts.items()}
        train_data = ParallelDataset.open(self.data.folder, TRAIN, parts)
        log = MetricLog(run.folder / "log.jsonl" if ranks.main else Path(os.devnull))
        log.cut_after(state.update or -1)  # at its beginning a run has noted nothing
        # Opened last: what fails before `try` would leave it open, to be taken by the next run of this process.
        monitor = self._open_monitor(state, log)
        try:
            with monitor.display:
                for line in (*notes, *self._announcement(model, state, precision)):
                    monitor.note(line)
                if pretrained is not None and (start := whole_model(model, keep=ranks.main)) is not None:
                    monitor.validated(0, validator(start.to(device).eval()))
                    del start  # a copy where the model is sharded
                state = train(
                    model,
                    train_data,
                    config.training,
                    seed=config.seed,
                    precision=precision.dtype,
                    ranks=ranks,
                    optimizer=optimizer,
                    state=state,
                    checkpoints=checkpoints,
                    monitor=monitor,
                    validate=validator,
                    prune=prune,
                )
            whole = whole_model(model, keep=ranks.main)
            ranks.leave()  # the others need not wait for the evaluation
            if whole is None:
                return {}
            summary = self._finish(whole.to(device), checkpoints, state, validator, log)
            for split, row in summary["test"].items():
                monitor.tested(state.update, split, row)
            run.finish(summary)  # before a tracker is waited for
        finally:
            if ranks.main:
                self._draw(log)
            monitor.close()
        self._show_pictures()
        return summary

    def _precision(self, *, anew: bool) -> Precision:
        """The precision with which the run began, on any machine; otherwise what `training.precision` means here."""
        settings, model = self.config.training, self.config.model
        for path in [] if anew else reversed(checkpoints_in(self.run.checkpoint_folder)):
            # A damaged one is skipped, as it will be by the loop.
            with suppress(OSError, ValueError, KeyError):
                name = read_json_object(path / "state.json")["state"]["precision"]
                return Precision(name, f"{name}: as this run began")
        return choose_training_precision(
            settings.precision,
            self.ranks.device,
            width=model.width,
            feed_forward=model.feed_forward,
            vocabulary=self.data.load_tokenizers()[1].vocabulary_size,
            tokens=settings.tokens_per_batch,
        )

    def _check_start(self, state: TrainState) -> None:
        """Raises `UserError` where the run would continue with other data than it began with, or processes differ."""
        if state.update:
            self.run.require_same_data(state.data_digest, self.data.content_digest)
        state.data_digest = self.data.content_digest
        if len(set(self.ranks.gather((state.update, state.data_digest)))) > 1:
            raise UserError(
                f"{self.run}: the processes of this run see different checkpoints or data; all hosts need the same "
                "output_folder and data_folder, on a file system that they share"
            )

    def _open_monitor(self, state: TrainState, log: MetricLog) -> Monitor:
        main, config = self.ranks.main, self.config
        console = Console(stderr=True, quiet=not main)  # one process speaks for all
        display = TrainingDisplay(console, total_updates=config.training.max_updates, done=state.update)
        tracker: Tracker = NoTracker(state.tracking_id)
        if main:
            tracked = TrackedRun(config.name, asdict(config), self.run.folder, self.run.root, state.update)
            tracker = open_tracker(config.tracking, tracked, tracking_id=state.tracking_id, note=display.note)
        state.tracking_id = tracker.id
        return Monitor(log=log, tracker=tracker, display=display)

    def _announcement(self, model: Transformer, state: TrainState, precision: Precision) -> list[str]:
        """What a reader needs to know before it begins: what is trained, where, in which precision, how long."""
        config, device = self.config, self.ranks.device
        parameters = sum(parameter.numel() for parameter in model.parameters())
        where = str(device)
        if device.type == "cpu":
            where += f", {torch.get_num_threads()} threads"
        if not self.ranks.alone:
            where += f", {self.ranks.count} processes" + (", sharded" if config.training.sharded else "")
        lines = [
            f"run: {self.run} ({config.model.name}, {parameters:,} parameters, {where})",
            f"precision: {precision.reason}",
            *ending_lines(config, self.data),
        ]
        if state.update:
            lines.append(f"resuming after update {state.update}")
        return lines

    def _finish(
        self,
        model: Transformer,
        checkpoints: Checkpoints,
        state: TrainState,
        validator: Validator,
        log: MetricLog,
    ) -> Summary:
        """Writes the final weights, says how it went, and evaluates them: what summary.json is to hold."""
        run, config = self.run, self.config
        made_of = load_final_weights(model, config.training.average, checkpoints, state, validator)
        with atomic_folder(run.model_folder) as partial:
            write_model(partial, model, self.data.load_tokenizers())
        console = Console(stderr=True)
        console.print(validation_table(log.read()))
        improvement = improvement_of(log.read(), config.training.metric)
        say(console, improvement_line(improvement, state, config.training))
        final = validator(model.eval())
        evaluator = Evaluator(
            runs=[run],
            asked=config.decoding,
            settings=config.evaluation,
            device=self.ranks.device,
            training_texts=None if self.data.training_text is None else [self.data.training_text],
        )
        return {
            "name": config.name,
            "status": "finished",
            "updates": state.update,
            "minutes": round(state.seconds / 60, 2),
            "precision": state.precision,
            "data_digest": state.data_digest,
            "pretrained_digest": state.pretrained_digest or None,
            "checkpoints": [path.name for path in made_of],
            "validation": {"loss": final.loss, "perplexity": final.perplexity, "bleu": final.bleu},
            "test": evaluator.evaluate(self.test_sets),
            "still_improving": None if improvement is None else improvement.still,
        }

    def _draw(self, log: MetricLog) -> None:
        with suppress(OSError):  # a missing picture is no reason to hide why the run ended
            rows, folder, title = log.read(), self.run.folder, self.config.name
            draw_curves(rows, folder / "curves.png", title=title, r_drop=self.config.training.r_drop)
            draw_attention(rows, folder / "attention.png", title=title, play=play_command(self.run))

    def _show_pictures(self) -> None:
        for name in ("curves", "attention"):
            path = self.run.folder / f"{name}.png"
            if path.is_file():
                say(Console(stderr=True), f"{name}: {path}")
        if not self.run.restores:
            say(Console(stderr=True), f"watch it translate: {play_command(self.run)}")
