"""Runs whose models decode together: those that `ensemble` names beside the run itself, and joined teachers."""

from collections.abc import Sequence
from pathlib import Path

import torch

from endeavour.config import Config
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.ensemble import Ensemble
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.saved_config import read_config
from endeavour.stages.run_folder import named_folders, require_model
from endeavour.training.checkpoint import load_model


def further_runs(config: Config) -> list[Path]:
    """The folders of the other runs, in their order; empty where the run decodes alone.

    Raises:
        UserError: one of them is not there or not finished, or is the run itself.
    """
    if config.ensemble is None:
        return []
    root = Path(config.output_folder)
    folders = named_folders("ensemble", config.ensemble, root)
    if not folders:
        raise UserError('ensemble names no run: ensemble="NAME NAME", or null for the run alone')
    for folder in folders:
        if folder == config.run_folder:
            raise UserError(
                f"ensemble={config.ensemble}: {folder.relative_to(root)} is the run itself; name further ones"
            )
        require_model(folder, config, "an ensemble needs finished runs")
    return folders


def join_models(
    run: Path,
    model: Transformer,
    tokenizers: Tokenizers,
    others: Sequence[Path],
    config: Config,
    device: torch.device,
) -> Transformer | Ensemble:
    """`model`, that of `run`, with those of the other runs, if there are any.

    Raises:
        UserError: a run translates in the other direction, has other vocabularies, or is damaged.
    """
    if not others:
        return model
    models = [model]
    direction = read_config(run / "config.yaml", newer=config).direction
    for folder in others:
        theirs = read_config(folder / "config.yaml", newer=config).direction
        if theirs != direction:
            raise UserError(f"{folder} translates {theirs} and {run} {direction}: no ensemble of them")
        other, its_tokenizers = load_model(folder / "model", device)
        require_same_vocabularies(run, tokenizers, folder, its_tokenizers)
        models.append(other)
    return Ensemble(models)


def require_same_vocabularies(run: Path, tokenizers: Tokenizers, other: Path, theirs: Tokenizers) -> None:
    """Raises `UserError` where the models of two runs cannot decode together."""
    for side, ours, its in zip(("source", "target"), tokenizers, theirs, strict=True):
        if ours.digest != its.digest:
            raise UserError(
                f"{other} has another {side} vocabulary than {run}: "
                "only models over the same tokenizers decode together"
            )
