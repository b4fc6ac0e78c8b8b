"""What to type for something that a run lacks: commands that work as they stand, pasted where this one was
typed (except for the names of a large ensemble).

Knows names and settings, and what config.yaml and summary.json of a run say; no other files.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from endeavour.data.corpus import VALIDATION
from endeavour.data.perturbations import copy_of
from endeavour.overrides import LITERAL_KEYS, typed
from endeavour.runs.names import quoted
from endeavour.runs.run import Run
from endeavour.settings import config_folder


def export_command(run: Run, quantization: str) -> str:
    """Exports `run` for decoding.engine=ctranslate2."""
    # An export is compared by a search, whatever the run itself decodes by.
    search = ["decoding=beam"] if run.config.decoding.sampling else []
    return _command("export", run, [f"quantization={quantization}", *search])


def play_command(run: Run) -> str:
    """Opens the page in which `run` can be watched."""
    return shlex.join(["endeavour", "play", f"run={quoted(run.name)}", *_output_folder(run)])


def evaluate_command(
    run: Run, label: str | None = None, test_set: str | None = None, decoding: Mapping[str, Any] | None = None
) -> str:
    """Evaluates `run`.

    Args:
        label: how it is to be decoded, see `evaluations.decoding_label`; None is as after its training.
        test_set: None takes those of its own evaluation, or validation where that has none.
        decoding: the settings that have this label elsewhere; None takes those of the group of that name.
    """
    ensemble: list[str] = []
    words: list[str] = []
    if label is not None:
        alone, ensemble = ensemble_of(label)
        words += _decoding_words(run, alone, decoding)
    if test_set is None:
        words += _instead_of_none(run)
    else:
        clean, how = copy_of(test_set)
        words.append(_test_set_word(run, clean))
        words += [] if how is None else [f"evaluation.perturbed=[{how}]"]
    return _command("evaluate", run, words, ensemble)


def ensemble_of(label: str) -> tuple[str, list[str]]:
    """How each of an ensemble decodes, by the label of all, and the names of its further runs."""
    alone, _, others = label.partition("-with-")
    if many := re.fullmatch(r"(\d+)-runs-[0-9a-f]{12}", others):  # their names were too long to be kept
        return alone, ["NAME"] * int(many[1])
    return alone, [unquote(name) for name in others.split("+") if name]


def _decoding_words(run: Run, label: str, wanted: Mapping[str, Any] | None) -> list[str]:
    own = asdict(run.config.decoding) if run.has_config else {}
    name, engine, quantization = label.partition("-ctranslate2-")
    exported = ["decoding.engine=ctranslate2", f"decoding.quantization={quantization}"] if engine else []
    if name == own.get("name"):
        return exported
    if wanted is not None:
        export = ("engine", "quantization")  # which the label has
        differing = [key for key, value in wanted.items() if key not in export and value != own.get(key)]
        return [_word(f"decoding.{key}", wanted[key]) for key in differing] + exported
    groups = {path.stem for path in (config_folder() / "decoding").glob("*.yaml")}
    words = [f"decoding={name}" if name in groups else f"decoding.name={typed(name)}", *exported]
    return [*words, "decoding.backward=NAME"] if name == "reranked" else words


def _instead_of_none(run: Run) -> list[str]:
    """A test set for a run whose own evaluation has none."""
    if not run.has_config:
        return []
    if run.is_imported:
        return [_test_set_word(run, "NAME")]
    splits = run.config.evaluation.splits
    own = run.test_splits if splits is None else splits
    return [] if own else [_test_set_word(run, VALIDATION)]


def _test_set_word(run: Run, test_set: str) -> str:
    from endeavour.evaluation.standard_sets import standard_name  # sacreBLEU, which translating does without

    if test_set == VALIDATION or (run.has_config and test_set in run.test_splits):
        return f"evaluation.splits=[{test_set}]"
    files = run.config.evaluation.files if run.has_config else {}
    standard = None if test_set in files else standard_name(test_set)
    if standard is not None:
        return f"evaluation.sacrebleu=[{standard}]"
    names = map(typed, files.get(test_set, ["FILE", "FILE"]))
    return f"+evaluation.files.{test_set}=[{','.join(names)}]"


def _command(name: str, run: Run, words: list[str], ensemble: list[str] | None = None) -> str:
    runs = " ".join(quoted(one) for one in (run.name, *(ensemble or [])))
    folders = _output_folder(run)
    if run.has_config and run.config.data_folder != "data":
        folders.append(f"data_folder={typed(run.config.data_folder)}")
    return shlex.join(["endeavour", name, f"run={runs}", *folders, *words])


def _output_folder(run: Run) -> list[str]:
    return [] if run.root == Path("outputs") else [f"output_folder={typed(str(run.root))}"]


def _word(key: str, value: object) -> str:
    if isinstance(value, str):
        return f"{key}={value if key in LITERAL_KEYS else typed(value)}"
    return f"{key}={'null' if value is None else value}"
