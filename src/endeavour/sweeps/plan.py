"""What a sweep's overrides mean: its name and folder, those of its runs, and whether it is a grid or a search.

Knows what is swept, and how runs are told apart; which points are next is up to Hydra (grids) or `sweeps.search`.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException

from endeavour.errors import UserError
from endeavour.hydra_messages import one_line
from endeavour.optional import require
from endeavour.overrides import in_quotes, is_group
from endeavour.runs.config import NOT_PART_OF_A_RUN, is_in
from endeavour.storage import user_path

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
# What does not make it another sweep: where it runs, how many trials, how many at a time. Decoding and evaluation do,
# because its table has the scores that they give.
NOT_PART_OF_A_SWEEP = (
    *(key for key in NOT_PART_OF_A_RUN if key not in ("decoding", "evaluation")),
    "hydra/launcher",
    "hydra.launcher",
    "hydra.sweeper.n_trials",
    "hydra.sweeper.n_jobs",
)
LONGEST_END = 100  # characters of a name that tell what was swept; a folder's may have 255 bytes


@dataclass(frozen=True)
class Plan:
    """What a sweep's overrides mean. `added` are overrides of the sweep's own; `keys` those swept."""

    folder: Path
    keys: tuple[str, ...]
    metric: str
    added: tuple[str, ...]
    searches: bool


def make_plan(overrides: list[str]) -> Plan:
    """Names the sweep and its runs. Raises `UserError` for a sweep that could not be run."""
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise UserError(one_line(error)) from error
    # By name: typed in another order, or by make, they are the same sweep.
    swept = sorted(
        (override for override in parsed if override.is_sweep_override()),
        key=_key,
    )
    # experiment=[] is what `quote_words` makes of experiment=null, and says nothing.
    others = [one for one in parsed if not one.is_sweep_override() and one.input_line != "experiment=[]"]
    given = _given(others)
    searches = _check(swept, given)
    keys = tuple(map(_key, swept))
    folder = (
        user_path(given.get("output_folder", "outputs")) / "sweeps" / _sweep_name(swept, others, searches)
    )
    added = [f"hydra.sweep.dir={in_quotes(str(folder))}"]
    if "${" not in given.get("name", ""):
        added.append(f"name={in_quotes(_run_name(keys, given))}")
    if "tracking.group" not in given:
        added.append(f"tracking.group={in_quotes(folder.name)}")
    metric = given.get("hydra.sweeper.metric", METRIC) if searches else METRIC
    return Plan(folder, keys, metric, tuple(added), searches)


def told_apart(*told: object) -> str:
    """The end of a trial's name, `-key_value` for each swept key, such as a folder can have.

    Args:
        told: a key, its value, another key, and so on.
    """
    return _name_end("".join(f"-{key}_{value}" for key, value in zip(told[::2], told[1::2], strict=True)))


def _check(swept: list[Override], given: dict[str, str]) -> bool:
    """Whether it is a search. Raises `UserError` for sweepers, launchers and ranges that do not fit."""
    sweeper, launcher = given.get("hydra/sweeper", GRID), given.get("hydra/launcher", "basic")
    if "${" in given.get("output_folder", ""):
        raise UserError(f"output_folder={given['output_folder']}: a sweep needs a plain value")
    for key in given:
        if key.startswith("hydra.sweep."):
            raise UserError(f"{key}: a sweep's folder has its name; choose output_folder=… or name=…")
    if sweeper not in (GRID, SEARCH):
        raise UserError(
            f"hydra/sweeper={sweeper} is not supported: choose {GRID} (every combination) or {SEARCH} (a search)"
        )
    if launcher not in LAUNCHERS:
        raise UserError(f"hydra/launcher={launcher} is not supported: choose one of {', '.join(LAUNCHERS)}")
    if sweeper == SEARCH:
        require("optuna", extra="sweep")
    plugin = LAUNCHERS[launcher]
    if plugin and find_spec(f"hydra_plugins.{plugin}") is None:
        raise UserError(
            f"hydra/launcher={launcher} is not installed: `pip install -e '.[sweep]'` in endeavour's folder brings it"
        )
    if launcher == "submitit_slurm" and which("srun") is None:
        raise UserError(
            "hydra/launcher=submitit_slurm: there is no srun here; start the sweep on a cluster with Slurm, or choose "
            "joblib or submitit_local"
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
        str(override.input_line) for override in marked if not is_in(_key(override), NOT_PART_OF_A_SWEEP)
    )
    mark = sha256("\n".join(settings).encode()).hexdigest()[:6] if settings else ""
    base = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in base)
    keys = _name_end("".join(f"-{_short(_key(override))}" for override in swept))
    return base + keys + (f"-{mark}" if mark else "")


def _run_name(keys: tuple[str, ...], given: dict[str, str]) -> str:
    """A run name that tells the trials apart, in Hydra's interpolations; a name that was given begins it."""
    template, told = "${corpus.name}-${model.name}-${seed}", ("corpus", "model", "seed")
    if "experiment" in given:
        template, told = given["experiment"] + "-${model.name}-${seed}", ("model", "seed")
    if "name" in given:
        template, told = given["name"], ()
    values = [
        # A group's chosen option is known to Hydra, a key's value to the config itself.
        (_short(key), f"hydra:runtime.choices.{key}" if "." not in key and is_group(key) else key)
        for key in keys
        if key not in told
    ]
    ends = ",".join(f"{key},${{{value}}}" for key, value in values)
    return f"{template}${{told_apart:{ends}}}" if values else template


def _name_end(text: str) -> str:
    """`text` as a folder's name may end; with a mark of all of it, where that is less."""
    plain = re.sub(r"[^\w.+-]+", "_", text)
    if plain == text and len(plain) <= LONGEST_END:
        return text
    return f"{plain[:LONGEST_END]}-{sha256(text.encode()).hexdigest()[:6]}"


def _given(overrides: list[Override]) -> dict[str, str]:
    values = {_key(override): override.value() for override in overrides}
    return {key: str(value) for key, value in values.items() if value not in (None, [])}


def _key(override: Override) -> str:
    """As it is typed, and as Hydra names the choice of a group: `decoding@validation_decoding`."""
    return str(override.get_key_element()).lstrip("+~")


def _short(key: str) -> str:
    """Without `training.` and `model.`: the last words of their keys are those of no other."""
    return re.sub(r"^(training\.|model\.|.*@)", "", key)
