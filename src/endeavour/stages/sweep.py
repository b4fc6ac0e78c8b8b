"""The sweep stage: `train` at many points, all of a grid or those a search asks for; then what came of them.

    <output_folder>/sweeps/<name>/<number>/      one trial: see stages.trial
    <output_folder>/sweeps/<name>/results.csv    the table, best first
    <output_folder>/sweeps/<name>/results.png    the metric against each swept value
    <output_folder>/sweeps/<name>/study.db       of a search: see stages.search
The runs themselves lie in run folders of their own, named after what was swept. Knows what a sweep is called and
how it ends; which points are next is Hydra's business (grids) or stages.search's.
"""

import hashlib
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from rich.console import Console

from endeavour.config import config_folder, one_line, run_hydra
from endeavour.errors import RunError, UserError
from endeavour.evaluation.results import FAILED, Row, results_table, sort_rows, write_csv
from endeavour.optional import require
from endeavour.reports.sweep_picture import draw_results
from endeavour.stages.run_folder import lock
from endeavour.stages.trial import NOTE, read_note, result_rows, trial

GRID, SEARCH = "basic", "optuna"
# The packages of Hydra's launchers; its own runs one trial after the other.
LAUNCHERS = {
    "basic": None,
    "joblib": "hydra_joblib_launcher",
    "submitit_local": "hydra_submitit_launcher",
    "submitit_slurm": "hydra_submitit_launcher",
}
# A grid's metric, and a search's default.
METRIC = "validation.bleu"
# Where, how many and how many at a time: not what makes it another sweep.
NOT_PART_OF_A_SWEEP = (
    "name",
    "hydra/launcher",
    "hydra.launcher.",
    "hydra.sweeper.n_trials",
    "hydra.sweeper.n_jobs",
)
# The screen has room for the scores that decide; the CSV has all.
ONLY_IN_CSV = (
    "_digest",
    "checkpoints",
    ".perplexity",
    ".bleu_lowercased",
    ".chrf",
    ".ter",
    ".bleu_tokenized",
)


@dataclass(frozen=True)
class Plan:
    """What a sweep's overrides come to. `added` are overrides of the sweep's own; `keys` those swept."""

    folder: Path
    keys: tuple[str, ...]
    metric: str
    added: tuple[str, ...]
    searches: bool


def sweep(overrides: list[str]) -> None:
    """Trains at every point of the sweep, then prints the results, best first, and writes table and picture.

    What is finished already is not trained again, and a trial that fails does not end the sweep.

    Raises:
        UserError: nothing is swept, or in a way that is not known; or trials failed (after all the others ran).
        RuntimeError: trials failed by a defect.
    """
    if any(argument.startswith("-") for argument in overrides):
        run_hydra("sweep", trial, overrides)  # --help, --cfg and the like
        return
    plan = make_plan(overrides)
    with lock(plan.folder, "swept"):
        if not plan.searches:  # a search's notes belong to its study; a grid's are all written again
            for old in plan.folder.glob(f"*/{NOTE}"):
                old.unlink()
        defect: Exception | None = None
        try:
            run_hydra("sweep", trial, ["--multirun", *overrides, *plan.added])
        except UserError:
            raise
        except Exception as error:  # of a launcher; what its trials left is worth a table all the same
            defect = error
        rows = report(plan)
    if defect is not None:
        raise defect
    if not rows:
        raise RuntimeError(f"no trial has left a note in {plan.folder}")
    failed = [row for row in rows if row["status"] == FAILED]
    if failed:
        reason = str(failed[0]["error"]).partition("\n")[0]
        text = f"{len(failed)} of {len(rows)} trials failed, such as {failed[0]['name']}: {reason}\n"
        again = "the same command tries them again and repeats no other"
        notes = {path.parent: read_note(path.parent) for path in plan.folder.glob(f"*/{NOTE}")}
        defects = [str(folder) for folder, note in notes.items() if not note.get("by_user", True)]
        if defects:
            raise RunError(f"{text}{min(defects)}/traceback.txt shows where it happened; {again}")
        raise UserError(text + again)


def make_plan(overrides: list[str]) -> Plan:
    """Names the sweep and its runs. Raises `UserError` for a sweep that could not be run."""
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        text, override = one_line(error), error.override or ""
        raise UserError(text if override in text else f"{override}: {text}") from error
    # By name: the order in which they were typed, or come from make, makes no other sweep.
    swept = sorted(
        (override for override in parsed if override.is_sweep_override()),
        key=_key,
    )
    others = [override for override in parsed if not override.is_sweep_override()]
    given = _given(others)
    searches = _check(swept, given)
    keys = tuple(map(_key, swept))
    folder = Path(given.get("output_folder", "outputs")) / "sweeps" / _sweep_name(swept, others, searches)
    added = [f"hydra.sweep.dir='{folder}'"]
    if "${" not in given.get("name", ""):
        added.append(f"name='{_run_name(keys, given)}'")
    if "tracking.group" not in given:
        added.append(f"tracking.group='{folder.name}'")
    metric = given.get("hydra.sweeper.metric", METRIC) if searches else METRIC
    return Plan(folder, keys, metric, tuple(added), searches)


