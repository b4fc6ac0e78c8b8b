"""The plan of a training, in reading order: pre-training and teachers first, then the data, the run, and its scores."""

import gc
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console

from endeavour.data.corpus import ExtraPairs
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.evaluation.sets import EvaluationSet
from endeavour.pipeline.data import files_changed, prepare, teacher_pairs
from endeavour.pipeline.distillation import (
    Teachers,
    keep_teacher_data,
    teacher_translations,
)
from endeavour.pipeline.evaluation_sets import check_evaluation, choose_evaluation_sets
from endeavour.pipeline.fine_tuning import pretraining_of, take_vocabularies
from endeavour.pipeline.preflight import require_trainable
from endeavour.pipeline.training_process import Prune, TrainingProcess
from endeavour.progress import reported_progress, say
from endeavour.runs.config import RunConfig
from endeavour.runs.locks import FolderBusy
from endeavour.runs.restart import discard, goes_on, require_alone, restart_file, restart_noted
from endeavour.runs.run import OtherRun, Run, Summary
from endeavour.training.device import choose_device
from endeavour.training.distributed import (
    check_local_rank,
    check_several,
    is_alone,
    is_main,
    join_ranks,
    launched,
)
from endeavour.training.graphs import check_graphs
from endeavour.training.trackers import require_tracker


