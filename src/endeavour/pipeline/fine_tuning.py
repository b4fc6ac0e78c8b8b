"""The run that `pretrained` names: a new run begins with its weights and uses its vocabularies.

So a model is fine-tuned on text of another kind, or learns something else first, in a run that is trained for it. The
other may be a checkpoint from elsewhere (`imported.py`), which also says what the model is. The new run's optimizer and
schedule start from scratch. Once it has a checkpoint it no longer needs the other: whatever happens to that one, it
continues, and is evaluated, with its own.
"""

import sys
from dataclasses import asdict, replace
from pathlib import Path

from endeavour.data.tokenizer import Tokenizers
from endeavour.errors import UserError
from endeavour.model.config import ModelConfig
from endeavour.model.transformer import Transformer
from endeavour.pipeline.imported import imported_run, run_named
from endeavour.runs.choice import require_trained
from endeavour.runs.config import RunConfig, differing_keys, pretraining_config
from endeavour.runs.names import is_imported
from endeavour.runs.restart import goes_on
from endeavour.runs.run import Run
from endeavour.settings import validated
from endeavour.training.checkpoint import checkpoints_in, load_weights
from endeavour.training.distributed import is_main
from endeavour.training.state import TrainState

# What of a model may differ: neither the shape of a weight nor what is computed with it depends on it.
FREE = ("name", "dropout", "attention_dropout", "activation_dropout", "embedding_dropout")


def pretraining_of(config: RunConfig) -> RunConfig | None:
    """The config of the run that is to be trained first, for this one to begin with; None where there is no such run.

    Raises:
        UserError: it is the run itself or lies in it.
    """
    first = pretraining_config(config)
    if first is None or _begun(config):
        return None
    run = Run.of(first)
    _require_apart(run, config)
    changed = differing_keys(first, run.config) if run.has_config else []
    # One that was stopped while it was evaluated is finished; one that came without its checkpoints is taken as it is.
    stopped = bool(checkpoints_in(run.checkpoint_folder)) and not (run.summary or changed or run.is_locked)
    if not run.is_trained or stopped:
        _require_same_model(run, first.model, config)
        return first
    if changed and is_main():
        print(
            f"note: {run} was trained with other settings than pretraining_settings ask for "
            f"({'; '.join(changed[:3])}{'; …' * (len(changed) > 3)})",
            file=sys.stderr,
        )
    return None


def take_vocabularies(config: RunConfig) -> tuple[RunConfig, Tokenizers | None]:
    """The vocabularies of the pretrained run, and `config` with the `tokenizer` section by which it got them.

    With a checkpoint from elsewhere also with its `model`, except for what may differ.

    Returns:
        `config` as it is, and None, where the run learns its own.
    Raises:
        UserError: the run is not there, or its model or vocabularies cannot be the new one's.
    """
    if config.pretrained is None:
        return config, None
    if run := _begun(config):
        return _with_sections_of(run.config, config), run.load_tokenizers()
    pretrained = pretrained_run(config)
    pretrained.verify_model()
    theirs = pretrained.config
    if theirs.tokenizer != config.tokenizer and is_main():
        print(f"note: the vocabulary is that of {pretrained} ({theirs.tokenizer.name})", file=sys.stderr)
    if theirs.direction != config.direction:
        if not theirs.tokenizer.joint:
            raise UserError(
                f"{pretrained} translates {theirs.direction} and has a vocabulary for each side: it cannot begin "
                f"direction={config.direction}"
            )
        if not pretrained.restores and is_main():
            print(
                f"note: {pretrained} translates {theirs.direction}, not {config.direction}", file=sys.stderr
            )
    config = _with_sections_of(theirs, config)
    _require_same_model(pretrained, theirs.model, config)
    return config, pretrained.load_tokenizers()


def load_pretrained_weights(config: RunConfig, model: Transformer, state: TrainState) -> Run | None:
    """Copies the pretrained weights into the `model` of a run that has made no update yet, and notes in `state` which.

    Returns:
        The run they are from; None where nothing was copied.
    """
    if config.pretrained is None or state.update:
        return None
    pretrained = pretrained_run(config)
    load_weights(model, pretrained.model_folder)
    state.pretrained_digest = pretrained.weights_digest
    return pretrained


def _begun(config: RunConfig) -> Run | None:
    """The run of `config` where it goes on from the same pretrained weights, which it no longer needs then."""
    run = Run.of(config)
    return run if goes_on(run, config) and run.config.pretrained == config.pretrained else None


def pretrained_run(config: RunConfig) -> Run:
    """The run that `config` begins with.

    Raises:
        UserError: there is no such run, it is not finished, or it is the run itself or lies in it.
    """
    assert config.pretrained is not None
    pretrained = run_named(Path(config.output_folder), config.pretrained)
    _require_apart(pretrained, config)
    if is_imported(config.pretrained):
        return imported_run(config, config.pretrained)
    require_trained(pretrained, "pretrained=… needs a finished run")
    return pretrained


def _require_apart(pretrained: Run, config: RunConfig) -> None:
    if pretrained.folder.is_relative_to(Run.of(config).folder):
        raise UserError(
            f"pretrained={config.pretrained} is the run itself, or in it: give the new one another name=…"
        )


def _with_sections_of(theirs: RunConfig, config: RunConfig) -> RunConfig:
    assert config.pretrained is not None
    model = config.model
    if is_imported(config.pretrained):
        model = replace(theirs.model, **{key: getattr(config.model, key) for key in FREE})
    return validated(RunConfig, vars(config) | {"tokenizer": theirs.tokenizer, "model": model})


def _require_same_model(pretrained: Run, model: ModelConfig, config: RunConfig) -> None:
    """Raises `UserError`, with what to add to the command, where the `model` of the pretrained run is another."""
    theirs, ours = asdict(model), asdict(config.model)
    free = FREE if theirs["positions"] == "learned" else (*FREE, "max_length")
    wanted = [f"model.{key}={theirs[key]}" for key in ours if key not in free and theirs[key] != ours[key]]
    if wanted:
        raise UserError(f"{pretrained} has another model than this run: add {' '.join(wanted)}")
