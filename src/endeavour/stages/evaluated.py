"""Evaluations that lie in run folders: found by the names of runs, and read; made by `evaluate`, never here.

A name is a run's, below the output folder, or that of an evaluation's own folder, `NAME/evaluation/test-greedy`,
so that two decodings of one run can be told apart. Beside them may stand files of translations made elsewhere.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from omegaconf import OmegaConf

from endeavour.config import Config
from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.data.disk import file_digest
from endeavour.data.files import require_file
from endeavour.data.prepared import PreparedData, all_prepared, find_prepared
from endeavour.errors import UserError
from endeavour.evaluation.comparison import REFERENCES
from endeavour.run_names import names_in
from endeavour.saved_config import read_config
from endeavour.stages.engines import evaluation_name
from endeavour.stages.run_folder import data_digest, named_folders, splits_of


@dataclass(frozen=True)
class Evaluated:
    """A finished evaluation: how it is called here, its run's folder, its own, and whether it was named by that."""

    name: str
    run: Path
    folder: Path
    by_folder: bool = False


def find_evaluations(config: Config) -> list[Evaluated]:
    """Each name as a run's evaluation by the split and decoding of `config`, or as an evaluation's own folder."""
    root = Path(config.output_folder)
    paths = named_folders("runs", config.runs, root)
    if root / REFERENCES in paths:
        raise UserError(
            f"runs={config.runs}: a comparison calls the references {REFERENCES}; rename that run's folder"
        )
    if len(paths) < (1 if names_in("systems", config.systems) else 2):
        raise UserError(
            'compare needs two runs or more, the first being the baseline: runs="NAME NAME", '
            "or one beside translations made elsewhere: runs=NAME systems=FILE"
        )
    runs = [path for path in paths if path.parent.name != "evaluation"]
    for path in runs:
        if not (path / "config.yaml").is_file() and not (path / "evaluation").is_dir():
            there = sorted(str(found.parent.relative_to(root)) for found in root.glob("**/evaluation"))
            known = f"evaluated runs: {', '.join(there)}" if there else "no run was evaluated yet"
            raise UserError(f"there is no run {path.relative_to(root)} in {root} ({known})")
    if config.split is not None and not runs:
        raise UserError(f"split={config.split}: runs=… names evaluations, which have theirs; leave it out")
    name = evaluation_name(config, config.split or _first_split(config, runs)) if runs else ""
    found: list[Evaluated] = []
    for path in paths:
        if path in runs:
            _require(path, name, config)
            _check_decoding(path, name, config)
            # The baseline's evaluation stands in the title, and in the folder's name.
            other = bool(found) and found[0].folder.name != name
            called = f"{path.relative_to(root)}/{name}" if other else str(path.relative_to(root))
            one = Evaluated(called, path, path / "evaluation" / name)
        else:
            run = path.parents[1]
            one = Evaluated(f"{run.relative_to(root)}/{path.name}", run, path, by_folder=True)
            if not (path / "scores.json").is_file():
                raise UserError(f"{run} has no evaluation {path.name} ({_listed(run)})")
        found.append(one)
    return found


def files_of_systems(config: Config, evaluated: Sequence[Evaluated]) -> list[Path]:
    """The files that `config.systems` names, to stand beside the `evaluated` runs.

    Raises:
        UserError: one is not there, or stands there twice, or would be called as a run or the references are.
    """
    files: list[Path] = []
    taken = [REFERENCES, *(one.name for one in evaluated)]
    for name in names_in("systems", config.systems):
        file = Path(name).expanduser()
        require_file(file)
        if any(file.samefile(other) for other in files):
            raise UserError(f"systems={config.systems}: {name} is named twice")
        if str(file) in taken:
            raise UserError(
                f"systems={config.systems}: something else is called {file} here; rename the file"
            )
        files.append(file)
    return files


def _first_split(config: Config, runs: list[Path]) -> str:
    """The first split, by name, that all runs were evaluated on with this decoding: a test split of the baseline's
    corpus before other files, and validation if there is no other."""
    own = _test_splits(runs[0], config)
    suffix = evaluation_name(config, "")
    splits = [
        {
            path.parent.name.removesuffix(suffix)
            for path in run.glob("evaluation/*/scores.json")
            if path.parent.name.endswith(suffix) and _decoding_name(path) in (config.decoding.name, None)
        }
        for run in runs
    ]
    common = sorted(
        set[str].intersection(*splits), key=lambda split: (split == "validation", split not in own, split)
    )
    if common:
        return common[0]
    for run, there in zip(runs, splits, strict=True):
        if not there:
            _require(run, f"*{suffix}", config)
    listing = "; ".join(
        f"{run.name}: {', '.join(sorted(there))}" for run, there in zip(runs, splits, strict=True)
    )
    raise UserError(f"the runs were evaluated on no split in common ({listing}): choose one with split=…")


def _decoding_name(scores: Path) -> str | None:
    """That of an evaluation, whose folder's name may end in another one's; None where it is not known."""
    try:
        return json.loads(scores.read_text("utf-8"))["decoding"]["name"]
    except (ValueError, KeyError, TypeError):
        return None


