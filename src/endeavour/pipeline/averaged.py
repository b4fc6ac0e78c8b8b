"""Runs that are made of checkpoints of another run: their mean, or one of them alone.

Knows run folders and checkpoints; not how either came about.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.runs.config import save_config
from endeavour.runs.locks import lock_folder
from endeavour.runs.names import run_name
from endeavour.runs.run import AVERAGED, Run, Summary
from endeavour.storage import atomic_folder, read_json_object, write_errors, write_json
from endeavour.training.checkpoint import (
    average_weights,
    checkpoints_in,
    load_model,
    update_of,
    write_model,
)
from endeavour.training.state import STOPPED


def average_checkpoints(run: Run, updates: Sequence[int] | None, name: str | None) -> Run:
    """Writes a run whose weights are the mean of checkpoints of `run`, which may be trained meanwhile.

    Args:
        updates: after which the checkpoints were written; None takes all but one that a signal made.
        name: of the new run; None is that of `run` with the first and the last of these updates.

    Returns:
        The new run. Its config is that of `run`, so it is evaluated and exported like it.
    Raises:
        UserError: there is no such checkpoint, or none any more; or there is something of that name.
    """
    folders = _chosen(run, updates)
    ends = sorted({update_of(folders[0]), update_of(folders[-1])})
    name = "-".join(map(str, [run.name, *ends])) if name is None else name
    made = Run(run.root, run_name("name", name, str(run.root)))
    made.require_free_place()
    with lock_folder(made.folder, "written"):
        if made.folder.exists():
            raise UserError(f"{made} is there already: choose another name=…, or delete it")
        model, tokenizers, state = _read(run, folders)
        summary: Summary = {
            "name": made.name,
            "status": AVERAGED,
            "run": run.name,
            "checkpoints": [folder.name for folder in folders],
            "updates": state["update"],
            "data_digest": state["data_digest"],
            "test": {},
        }
        with write_errors(made.folder, "output_folder"), atomic_folder(made.folder) as partial:
            save_config(replace(run.config, name=made.name), partial / "config.yaml")
            with atomic_folder(partial / made.model_folder.name) as model_folder:
                write_model(model_folder, model, tokenizers)
            if run.teacher_data_folder.is_dir():  # of which its data are made
                shutil.copytree(run.teacher_data_folder, partial / run.teacher_data_folder.name)
            write_json(partial / "summary.json", summary)
    return made


def _read(run: Run, folders: Sequence[Path]) -> tuple[Transformer, Tokenizers, dict[str, Any]]:
    """The mean of checkpoints of `run`, and what the last of them notes of the training.

    Raises:
        UserError: one is damaged, or was deleted meanwhile.
    """
    try:
        weights = average_weights(folders, remedy="choose other checkpoints with updates=[…]")
        model, tokenizers = load_model(folders[-1], torch.device("cpu"))
        state = read_json_object(folders[-1] / "state.json")["state"]
    except (UserError, OSError) as error:
        gone = [folder.name for folder in folders if not folder.is_dir()]
        if not gone:
            raise
        raise UserError(
            f"{run}: newer checkpoints have taken the place of {', '.join(gone)} meanwhile; name those that are "
            "there now, or none"
        ) from error
    model.load_state_dict(weights)
    return model, tokenizers, state


def _chosen(run: Run, updates: Sequence[int] | None) -> list[Path]:
    """The checkpoints of these updates, oldest first. Raises `UserError` where there is none of one."""
    there = {update_of(folder): folder for folder in checkpoints_in(run.checkpoint_folder)}
    if not there:
        raise UserError(f"{run} has no checkpoint")
    if updates is None:
        # One that a signal made is no part of the mean in training either.
        return [folder for folder in there.values() if not folder.name.endswith(STOPPED)] or [*there.values()]
    known = f"{run} has those of updates {', '.join(map(str, there))}"
    if not updates:
        raise UserError(f"updates=[] names no checkpoint: {known}")
    for update in updates:
        if update not in there:
            raise UserError(f"updates={list(updates)}: there is no checkpoint of {update}; {known}")
    return [there[update] for update in sorted(set(updates))]