def report(plan: Plan) -> list[Row]:
    """Prints and writes what came of a sweep's trials, best first; nothing where none was begun."""
    notes = sorted(plan.folder.glob(f"*/{NOTE}"), key=lambda path: int(path.parent.name))
    rows = sort_rows(result_rows([path.parent for path in notes], plan.metric), plan.metric)
    if not rows:
        return rows
    table, picture = plan.folder / "results.csv", plan.folder / "results.png"
    write_csv(table, rows)
    hidden = tuple(ending for ending in ONLY_IN_CSV if not plan.metric.endswith(ending))
    shown = [{column: row[column] for column in row if not column.endswith(hidden)} for row in rows]
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(results_table(shown, plan.metric))
    console.print(f"table: {table}", markup=False, highlight=False, soft_wrap=True)
    # A key with one value all through has no column.
    keys = [key for key in plan.keys if any(key in row for row in rows)]
    if draw_results(rows, keys, plan.metric, picture):
        console.print(f"picture: {picture}", markup=False, highlight=False, soft_wrap=True)
    return rows


def _check(swept: list[Override], given: dict[str, str]) -> bool:
    """Whether it is a search. Raises `UserError` for sweepers, launchers and ranges that do not fit."""
    sweeper, launcher = given.get("hydra/sweeper", GRID), given.get("hydra/launcher", "basic")
    if "${" in given.get("output_folder", ""):
        raise UserError(f"output_folder={given['output_folder']}: a sweep needs it spelled out")
    for key in given:
        if key.startswith("hydra.sweep."):
            raise UserError(f"{key}: a sweep's folder has its name; choose output_folder=… or name=…")
    if sweeper not in (GRID, SEARCH):
        raise UserError(
            f"hydra/sweeper={sweeper} is not known: choose {GRID} (every combination) or {SEARCH} (a search)"
        )
    if launcher not in LAUNCHERS:
        raise UserError(f"hydra/launcher={launcher} is not known: choose one of {', '.join(LAUNCHERS)}")
    if sweeper == SEARCH:
        require("optuna", extra="sweep")
    plugin = LAUNCHERS[launcher]
    if plugin and find_spec(f"hydra_plugins.{plugin}") is None:
        raise UserError(
            f"hydra/launcher={launcher} is not installed: `pip install -e '.[sweep]'` in endeavour's folder brings it"
        )
    if not swept:
        raise UserError("nothing to sweep: give a key several values, such as model=tiny,small seed=1,2")
    for override in swept:
        if sweeper == GRID and override.is_interval_sweep():
            raise UserError(
                f"{override.input_line} is a range, and a grid needs single values: "
                f"list them, or search the range with hydra/sweeper={SEARCH}"
            )
        if override.is_hydra_override() or _key(override) == "name":
            raise UserError(f"{override.input_line}: only what makes a run can be swept")
    return sweeper == SEARCH


def _sweep_name(swept: list[Override], others: list[Override], searches: bool) -> str:
    """What was swept, with a mark of the other settings: under others it is another sweep.

    A search with other ranges is another search, while a grid may be widened.
    """
    given = _given(others)
    base = given.get("name") or given.get("experiment") or given.get("corpus", "textbook")
    marked = [*others, *swept] if searches else others
    settings = sorted(
        str(override.input_line) for override in marked if not _key(override).startswith(NOT_PART_OF_A_SWEEP)
    )
    mark = hashlib.sha256("\n".join(settings).encode()).hexdigest()[:6] if settings else ""
    base = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in base)
    keys = [_short(_key(override)) for override in swept]
    return "-".join([base, *keys, *([mark] if mark else [])])


def _run_name(keys: tuple[str, ...], given: dict[str, str]) -> str:
    """A run name that tells the trials apart, in Hydra's interpolations; a name that was given begins it."""
    template, told = "${corpus.name}-${model.name}-${seed}", ("corpus", "model", "seed")
    if "experiment" in given:
        template, told = given["experiment"] + "-${model.name}-${seed}", ("model", "seed")
    if "name" in given:
        template, told = given["name"], ()
    for key in keys:
        if key not in told:
            # A group's chosen option is known to Hydra, a key's value to the config itself.
            value = (
                "${hydra:runtime.choices." + key + "}"
                if "." not in key and _is_group(key)
                else "${" + key + "}"
            )
            template += f"-{_short(key)}_{value}"
    return template


def _given(overrides: list[Override]) -> dict[str, str]:
    values = {_key(override): override.value() for override in overrides}
    return {key: str(value) for key, value in values.items() if value is not None}


def _key(override: Override) -> str:
    """As it is typed, and as Hydra names the choice of a group: `decoding@validation_decoding`."""
    return str(override.get_key_element()).lstrip("+~")


def _is_group(key: str) -> bool:
    return (config_folder() / key.partition("@")[0]).is_dir()


def _short(key: str) -> str:
    return re.split(r"[.@]", key)[-1]
