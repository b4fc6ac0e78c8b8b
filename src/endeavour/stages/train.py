"""The training stage: prepare the data, train, choose the final weights, evaluate them."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from endeavour.config import Config, to_dict
from endeavour.data.corpus import TRAIN
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.stages.evaluate import check_splits, evaluate_splits
from endeavour.stages.final_weights import load_final_weights
from endeavour.stages.preflight import fresh_model, open_checkpoints, preflight
from endeavour.stages.prepare import prepare
from endeavour.stages.pretrained import begin_with_its_weights, require_same_model, with_its_vocabulary
from endeavour.stages.run_folder import begin, find_earlier, is_begun, is_thrown_away, lock, write_json
from endeavour.stages.teachers import check_lessons, check_teachers, train_teachers
from endeavour.stages.validation import Validator
from endeavour.training.checkpoint import atomic_folder, write_model
from endeavour.training.curves import draw_attention, draw_curves, validation_table
from endeavour.training.device import choose_device, keep_memory
from endeavour.training.display import TrainingDisplay
from endeavour.training.log import MetricLog
from endeavour.training.loop import Validation, show_validation
from endeavour.training.loop import train as train_model
from endeavour.training.precision import Precision, choose_training_precision
from endeavour.training.processes import Processes, check_local_rank, launched, processes
from endeavour.training.state import TrainState
from endeavour.training.tracking import Tracker


def train(config: Config, give_up: Callable[[], bool] | None = None) -> dict[str, Any]:
    """Trains the run of `config` to its end, from wherever it stands, and evaluates it.

    Returns:
        What summary.json holds.
    Raises:
        GivenUp: `give_up`, asked after each validation, said so; no summary.json is written.
        UserError: the run folder holds a run of another config, or another process trains it.
    """
    if config.decoding.engine != "pytorch":
        raise UserError(
            f"decoding.engine={config.decoding.engine} needs an export, and so a trained run: train without it first"
        )
    config = with_its_vocabulary(config)
    require_same_model(config)
    device = choose_device(config.device)
    if launched():
        check_local_rank(device)
    console = Console(stderr=True, quiet=launched() and os.environ["RANK"] != "0")
    taught = config.teachers is not None and not is_begun(config)
    if taught:
        check_teachers(config)
    if taught or (is_thrown_away(config) and not launched()):
        # What would keep the run from beginning has to be known before an old one is gone, or teachers are trained.
        data = prepare(replace(config, teachers=None), console)
        check_splits(config, data, list(data.splits))
        if taught:
            check_lessons(config, data)
    if config.teachers is not None:
        _begin_with_teachers(config, untaught=taught)
    if launched():
        # Here the others may wait for the one that builds, however long it takes.
        prepare(config, console)
    with processes(device, config.training.communication_timeout) as together, ExitStack() as held:
        summary = None
        if together.main:
            held.enter_context(lock(config.run_folder))
            summary = find_earlier(config)
        summary = together.from_main(summary)
        if summary is None:
            return _train(config, together, give_up)
        if not together.main:
            return summary
    done = (
        f"{config.run_folder} is finished: nothing to do "
        "(training.restart=true trains it anew, `endeavour eval` scores it otherwise)"
    )
    print(done, file=sys.stderr)
    return summary


def _begin_with_teachers(config: Config, *, untaught: bool) -> None:
    """Throws an old run away, where that is asked for, and trains those teachers of a new one that are seeds."""
    if not launched() or os.environ["RANK"] == "0":
        held = lock(config.run_folder)
        try:
            # Before teachers are trained: after a stop of theirs it would be forgotten.
            find_earlier(config)
        finally:
            held.release()
    if untaught:
        train_teachers(config, train)


def _train(config: Config, together: Processes, give_up: Callable[[], bool] | None) -> dict[str, Any]:
    main, device = together.main, together.device
    console = Console(stderr=True, quiet=not main)  # one process speaks for all
    folder = config.run_folder
    data = prepare(config, Console(stderr=True, quiet=launched()), keep=main)
    if main:
        # What is not there should be known now, not after training.
        check_splits(config, data, list(data.splits))
        begin(config, device)
    if device.type == "cpu":
        keep_memory()
    tokenizers = data.load_tokenizers()
    # All ranks compute in what one of them measured.
    precision = together.from_main(_choose_precision(config, tokenizers, device) if main else None)
    assert precision is not None
    if config.training.preflight:
        preflight(config, data, together, precision.dtype)

    model, optimizer = fresh_model(config, data, device)
    checkpoints = open_checkpoints(config, folder, data)
    state, notes = checkpoints.restore_newest(model, optimizer, rank=together.rank, count=together.count)
    pretrained = begin_with_its_weights(config, model, state)
    if pretrained is not None:
        notes.append(f"begins with the weights of {pretrained}")
    _check_data(state, data, folder)
    _check_start(state, together, folder)
    log = MetricLog(folder / "log.jsonl" if main else Path(os.devnull))
    log.cut_after(state.update or -1)  # at its beginning a run has noted nothing
    validator = Validator(data, tokenizers, config, precision.dtype)
    train_data = ParallelDataset.open(data.folder, "train")
    # Opened last: what fails before `try` would leave it open, to be taken by the next run of this process.
    tracker = Tracker(
        config.tracking if main else replace(config.tracking, mode="none"),
        name=config.name,
        run_id=state.tracking_id,
        config=to_dict(config),
        folder=folder,
    )
    state.tracking_id = tracker.id
    display = TrainingDisplay(console, total_updates=config.training.max_updates, done=state.update)
    try:
        with display:
            _announce(display, config, data, model, together, state, notes, precision)
            if pretrained is not None and main:
                show_validation(validator(model.eval()), 0, log, tracker, display)
            state = train_model(
                model,
                train_data,
                config.training,
                seed=config.seed,
                precision=precision.dtype,
                processes=together,
                optimizer=optimizer,
                state=state,
                checkpoints=checkpoints,
                log=log,
                validate=validator,
                give_up=give_up,
                tracker=tracker,
                display=display,
            )
        together.leave()  # the others need not wait for the evaluation
        if not main:
            return {}
        made_of = load_final_weights(model, config.training.average, checkpoints, state, validator)
        with atomic_folder(folder / "model") as partial:
            write_model(partial, model, tokenizers)
        console.print(validation_table(log.read()))
        summary = _summary(config, data, state, made_of, validator(model.eval()))
        for split, row in summary["test"].items():
            tracker.log({f"{split}/{key}": value for key, value in row.items()}, state.update)
    finally:
        with suppress(OSError):  # a picture less is no reason to hide why the run ended
            if main:
                draw_curves(log.read(), folder / "curves.png", title=config.name)
                draw_attention(log.read(), folder / "attention.png", title=config.name)
        tracker.finish()
    write_json(folder / "summary.json", summary)
    for name in ("curves", "attention"):
        if (folder / f"{name}.png").is_file():
            console.print(f"{name}: {folder / name}.png", markup=False, highlight=False, soft_wrap=True)
    return summary


def _summary(
    config: Config, data: PreparedData, state: TrainState, made_of: Sequence[Path], final: Validation
) -> dict[str, Any]:
    """Evaluates the trained run; what summary.json is to hold."""
    return {
        "name": config.name,
        "status": "finished",
        "updates": state.update,
        "minutes": round(state.seconds / 60, 2),
        "data_digest": state.data_digest,
        "pretrained_digest": state.pretrained_digest or None,
        "checkpoints": [path.name for path in made_of],
        "validation": {"loss": final.loss, "perplexity": final.perplexity, "bleu": final.bleu},
        "test": evaluate_splits(config, config.run_folder, data, reserved=list(data.splits)),
    }


def _check_data(state: TrainState, data: PreparedData, folder: Path) -> None:
    """Raises `UserError` where a run would go on with other data than it began with."""
    if state.update and state.data_digest != data.content_digest:
        raise UserError(
            f"{folder} was trained on other data: the corpus has changed since\n"
            "choose another name=…, or delete it (training.restart=true) to throw that run away"
        )
    state.data_digest = data.content_digest


def _check_start(state: TrainState, together: Processes, folder: Path) -> None:
    """Raises `UserError` where not all processes begin from the same checkpoint and data."""
    if len(set(together.gather((state.update, state.data_digest)))) > 1:
        raise UserError(
            f"{folder}: the processes of this run see different checkpoints or data; all hosts need the same "
            "output_folder and data_folder, on a file system that they share"
        )


def _choose_precision(config: Config, tokenizers: Tokenizers, device: torch.device) -> Precision:
    return choose_training_precision(
        config.training.precision,
        device,
        width=config.model.width,
        feed_forward=config.model.feed_forward,
        vocabulary=tokenizers[1].vocabulary_size,
        tokens=config.training.tokens_per_batch,
    )


def _announce(
    display: TrainingDisplay,
    config: Config,
    data: PreparedData,
    model: Transformer,
    together: Processes,
    state: TrainState,
    notes: list[str],
    precision: Precision,
) -> None:
    device = together.device
    for line in notes:
        display.note(line)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    where = f"{device}, {precision.name}"
    if device.type == "cpu":
        where += f", {torch.get_num_threads()} threads"
    if not together.alone:
        where += f", {together.count} processes"
    display.note(f"run: {config.run_folder} ({config.model.name}, {parameters:,} parameters, {where})")
    display.note(f"precision: {precision.reason}")
    settings = config.training
    if settings.max_updates is not None:
        counts = data.splits[TRAIN]
        batches = math.ceil(max(counts["source_tokens"], counts["target_tokens"]) / settings.tokens_per_batch)
        # An update has no batches of two epochs.
        epochs = settings.max_updates / math.ceil(batches / settings.accumulate)
        display.note(
            f"ends after {settings.max_updates:,} updates at the latest: "
            f"some {epochs:,.1f} epochs of {counts['pairs']:,} pairs"
        )
        if settings.max_updates <= settings.warmup_updates:
            display.note(
                f"note: the learning rate rises to the end, for training.warmup_updates={settings.warmup_updates} "
                f"is not less than training.max_updates={settings.max_updates}"
            )
    if state.update:
        display.note(f"resuming after update {state.update}")
