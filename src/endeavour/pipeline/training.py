"""The plan of a training, in reading order: teachers first, then the data, then the run, then its scores."""

import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from endeavour.data.corpus import TRAIN, ExtraPairs
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.pipeline.data import prepare, teacher_pairs
from endeavour.pipeline.distillation import (
    Teachers,
    keep_teacher_data,
    teacher_translations,
    train_teachers,
)
from endeavour.pipeline.evaluation_sets import EvaluationSet, choose_evaluation_sets
from endeavour.pipeline.evaluator import Evaluator
from endeavour.pipeline.final_weights import load_final_weights
from endeavour.pipeline.fine_tuning import (
    load_pretrained_weights,
    pretrained_tokenizers,
    with_pretrained_tokenizer,
)
from endeavour.pipeline.improvement import improvement_line, improvement_of
from endeavour.pipeline.preflight import fresh_model, open_checkpoints, preflight, require_trainable
from endeavour.pipeline.seen import ending_lines
from endeavour.pipeline.validation import Validator
from endeavour.progress import reported_progress, say
from endeavour.reports.run_pictures import draw_attention, draw_curves, validation_table
from endeavour.runs.command_lines import play_command
from endeavour.runs.config import RunConfig
from endeavour.runs.run import Run, Summary
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import checkpoints_in, write_model
from endeavour.training.device import choose_device, keep_memory
from endeavour.training.display import TrainingDisplay
from endeavour.training.distributed import (
    Ranks,
    check_local_rank,
    check_several,
    is_alone,
    join_ranks,
    launched,
)
from endeavour.training.graphs import check_graphs
from endeavour.training.log import MetricLog
from endeavour.training.loop import train
from endeavour.training.monitor import Monitor, Validation
from endeavour.training.precision import Precision, choose_training_precision, dtype_of
from endeavour.training.sharding import whole_model
from endeavour.training.state import TrainState
from endeavour.training.trackers import open_tracker, require_tracker
from endeavour.training.tracking import NoTracker, TrackedRun, Tracker

Prune = Callable[[], bool]


def train_run(
    config: RunConfig, command: Sequence[str], *, prune: Prune | None = None, text: PreparedData | None = None
) -> Summary:
    """Trains the run of `config` to its end, resuming it where it stopped, and evaluates it.

    Args:
        command: the words of the command line, for the record.
        prune: asked after each validation whether the run is to end early.
        text: the prepared corpus without translations of teachers, where the caller has it, verified.

    Returns:
        What summary.json holds; in processes other than the main one perhaps nothing.
    Raises:
        Pruned: `prune` said so; no summary.json is written.
        UserError: the run folder holds a run of another config, or another process trains it.
    """
    device = choose_device(config.device)
    if launched():
        check_local_rank(device)
    if config.training.sharded:
        check_several()
    config = with_pretrained_tokenizer(config)
    run = Run.of(config)
    if run.goes_on(config):
        run.require_same(config)
        if run.summary:
            return _nothing_to_do(run)
    elif _is_main_process():
        require_tracker(config.tracking)  # a run that goes on is not held up by it
    check_graphs(config.training.cuda_graphs, device, alone=is_alone())
    data, test_sets, translations = _data(run, config, text, command)
    with join_ranks(device, config.training.communication_timeout) as ranks, ExitStack() as held:
        run = Run.of(config)  # read anew: another process may have trained it meanwhile
        summary: Summary = {}
        if ranks.main:
            held.enter_context(run.lock())
            if not run.goes_on(config):
                run.discard()
                if translations is not None:
                    keep_teacher_data(run, translations)
            else:
                run.require_same(config)
                summary = run.summary
        summary = ranks.broadcast(summary)
        if not summary:
            return _Training(run, config, data, test_sets, ranks, command).train(prune)
    return _nothing_to_do(run)


def _nothing_to_do(run: Run) -> Summary:
    if _is_main_process():
        done = f"{run} is finished: nothing to do"
        print(
            f"{done} (training.restart=true trains it anew, `endeavour eval` scores it otherwise)",
            file=sys.stderr,
        )
    return run.summary


def _is_main_process() -> bool:
    return not launched() or os.environ["RANK"] == "0"


