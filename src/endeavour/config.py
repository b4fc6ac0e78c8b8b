"""Composes a command's root in `conf/` into its dataclass. Only this, the sweeps and the completion know Hydra.

Types stand beside the code they configure, values in `conf/` alone. What a key means is explained there too.
"""

import errno
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, cast

import hydra
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from endeavour.errors import UserError
from endeavour.hydra_messages import hydras_options, one_line
from endeavour.nested import flatten
from endeavour.redaction import NAMED_BY_USERS, secret_in
from endeavour.runs.choice import joined, select_runs
from endeavour.settings import config_folder, unknown_key, validated
from endeavour.storage import user_path

T = TypeVar("T")

SETTINGS_OF_OTHERS = ("pretraining_settings.", "teacher_settings.")  # of runs that are trained first
TEXTS = {"text", "translation"}  # which may be ???
FOLDERS = {"data_folder", "output_folder"}


def to_config(kind: type[T], composed: DictConfig) -> T:
    """What Hydra composed as the root dataclass `kind`.

    Where there is a key `run`, it is filled in with the names of the runs that it selects, and `${trained:…}` stands
    for what the first of them has in its own config.

    Raises:
        UserError: a value that no part accepts, or that must not be saved; no such run.
    """
    names: str | None = None
    trained: Mapping[str, Any] = {}
    if "run" in composed:
        begun = getattr(kind, "takes_begun_runs", False)
        runs = select_runs(*_named(composed), begun=begun)
        names, trained = joined(runs), flatten(asdict(runs[0].config))
        if composed.run is None:
            which = "the newest finished run" if runs[0].is_trained else "the newest one, not finished yet"
            print(f"run: {runs[0].name} ({which})", file=sys.stderr)
    elif "${trained:" in OmegaConf.to_yaml(composed):
        raise UserError("…=as_trained is for commands that begin with a trained run")
    OmegaConf.register_new_resolver("trained", trained.__getitem__, replace=True)
    try:
        values = cast(dict[str, Any], OmegaConf.to_container(composed, resolve=True))
        missing = OmegaConf.missing_keys(composed) - TEXTS
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from error
    finally:
        OmegaConf.clear_resolver("trained")
    if missing:
        key = min(missing)
        raise UserError(f"{key} has no value: give it one, {key}=…")
    for key in FOLDERS & values.keys():
        if isinstance(values[key], str):
            values[key] = str(user_path(values[key]))
    for key, value in flatten(values).items():
        if found := secret_in(str(value)):
            raise UserError(f"{key} holds {found}, and a config is saved: leave secrets to the environment")
    return validated(kind, values if names is None else values | {"run": names})


def _named(composed: DictConfig) -> tuple[str | None, Path]:
    """What `run=…` says, and the folder of runs."""
    try:
        run, folder = composed.run, composed.output_folder
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from error
    if folder is None:
        raise UserError("output_folder=null: runs are looked for in a folder, by default outputs")
    return run, user_path(str(folder))


def load_config(root: str, kind: type[T], overrides: Sequence[str] = ()) -> T:
    """Composes `conf/<root>.yaml` with overrides as the command line has them."""
    with _clear_errors(root), _hydra():
        composed = compose(root, overrides=list(overrides))
    return to_config(kind, composed)


def _hydra() -> initialize_config_dir:
    return initialize_config_dir(version_base="1.3", config_dir=str(config_folder().resolve()))


@contextmanager
def _clear_errors(root: str) -> Generator[None]:
    """Turns what Hydra refuses of the overrides of `root` into a `UserError` of one line."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        typed = re.search(r"Could not override '(.+?)'", str(error))
        if typed is None:
            raise UserError(one_line(error)) from error
        # Of model={wdth:64} Hydra names the first, OmegaConf the second.
        inner: str = getattr(error.__cause__, "full_key", None) or ""
        raise UserError(_unknown(max(typed[1], inner, key=len), root)) from error
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG or error.filename is None:
            raise
        # Hydra looks for a file of a key, which might be a group.
        raise UserError(
            f"{Path(error.filename).name[:60]}…: too long a key; choose a shorter name"
        ) from error


def run_hydra(
    root: str, command: str, function: Callable[[DictConfig], object], overrides: Sequence[str]
) -> None:
    """Passes a command line to Hydra, and what it composes to `function`: once, or with --multirun often.

    Raises:
        UserError: the command line or a value is wrong, in one line.
        Exception: the first that `function` raised, after all its calls.
    """
    # argparse wants all overrides in one place: here before the options and their words.
    words = sorted(overrides, key=lambda word: word.startswith("-") or not ("=" in word or word[:1] == "~"))
    sys.argv = [f"endeavour {command}", *words]
    failures: list[Exception] = []

    def task(composed: DictConfig) -> None:
        try:
            function(composed)
        except Exception as error:  # kept from Hydra, which would add lines of its own
            failures.append(error)

    # Hydra would print its own account of an error and exit with 1; told to raise, it leaves the message to us.
    asked_for = os.environ.get("HYDRA_FULL_ERROR", "0")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    decorate = hydra.main(version_base="1.3", config_path=str(config_folder().resolve()), config_name=root)
    try:
        with _clear_errors(root), hydras_options():
            decorate(task)()
    except SystemExit as end:  # with 0 after --help
        if end.code:
            raise
    finally:
        os.environ["HYDRA_FULL_ERROR"] = asked_for
    if failures:
        raise failures[0]


def _unknown(key: str, root: str) -> str:
    """What is wrong with a key that the config of `root` does not have."""
    with _hydra():
        composed = compose(root, return_hydra_config=True)
    values = cast(dict[str, Any], OmegaConf.to_container(composed))
    groups = values.pop("hydra")["runtime"]["choices"]
    new = key.startswith((*NAMED_BY_USERS, *SETTINGS_OF_OTHERS)) and key.partition(".")[0] in values
    if not new:
        return unknown_key(key, [*groups, *values, *flatten(values)])
    one_value = key.startswith(("evaluation.labels.", *SETTINGS_OF_OTHERS))
    needs = f"a new name needs a + before it: +{key}={'…' if one_value else '[…]'}"
    split = key.startswith("corpus.splits.")
    return f"{needs}; train, validation and test are there with corpus=files" if split else needs
