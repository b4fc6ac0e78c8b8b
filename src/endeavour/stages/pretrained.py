"""The run that `pretrained` names: its weights are what a new run begins with, its vocabularies those of the new text.

So a model is fine-tuned to text of another kind. The new run's optimizer and schedule begin afresh. Once it has a
checkpoint it needs the other no more: whatever became of that one, it goes on, and is evaluated, with its own.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from endeavour.config import Config
from endeavour.data.tokenizer import Tokenizers, load_tokenizers
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.saved_config import read_config
from endeavour.stages.run_folder import is_begun, require_model
from endeavour.storage import DIGESTS, file_digest, verify
from endeavour.training.checkpoint import checkpoints_in, load_weights
from endeavour.training.state import TrainState

# What of a model may be another: neither the shape of a weight nor what is computed with it depends on it.
FREE = ("name", "dropout", "attention_dropout", "activation_dropout", "embedding_dropout")


def vocabularies(config: Config, run: Path | None = None) -> Tokenizers | None:
    """The (source, target) vocabularies that come with pretrained weights; None where the run learns its own.

    Args:
        run: the folder of the new run, once it is finished.
    """
    if config.pretrained is None:
        return None
    folder = _own_model(run) if run else _begun_model(config)
    if folder is None:
        folder = _pretrained(config) / "model"
        verify(folder)
    return load_tokenizers(folder)


def with_its_vocabulary(config: Config) -> Config:
    """`config` as its run notes it: with the `tokenizer` section by which the pretrained run got its vocabularies.

    Raises:
        UserError: there is no such run, or its vocabularies cannot be the new one's.
    """
    if config.pretrained is None:
        return config
    typed = [argument for argument in sys.argv[1:] if argument.lstrip("+").startswith("tokenizer")]
    begun = _begun_model(config)
    folder = _pretrained(config) if begun is None else config.run_folder
    theirs = read_config(folder / "config.yaml", newer=config)
    if typed and theirs.tokenizer != config.tokenizer:
        raise UserError(
            f"{folder} brings its own vocabulary ({theirs.tokenizer.name}): leave out {' '.join(typed)}"
        )
    if begun is not None:
        return replace(config, tokenizer=theirs.tokenizer)
    tokenizers = _description(folder)["tokenizers"]
    if theirs.direction != config.direction and tokenizers["source"] != tokenizers["target"]:
        raise UserError(
            f"{folder} translates {theirs.direction} and has a vocabulary for each side: it cannot begin "
            f"direction={config.direction}"
        )
    return replace(config, tokenizer=theirs.tokenizer)


def require_same_model(config: Config) -> None:
    """Raises `UserError`, with what to add to the command, where the pretrained run has another model."""
    if config.pretrained is None or _begun_model(config) is not None:
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


def _begun_model(config: Config) -> Path | None:
    """The newest model of the run itself, if it was begun, and with the same pretrained run; None otherwise."""
    if not is_begun(config):
        return None
    saved = read_config(config.run_folder / "config.yaml", newer=config)
    return _own_model(config.run_folder) if saved.pretrained == config.pretrained else None


def _own_model(run: Path) -> Path | None:
    """The newest model folder in a run's whose vocabularies are whole; None where there is none."""
    for folder in (run / "model", *reversed(checkpoints_in(run / "checkpoints"))):
        try:
            digests: dict[str, str] = json.loads((folder / DIGESTS).read_text("utf-8"))
            if all(file_digest(folder / name) == digests[name] for name in ("source.model", "target.model")):
                return folder
        except (OSError, ValueError, KeyError):  # damaged, which is for those to say who need all of it
            continue
    return None


def _description(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "model" / "model.json").read_text("utf-8"))