def _data(
    run: Run, config: RunConfig, text: PreparedData | None, command: Sequence[str]
) -> tuple[PreparedData, list[EvaluationSet], list[ExtraPairs] | None]:
    """What the run is trained and evaluated on, and the translations of teachers that a run which begins is to keep.

    What would prevent a start is reported before anything is lost.

    All processes of a run call this, each for itself: the locks of files let one of them build while the others
    wait, however long it takes.
    """
    console = Console(stderr=True, quiet=not _is_main_process())
    begun = run.goes_on(config)
    teachers = None if config.teachers is None else Teachers(config)

    prepared = partial(prepare, config, augmentation=config.augmentation, console=console)
    if begun and teachers is not None:
        data = prepared(tokenizers=run.load_tokenizers(), extra_pairs=teacher_pairs(run))
    else:
        data = text or prepared(tokenizers=pretrained_tokenizers(config))
    test_sets = choose_evaluation_sets(config.evaluation, config.direction, data, list(data.splits))
    require_trainable(config, data)
    if begun or teachers is None:
        return data, test_sets, None
    teachers.check(data)
    if config.teacher_settings and not teachers.seeds:
        console.print("note: teacher_settings change nothing: they are for seeds, and teachers has none")
    if _is_main_process():
        # Before teachers are trained: after a stop of theirs it would be forgotten.
        with run.lock():
            run.discard()
    train_teachers(teachers, lambda teacher: train_run(teacher, command, text=data))
    with reported_progress(console) as progress:
        pairs = teacher_translations(teachers, data, progress)
    # Translations do not change the vocabularies.
    return prepared(tokenizers=data.load_tokenizers(), extra_pairs=pairs), test_sets, pairs


@dataclass(frozen=True)
class _Training:
    """One process's part in the training of a run whose data is there and whose folder is locked."""

    run: Run
    config: RunConfig
    data: PreparedData
    test_sets: Sequence[EvaluationSet]
    ranks: Ranks
    command: Sequence[str]

    def train(self, prune: Prune | None) -> Summary:
        run, config, ranks, device = self.run, self.config, self.ranks, self.ranks.device
        if ranks.main:
            run.begin(config, device, self.command)
        if device.type == "cpu":
            keep_memory()
        precision = ranks.broadcast(self._precision() if ranks.main else None)
        assert precision is not None
        if config.training.preflight:
            preflight(config, self.data, ranks, precision.dtype)
            if config.training.sharded:
                gc.collect()  # its model, in cycles of references, would stay beside the next one
        model, optimizer = fresh_model(config, self.data, ranks)
        checkpoints = open_checkpoints(config, run.folder, self.data)
        state, notes = checkpoints.restore_newest(model, optimizer, rank=ranks.rank, count=ranks.count)
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
            with monitor:
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
            model = whole.to(device)
            made_of = load_final_weights(model, config.training.average, checkpoints, state, validator)
            with atomic_folder(run.model_folder) as partial:
                write_model(partial, model, self.data.load_tokenizers())
            Console(stderr=True).print(validation_table(log.read()))
            improvement = improvement_of(log.read(), config.training.metric)
            say(Console(stderr=True), improvement_line(improvement, state, config.training))
            summary = self._summary(state, made_of, validator(model.eval()))
            summary["still_improving"] = None if improvement is None else improvement.still
            for split, row in summary["test"].items():
                monitor.tested(state.update, split, row)
        finally:
            with suppress(OSError):  # a missing picture is no reason to hide why the run ended
                if ranks.main:
                    draw_curves(log.read(), run.folder / "curves.png", title=config.name)
                    draw_attention(
                        log.read(), run.folder / "attention.png", title=config.name, play=play_command(run)
                    )
            monitor.close()
        run.finish(summary)
        self._show_pictures()
        return summary

    def _precision(self) -> Precision:
        """The precision with which the run began, on any machine; otherwise what `training.precision` means here."""
        settings, model = self.config.training, self.config.model
        for path in reversed(checkpoints_in(self.run.checkpoint_folder)):
            # A damaged one is skipped, as it will be by the loop.
            with suppress(OSError, ValueError, KeyError):
                name = json.loads((path / "state.json").read_text("utf-8"))["state"]["precision"]
                return Precision(dtype_of(name), f"{name}: as this run began")
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
        if state.update and state.data_digest != self.data.content_digest:
            raise UserError(
                f"{self.run} was trained on other data: the corpus has changed since\n"
                "choose another name=…, or delete it (training.restart=true) to throw that run away"
            )
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
        """What a reader wants to know before it begins: what is trained, where, in which precision, how long."""
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

    def _summary(self, state: TrainState, made_of: Sequence[Path], final: Validation) -> Summary:
        """Evaluates the trained run; what summary.json is to hold."""
        config = self.config
        evaluator = Evaluator(
            runs=[self.run],
            decoding=config.decoding,
            quantization="float32",
            settings=config.evaluation,
            device=choose_device(config.device),
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
        }

    def _show_pictures(self) -> None:
        for name in ("curves", "attention"):
            path = self.run.folder / f"{name}.png"
            if path.is_file():
                say(Console(stderr=True), f"{name}: {path}")
        say(Console(stderr=True), f"watch it translate: {play_command(self.run)}")
