"""The run that `pretrained` names: its weights are what a new run begins with, its vocabularies those of the new text.

So a model is fine-tuned to text of another kind, or after training on pairs both ways (Ding et al. 2021). The new
run's optimizer and schedule begin afresh; once it is finished it needs the other no more.
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
from endeavour.stages.run_folder import named_folders, require_model
from endeavour.training.checkpoint import file_digest, load_weights, verify
from endeavour.training.state import TrainState

# What of a model may be another: neither the shape of a weight nor what is computed with it depends on it.
FREE = ("name", "dropout", "attention_dropout", "activation_dropout", "embedding_dropout")


def pretrained_folder(config: Config) -> Path | None:
    """The folder of the run that `config` begins with; None where it begins from nothing.

    Raises:
        UserError: there is no such run, it is not finished, or it is the run itself.
    """
    if config.pretrained is None:
        return None
    folders = named_folders("pretrained", config.pretrained, Path(config.output_folder))
    if len(folders) != 1:
        raise UserError(
            f"pretrained={config.pretrained}: name one finished run, or null to begin from nothing"
        )
    if folders[0] == config.run_folder:
        raise UserError(f"pretrained={config.pretrained} is the run itself: give the new one another name=…")
    require_model(folders[0], config, "pretrained=… needs a finished run")
    return folders[0]


def vocabularies(config: Config, run: Path | None = None) -> Vocabularies | None:
    """The (source, target) vocabularies that come with pretrained weights; None where the run learns its own.

    Args:
        run: the folder of the new run once it is finished: it has them too.
    """
    folder = run if run is not None and config.pretrained is not None else pretrained_folder(config)
    if folder is None:
        return None
    model = folder / "model"
    verify(model)
    return Tokenizer.load(model / "source.model"), Tokenizer.load(model / "target.model")


def with_its_vocabulary(config: Config) -> Config:
    """`config` as its run notes it: with the `tokenizer` section by which the pretrained run got its vocabularies.

    Raises:
        UserError: the pretrained run has another model, or its vocabularies are for the other direction.
    """
    folder = pretrained_folder(config)
    if folder is None:
        return config
    theirs = read_config(folder / "config.yaml", newer=config)
    typed = [argument for argument in sys.argv[1:] if argument.lstrip("+").startswith("tokenizer")]
    if typed and theirs.tokenizer != config.tokenizer:
        raise UserError(
            f"{folder} brings its own vocabulary ({theirs.tokenizer.name}): leave out {' '.join(typed)}"
        )
    description: dict[str, Any] = json.loads((folder / "model" / "model.json").read_text("utf-8"))
    tokenizers = description["tokenizers"]
    if theirs.direction != config.direction and tokenizers["source"] != tokenizers["target"]:
        raise UserError(
            f"{folder} translates {theirs.direction} and has a vocabulary for each side: it cannot begin "
            f"direction={config.direction}"
        )
    _require_same_model(description["model"], asdict(config.model), folder)
    return replace(config, tokenizer=theirs.tokenizer)


def _require_same_model(theirs: dict[str, Any], ours: dict[str, Any], folder: Path) -> None:
    free = FREE if theirs["positions"] == "learned" else (*FREE, "max_length")
    wanted = [f"model.{key}={theirs[key]}" for key in ours if key not in free and theirs[key] != ours[key]]
    if wanted:
        raise UserError(f"{folder} has another model than this run: add {' '.join(wanted)}")


def begin_with_its_weights(config: Config, model: Transformer, state: TrainState) -> Path | None:
    """Copies the pretrained weights into the `model` of a run that made no update yet, and notes in `state` which.

    Returns:
        The folder they are from; None where nothing was copied.
    """
    folder = pretrained_folder(config) if state.update == 0 else None
    if folder is None:
        return None
    load_weights(model, folder / "model")
    state.pretrained_digest = file_digest(folder / "model" / "weights.safetensors")
    return folder