def _test_splits(run: Path, config: Config) -> list[str]:
    """Those of the run's corpus, as far as they are known."""
    saved = run / "config.yaml"
    if not saved.is_file():
        return []
    splits = splits_of(run, read_config(saved, newer=config))
    return [split for split in splits if split not in (TRAIN, VALIDATION)]


def _require(run: Path, name: str, config: Config) -> None:
    """Raises `UserError` where the run has no finished evaluation of that name, with the command that makes it."""
    if (run / "evaluation" / name / "scores.json").is_file():
        return
    raise UserError(f"{run} has no evaluation {name} ({_listed(run)}): run `{eval_command(run, config)}`")


def _check_decoding(run: Path, name: str, config: Config) -> None:
    """Raises `UserError` where a typed key of the decoding is not that of the run's evaluation of that name."""
    try:
        decoding = json.loads((run / "evaluation" / name / "scores.json").read_text("utf-8"))["decoding"]
    except (ValueError, KeyError, TypeError):
        return  # damaged, as will be said
    for argument in sys.argv[1:]:
        prefix, _, key = argument.lstrip("+").partition("=")[0].rpartition(".")
        if prefix == "decoding" and key in decoding and decoding[key] != getattr(config.decoding, key):
            raise UserError(
                f"{run}: its evaluation {name} was made with decoding.{key}={decoding[key]}, not "
                f"{getattr(config.decoding, key)}\nanother decoding is evaluated under a decoding.name of its own, and "
                "found here by that"
            )


def _listed(run: Path) -> str:
    there = sorted(path.parent.name for path in run.glob("evaluation/*/scores.json"))
    return f"there is: {', '.join(there) or 'none'}"


def remedy(one: Evaluated, config: Config) -> str:
    """What to do where an evaluation is damaged or incomplete."""
    return "evaluate it again" if one.by_folder else f"run `{eval_command(one.run, config)}`"


def eval_command(run: Path, config: Config) -> str:
    """The command that evaluates a run the way this comparison wants it."""
    kept = ("decoding", "quantization=", "output_folder=", "data_folder=")
    typed = [argument for argument in sys.argv[1:] if argument.startswith(kept)]
    arguments = [f"name={run.relative_to(config.output_folder)}", *typed]
    saved = run / "config.yaml"
    if saved.is_file() and not any(argument.startswith("decoding=") for argument in typed):
        # What is not said is as after its training, and so it should be, unless that has another name.
        otherwise = asdict(read_config(saved, newer=config).decoding)
        wanted = asdict(config.decoding) if otherwise["name"] != config.decoding.name else {}
        for key, value in wanted.items():
            if value != otherwise[key] and not any(one.startswith(f"decoding.{key}=") for one in typed):
                arguments.append(f"decoding.{key}={'null' if value is None else value}")
    if config.split is not None:
        own = _test_splits(run, config)
        corpus = not own or config.split in (*own, VALIDATION)
        arguments.append(
            f"evaluation.splits=[{config.split}]"
            if corpus
            else f"+evaluation.files.{config.split}=[FILE,FILE]"
        )
    return shlex.join(["endeavour", "eval", *arguments])


def lines_of(one: Evaluated, column: str, config: Config) -> list[str]:
    """The `sources` or `references` of an evaluation; of one made before it kept them, from the prepared data."""
    path = one.folder / f"{column}.txt"
    if path.is_file():
        return read_lines(path)
    data = prepared_of(one, config)
    splits = [] if data is None else [data.validation_split, *data.test_splits]
    named = [split for split in splits if one.folder.name.startswith(f"{split}-")]
    if data is None or not named:
        raise UserError(f"{path} is missing, and so are the prepared data: {remedy(one, config)}")
    return data.lines(max(named, key=len), {"sources": "source", "references": "target"}[column])


def read_lines(path: Path) -> list[str]:
    """The lines of a file of an evaluation, one a sentence. Raises `UserError` where it is missing."""
    if not path.is_file():
        raise UserError(f"{path} is missing: evaluate that run again")
    return path.read_bytes().decode().split("\n")[:-1]


def prepared_of(one: Evaluated, config: Config) -> PreparedData | None:
    """The prepared data that a run was trained on, where they are at hand; nothing is built.

    Found by content, so that neither the corpus nor the settings of then are needed: by the digest that the run noted,
    or, of a run of an earlier version, by its vocabularies.
    """
    saved = one.run / "config.yaml"
    ours = {f"{side}.model": one.run / "model" / f"{side}.model" for side in ("source", "target")}
    if not all(path.is_file() for path in (saved, *ours.values())):
        return None
    noted = data_digest(one.run)
    if noted is not None:
        return find_prepared(Path(config.data_folder), noted)
    # A joint vocabulary is the same in both directions, the sides are not.
    direction = OmegaConf.select(OmegaConf.load(saved), "direction")
    digests = {name: file_digest(path) for name, path in ours.items()}
    for data in all_prepared(Path(config.data_folder)):
        files = data.manifest["files"]
        if data.manifest["direction"] == direction and all(
            files[name]["sha256"] == digest for name, digest in digests.items()
        ):
            return data
    return None
