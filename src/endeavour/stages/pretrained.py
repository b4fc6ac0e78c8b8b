"""The run that `pretrained` names: its weights are what a new run begins with, its vocabularies those of the new text.

So a model is fine-tuned to text of another kind, or after training on pairs both ways (Ding et al. 2021). The new
run's optimizer and schedule begin afresh. Once it has a checkpoint it needs the other no more: whatever became of that
one, it goes on, and is evaluated, with what it holds itself.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from endeavour.config import Config, read_config
from endeavour.data.tokenizer import Tokenizer, Vocabularies
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.stages.run_folder import is_begun, require_model
from endeavour.training.checkpoint import checkpoints_in, file_digest, load_weights, verify
from endeavour.training.state import TrainState

# What of a model may be another: neither the shape of a weight nor what is computed with it depends on it.
FREE = ("name", "dropout", "attention_dropout", "activation_dropout", "embedding_dropout")


def vocabularies(config: Config, run: Path | None = None) -> Vocabularies | None:
    """The (source, target) vocabularies that come with pretrained weights; None where the run learns its own.

    Args:
        run: the folder of the new run, once it is finished.
    """
    if config.pretrained is None:
        return None
    folder = _own_model(run or config.run_folder) if run or is_begun(config) else None
    folder = folder or _pretrained(config) / "model"
    verify(folder)
    return Tokenizer.load(folder / "source.model"), Tokenizer.load(folder / "target.model")


def with_its_vocabulary(config: Config) -> Config:
    """`config` as its run notes it: with the `tokenizer` section by which the pretrained run got its vocabularies.

    Raises:
        UserError: there is no such run, or its vocabularies cannot be the new one's.
    """
    if config.pretrained is None:
        return config
    typed = [argument for argument in sys.argv[1:] if argument.lstrip("+").startswith("tokenizer")]
    if is_begun(config) and _own_model(config.run_folder) is not None:
        saved = read_config(config.run_folder / "config.yaml", newer=config)
        return config if typed else replace(config, tokenizer=saved.tokenizer)
    folder = _pretrained(config)
    theirs = read_config(folder / "config.yaml", newer=config)
    if typed and theirs.tokenizer != config.tokenizer:
        raise UserError(
            f"{folder} brings its own vocabulary ({theirs.tokenizer.name}): leave out {' '.join(typed)}"
        )
    tokenizers = _description(folder)["tokenizers"]
    if tokenizers["source"] != tokenizers["target"]:
        apart = f"{folder} translates {theirs.direction} and has a vocabulary for each side"
        if theirs.direction != config.direction:
            raise UserError(f"{apart}: it cannot begin direction={config.direction}")
        if config.bidirectional:
            raise UserError(
                f"{apart}: bidirectional=true needs one for both, so train it with tokenizer.joint=true"
            )
    return replace(config, tokenizer=theirs.tokenizer)


def require_same_model(config: Config) -> None:
    """Raises `UserError`, with what to add to the command, where the pretrained run has another model."""
    if config.pretrained is None or (is_begun(config) and _own_model(config.run_folder) is not None):
        return
    folder = _pretrained(config)
    theirs, ours = _description(folder)["model"], asdict(config.model)
    free = FREE if theirs["positions"] == "learned" else (*FREE, "max_length")
    wanted = [f"model.{key}={theirs[key]}" for key in ours if key not in free and theirs[key] != ours[key]]
    if wanted:
        raise UserError(f"{folder} has another model than this run: add {' '.join(wanted)}")


def begin_with_its_weights(config: Config, model: Transformer, state: TrainState) -> Path | None:
    """Copies the pretrained weights into the `model` of a run that made no update yet, and notes in `state` which.

    Returns:
        The folder they are from; None where nothing was copied.
    """
    if config.pretrained is None or state.update:
        return None
    folder = _pretrained(config)
    load_weights(model, folder / "model")
    state.pretrained_digest = file_digest(folder / "model" / "weights.safetensors")
    return folder


def _pretrained(config: Config) -> Path:
    """The folder of the run that `config` begins with.

    Raises:
        UserError: there is no such run, it is not finished, or it is the run itself or lies in it.
    """
    assert config.pretrained is not None
    folder = Path(config.output_folder) / config.pretrained
    if folder.is_relative_to(config.run_folder):
        raise UserError(
            f"pretrained={config.pretrained} is the run itself, or in it: give the new one another name=…"
        )
    require_model(folder, config, "pretrained=… needs a finished run")
    return folder


def _own_model(run: Path) -> Path | None:
    """A model folder of the run itself, with its vocabularies; None where it has none yet."""
    found = [
        path for path in (run / "model", *reversed(checkpoints_in(run / "checkpoints"))) if path.is_dir()
    ]
    return next(iter(found), None)


def _description(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "model" / "model.json").read_text("utf-8"))