def train_run(
    config: RunConfig, command: Sequence[str], *, prune: Prune | None = None, text: PreparedData | None = None
) -> Summary:
    """Trains the run of `config` to its end, resuming it where it stopped, and evaluates it.

    All processes of a run call this, each for itself until they join: the locks of files let one of them build data
    while the others wait, however long it takes. What would prevent a start is reported before anything is lost.

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
    console = Console(stderr=True, quiet=not is_main())
    run = Run.of(config)
    if goes_on(run, config):
        inputs = _inputs_to_go_on(run, config, device, text, console)
        return _nothing_to_do(run) if inputs is None else _train_together(inputs, device, command, prune)
    with restart_noted(run) if config.training.restart and is_main() else nullcontext():
        inputs = _inputs_to_begin(run, config, device, command, text, console)
        return _train_together(inputs, device, command, prune)


class _Inputs(NamedTuple):
    """What the processes of a run need to train it together."""

    config: RunConfig
    data: PreparedData
    translations: Sequence[ExtraPairs]
    test_sets: Sequence[EvaluationSet]


def _inputs_to_go_on(
    run: Run, config: RunConfig, device: torch.device, text: PreparedData | None, console: Console
) -> _Inputs | None:
    """Those of a run that goes on, which nothing holds up that only a start needs; None if it is finished."""
    config, tokenizers = take_vocabularies(config)
    run.require_same(config)
    if run.is_finished and not files_changed(run, config.corpus, Path(config.data_folder)):
        return None
    check_graphs(config.training.cuda_graphs, device, alone=is_alone())
    translations: list[ExtraPairs] = []
    if config.teachers is not None:
        tokenizers, translations = run.load_tokenizers(), teacher_pairs(run)
    data = text or prepare(config, tokenizers=tokenizers, extra_pairs=translations, console=console)
    return _Inputs(config, data, translations, _test_sets(config, data))


def _inputs_to_begin(
    run: Run,
    config: RunConfig,
    device: torch.device,
    command: Sequence[str],
    text: PreparedData | None,
    console: Console,
) -> _Inputs:
    """Those of a new run, once everything that can be wrong is checked and what it needs is trained."""
    _check_start(run, config, console)
    if first := pretraining_of(config):
        _train_first(first, run, command, "pretrained")
    config, tokenizers = take_vocabularies(config)
    check_graphs(config.training.cuda_graphs, device, alone=is_alone())
    data = text or prepare(config, tokenizers=tokenizers, console=console)
    test_sets = _test_sets(config, data)
    require_trainable(config, data)
    if run.was_begun:
        require_alone(run)
    translations: list[ExtraPairs] = []
    if config.teachers is not None:
        translations = _taught(run, config, data, command, console)
        # They do not change the vocabularies.
        data = prepare(config, tokenizers=data.load_tokenizers(), extra_pairs=translations, console=console)
    return _Inputs(config, data, translations, test_sets)


def _check_start(run: Run, config: RunConfig, console: Console) -> None:
    """Raises `UserError` for what prevents a start and is seen without data."""
    if run.was_begun and not config.training.restart:
        say(
            console,
            f"note: {run} will be thrown away, as training.restart=true said before it was stopped "
            f"(to keep it, stop this and delete {restart_file(run)})",
        )
    run.require_free_place()
    check_evaluation(config.evaluation, config.direction, config.corpus.split_names)
    if is_main():
        require_tracker(config.tracking)
    if config.teachers is not None:
        Teachers(config).check_runs()


def _test_sets(config: RunConfig, data: PreparedData) -> list[EvaluationSet]:
    return choose_evaluation_sets(config.evaluation, config.direction, data, config.corpus.split_names)


def await_summary(run: Run) -> None:
    """Waits until the main process has evaluated a run that is trained; should it die, torchrun ends the others."""
    while launched() and not run.summary:
        time.sleep(1)


def _train_together(
    inputs: _Inputs, device: torch.device, command: Sequence[str], prune: Prune | None
) -> Summary:
    """Joins the processes of the run, and begins or continues it; see `train_run`."""
    config, data, translations, test_sets = inputs
    with join_ranks(device, config.training.communication_timeout) as ranks, ExitStack() as held:
        run = Run.of(config)  # read anew: another process may have trained it meanwhile
        summary: Summary = {}
        begun = False
        if ranks.main:
            held.enter_context(run.lock())
            if begun := goes_on(run, config):
                run.require_same(config)
                summary = run.summary if run.is_finished else {}
        summary = ranks.broadcast(summary)
        if summary:
            run.require_same_data(summary["data_digest"], data.content_digest)
            return _nothing_to_do(run)
        process = TrainingProcess(run, config, data, test_sets, ranks)
        precision = process.rehearse(anew=not begun)
        if ranks.main:
            if not begun:
                discard(run)
                if translations:
                    keep_teacher_data(run, translations)
            run.begin(config, ranks.device, command)
        ranks.gather(None)  # before others look for checkpoints
        return process.train(precision, prune)


def _train_first(
    config: RunConfig, needed_by: Run, command: Sequence[str], key: str, text: PreparedData | None = None
) -> None:
    """Trains what another run needs, unless it is finished; waits for another process that does.

    Args:
        key: of the other run's config, which decides what this one is called.
    """
    first = Run.of(config)
    if is_main() and not first.is_finished:
        print(f"note: {needed_by} needs {first}, which is trained first", file=sys.stderr)
    while True:
        try:
            train_run(config, command, text=text)
            break
        except OtherRun as other:  # which training.restart, of the other run, would not throw away
            raise UserError(
                f"{other.found}\ndelete it, to have it trained anew, or choose another {key}=…"
            ) from other
        except FolderBusy:
            if launched():  # all processes would have to wait together
                raise
        print(f"note: another process trains {first}: waiting for it", file=sys.stderr)
        while first.is_locked:
            time.sleep(1)
    await_summary(first)
    gc.collect()  # a sharded model is in cycles of references, and would stay beside the next one


def _nothing_to_do(run: Run) -> Summary:
    if is_main():
        done = f"{run} is finished: nothing to do"
        print(
            f"{done} (training.restart=true trains it anew, `endeavour eval` scores it otherwise)",
            file=sys.stderr,
        )
    return run.summary


def _taught(
    run: Run, config: RunConfig, data: PreparedData, command: Sequence[str], console: Console
) -> list[ExtraPairs]:
    """Translations of the text `data` by the teachers of a run that begins; those that are seeds are trained first."""
    teachers = Teachers(config)
    teachers.check_data(data)
    if config.teacher_settings and not teachers.seeds:
        console.print("note: teacher_settings change nothing: they are for seeds, and teachers has none")
    for seed in teachers.seeds:
        _train_first(teachers.config_of(seed), run, command, "name", data)
    with reported_progress(console) as progress:
        return teacher_translations(teachers, data, progress)
