"""What a run folder holds besides checkpoints: which run it is, where it was made, what came of it.

config.yaml      the resolved config          run.json        one entry a start: command, versions, device
checkpoints/     see training.state           log.jsonl       metrics
model/           the final weights            curves.png      loss and BLEU over the updates
evaluation/      one folder a test split      attention.png   what one sentence's pieces look at, over the updates
export/          the model for other programs summary.json    the results; stands only in a finished run
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from endeavour.config import Config, check_decoding
from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.run_names import names_in, run_name
from endeavour.saved_config import differing_keys, read_config, save_config
from endeavour.stages.circumstances import describe_start
from endeavour.storage import write_atomically


def find_earlier(config: Config) -> dict[str, Any] | None:
    """Looks whether the run of `config` was begun or finished before; deletes it where a restart is asked for.

    Returns:
        The summary of a run that is finished; None where there is something to train.
    Raises:
        UserError: the folder holds a run of another config.
    """
    folder = config.run_folder
    saved = folder / "config.yaml"
    real = folder.resolve()  # it may be a link to another disk
    discarded = real.with_name(f".{real.name}.discarded")
    shutil.rmtree(discarded, ignore_errors=True)  # of a restart that was killed
    if not is_begun(config):
        if _holds_a_run(folder):
            # In one step, so that no half of the old run is ever taken for a new one.
            real.rename(discarded)
            if folder.is_symlink():
                real.mkdir()  # or it would lead nowhere
            shutil.rmtree(discarded)
        return None
    differences = differing_keys(config, read_config(saved, newer=config))
    if differences:
        raise UserError(
            f"{folder} holds a run with another config ({'; '.join(differences)})\n"
            "choose another name=…, or training.restart=true to throw that run away"
        )
    return summary_of(folder) or None


def is_begun(config: Config) -> bool:
    """Whether there is something of the run of `config` to go on from, or its end."""
    return _holds_a_run(config.run_folder) and not (config.training.restart and not _started_again())


def is_thrown_away(config: Config) -> bool:
    """Whether there is a run that `training.restart` would delete."""
    return _holds_a_run(config.run_folder) and not is_begun(config)


def _holds_a_run(folder: Path) -> bool:
    """Whether anything was trained there."""
    parts = (folder / name for name in ("checkpoints", "summary.json"))
    return (folder / "config.yaml").is_file() and any(part.exists() for part in parts)


def _started_again() -> bool:
    """Whether torchrun or Slurm repeat their command, after which training.restart=true must not."""
    counts = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
    return any(int(os.environ.get(name, "0")) > 0 for name in counts)


def begin(config: Config, device: torch.device) -> None:
    """Makes the run folder and notes config and circumstances. Raises `UserError` if it cannot be written."""
    folder = config.run_folder
    with named_write_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_config(config, folder / "config.yaml")
        _note_start(folder, device)


@contextmanager
def named_write_error(folder: Path) -> Generator[None]:
    """Turns an error of the file system, while something is written to `folder`, into a `UserError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{folder} cannot be written ({reason}): choose another output_folder") from error


def lock(folder: Path, doing: str = "trained") -> FileLock:
    """A run or sweep folder's lock, held until it is released or the process ends; it lies beside the folder.

    Raises `UserError` while another process holds it.
    """
    held = FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0)
    with named_write_error(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            held.acquire()
        except Timeout as error:
            raise UserError(
                f"{folder} is being {doing} by another process: wait for it, or choose another name=…"
            ) from error
    return held


def find_run(config: Config) -> tuple[Path, Config]:
    """The folder of the run that `config` names and the config it was trained with.

    Raises:
        UserError: there is no such run, or it has no finished model.
    """
    folder = config.run_folder
    require_model(folder, config, "train it with the same settings, or choose another with name=…")
    trained = read_config(folder / "config.yaml", newer=config)
    typed = {argument.lstrip("+").partition("=")[0] for argument in sys.argv[1:]}
    if config.pretrained is not None and not any(_within(key, "tokenizer") for key in typed):
        config = replace(config, tokenizer=trained.tokenizer)  # which came from the pretrained run
    differences = differing_keys(config, trained)
    asked = [line for line in differences if any(_within(line.partition(":")[0], key) for key in typed)]
    if asked:
        raise UserError(
            f"{folder} was trained with other settings ({'; '.join(asked)}), and a trained run keeps its own: "
            "leave them out, or name another run; other text is scored by +evaluation.files.NAME=[FILE,FILE]"
        )
    if differences and "name" not in typed:  # asked for by its settings, the run should have them
        print(f"note: {folder} was trained with other settings: {'; '.join(differences)}", file=sys.stderr)
    if "corpus.path" in typed:  # where the same files lie now
        trained.corpus.path = config.corpus.path
    return folder, trained


def _within(key: str, other: str) -> bool:
    """Whether a key is the other or below it, as training.seed is below training."""
    return key == other or key.startswith(other + ".")


def summary_of(folder: Path) -> dict[str, Any]:
    """What summary.json holds; empty where the run is not finished. Raises `UserError` where it is damaged."""
    path = folder / "summary.json"
    try:
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise UserError(
            f"{path}: damaged ({error})\ndelete it, and the command that trained the run makes it again"
        ) from error


def splits_of(folder: Path, trained: Config) -> list[str]:
    """The names of the splits of a run's corpus, as far as can be told without it."""
    own = [name for name in summary_of(folder).get("test", {}) if name not in trained.evaluation.files]
    return [
        TRAIN,
        VALIDATION,
        *(name for name in trained.corpus.splits if name not in (TRAIN, VALIDATION)),
        *own,
    ]


def data_digest(folder: Path) -> str | None:
    """The digest of the prepared data that the finished run in `folder` noted; None of runs of earlier versions."""
    return summary_of(folder).get("data_digest")


def require_same_data(folder: Path, data: PreparedData) -> None:
    """Raises `UserError` where the corpus is no longer what the finished run in `folder` was trained on.

    Prepared anew it would have other test sentences, perhaps some that the run was trained on. Runs of earlier
    versions did not note their data and are taken on trust.
    """
    noted = data_digest(folder)
    if noted is not None and noted != data.content_digest:
        raise UserError(
            f"{folder} was trained on other data: the corpus has changed since; restore its files, or train anew "
            "under another name=…; other text is scored by +evaluation.files.NAME=[FILE,FILE]"
        )


def as_decoded(config: Config, trained: Config) -> Config:
    """`config` with `decoding`, `evaluation` and seed of the run's own config, but for what the command itself names.

    A key (decoding.beam_size=10) replaces itself, a choice (decoding=greedy, experiment=…) the whole section. Other
    files are named for one command, and then they alone are evaluated, unless it names splits too.

    Raises:
        UserError: the two together describe no decoding.
    """
    typed = [argument.lstrip("+") for argument in sys.argv[1:]]
    trained = replace(trained, evaluation=replace(trained.evaluation, files={}))
    for section in ("decoding", "evaluation"):
        if any(argument.startswith((f"{section}=", "experiment=")) for argument in typed):
            continue
        wanted = getattr(config, section)
        named = [argument for argument in typed if argument.startswith(f"{section}.")]
        keys = {re.split(r"[.=]", argument.removeprefix(f"{section}."))[0] for argument in named}
        values = {key: getattr(wanted, key) for key in keys}
        config = replace(config, **{section: replace(getattr(trained, section), **values)})
    nothing: dict[str, Any] = {}
    if config.evaluation.files:
        nothing = {"splits": [], "tokenized_references": None}
    elif _other_splits(config.evaluation.splits, trained.evaluation.splits):
        nothing = {"tokenized_references": None}
    for key, value in nothing.items():
        if not any(argument.startswith(f"evaluation.{key}=") for argument in typed):
            config = replace(config, evaluation=replace(config.evaluation, **{key: value}))
    check_decoding(config)
    return replace(config, seed=trained.seed)


def _other_splits(wanted: list[str] | None, evaluated: list[str] | None) -> bool:
    """Whether one that is wanted was not evaluated after training; None stands for all test splits of the corpus."""
    if wanted is None or wanted == evaluated:
        return False
    return any(
        split in (TRAIN, VALIDATION) if evaluated is None else split not in evaluated for split in wanted
    )


def require_model(folder: Path, config: Config, remedy: str) -> None:
    """Raises `UserError`, with the finished runs there are and the remedy, where a run has no final weights."""
    if (folder / "model").is_dir():
        return
    root = Path(config.output_folder)
    runs = sorted(str(path.parent.relative_to(root)) for path in root.glob("**/model"))
    known = f"finished runs: {', '.join(runs[:8])}" if runs else "there is no finished run yet"
    raise UserError(f"{folder} holds no trained model ({known})\n{remedy}")


def named_folders(key: str, text: str | None, root: Path) -> list[Path]:
    """The folders below `root` that are named in `a b`, `a,b` or `[a, b]`; none in an empty text.

    A name with a space or comma in it stands in quotes; one may begin with `root`, as what a shell completes.

    Raises:
        UserError: a name leads elsewhere, or stands there twice; `key` is what the text is the value of.
    """
    folders: list[Path] = []
    for name in names_in(key, text):
        folder = root / run_name(key, name, str(root))
        if folder in folders:
            raise UserError(f"{key}={text}: {folder.relative_to(root)} is named twice")
        folders.append(folder)
    return folders


def write_json(path: Path, content: object) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _note_start(folder: Path, device: torch.device) -> None:
    """Adds this start to run.json."""
    path = folder / "run.json"
    try:
        starts: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.is_file() else []
    except ValueError as error:
        raise UserError(f"{path}: damaged ({error}); delete it, no run depends on it") from error
    write_json(path, [*starts, describe_start(device)])
