"""The sweep stage: `train` over every combination of listed values, then one table of what came of them.

    <output_folder>/sweeps/<name>/<number>/trial.json    which run a trial is, and its error if it has one
    <output_folder>/sweeps/<name>/results.csv            the table
The runs themselves lie in run folders of their own, named after what was swept.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig
from rich.console import Console

from endeavour.config import config_folder, run_hydra, to_config
from endeavour.errors import UserError
from endeavour.evaluation.results import collect, results_table, sort_rows, write_csv
from endeavour.redaction import redact
from endeavour.stages.run_folder import write_json
from endeavour.stages.train import train

# The default name holds these already.
IN_DEFAULT_NAME = ("corpus", "model", "seed")
SORT_BY = "validation.bleu"
# The screen has room for the scores that decide; the CSV has all.
ONLY_IN_CSV = (".perplexity", ".bleu_lowercased", ".chrf", ".ter")


def trial(composed: DictConfig) -> None:
    """Trains one point of the sweep; notes which run it is, and its failure."""
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    run = Path(composed.output_folder) / composed.name
    note: dict[str, Any] = {"run": str(run), "overrides": _as_dict(hydra.overrides.task)}
    write_json(folder / "trial.json", note)
    Console(stderr=True).print(f"trial {hydra.job.num}: {composed.name}", markup=False, highlight=False)
    try:
        train(to_config(composed))
    except Exception as error:
        write_json(folder / "trial.json", note | {"error": redact(f"{type(error).__name__}: {error}")})
        raise


def sweep(overrides: list[str]) -> None:
    """Runs `train` for every combination, then prints the results, best first, and writes them as CSV.

    A trial that is finished already is not trained again, and one that fails does not end the sweep.

    Raises:
        UserError: nothing is swept, or a trial failed (after all the others ran).
    """
    if any(argument.startswith("-") for argument in overrides):
        run_hydra("sweep", trial, overrides)  # --help, --cfg and the like
        return
    parsed = OverridesParser.create().parse_overrides(overrides)
    swept = [override for override in parsed if override.is_sweep_override()]
    if not swept:
        raise UserError("nothing to sweep: give a key several values, such as model=tiny,small seed=1,2")
    keys = [str(override.key_or_group) for override in swept]
    given = {str(override.key_or_group): override.value() for override in parsed if override not in swept}
    # Sweeps over the same keys under other settings are other sweeps.
    settings = sorted(override.input_line or "" for override in parsed if override not in swept)
    mark = hashlib.sha256("\n".join(settings).encode()).hexdigest()[:6] if settings else ""
    base = str(given.get("experiment", given.get("corpus", "textbook")))
    name = "-".join([base, *(_short(key) for key in keys), *([mark] if mark else [])])
    folder = Path(str(given.get("output_folder", "outputs"))) / "sweeps" / name
    for old in folder.glob("*/trial.json"):
        old.unlink()
    added = [f"hydra.sweep.dir={folder}"]
    if "name" not in given:
        added.append(f"name='{_name_template(keys)}'")
    failure: Exception | None = None
    try:
        run_hydra("sweep", trial, ["--multirun", *overrides, *added])
    except Exception as error:  # every trial has run by now; the table shows which failed
        failure = error
    if not report(folder):
        assert failure is not None
        raise failure
    if failure is not None:
        kind = UserError if isinstance(failure, UserError) else RuntimeError
        raise kind(f"a trial failed: {failure}\nthe others are in {folder / 'results.csv'}") from failure


def report(folder: Path) -> bool:
    """Prints and writes the table of a sweep's trials; False where there are none."""
    notes = sorted(folder.glob("*/trial.json"), key=lambda path: int(path.parent.name))
    trials = [json.loads(path.read_text("utf-8")) for path in notes]
    if not trials:
        return False
    rows = collect([Path(note["run"]) for note in trials], overrides=[note["overrides"] for note in trials])
    for row, note in zip(rows, trials, strict=True):
        if "error" in note:  # what stands in the folder is then another run's
            for column in [column for column in row if column not in ("name", *note["overrides"])]:
                del row[column]
            row |= {"status": "failed", "error": note["error"]}
    rows = sort_rows(rows, SORT_BY)
    write_csv(folder / "results.csv", rows)
    shown = [{column: row[column] for column in row if not column.endswith(ONLY_IN_CSV)} for row in rows]
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(results_table(shown, SORT_BY))
    console.print(f"table: {folder / 'results.csv'}", markup=False, highlight=False, soft_wrap=True)
    return True


def _as_dict(overrides: list[str]) -> dict[str, str]:
    pairs = dict(override.split("=", 1) for override in overrides)
    return {key.lstrip("+"): value for key, value in pairs.items() if key != "name"}


def _name_template(keys: list[str]) -> str:
    """A run name that tells the trials apart, in Hydra's interpolations."""
    template = "${corpus.name}-${model.name}-${seed}"
    for key in keys:
        if key not in IN_DEFAULT_NAME:
            # A group's chosen option is known to Hydra, a key's value to the config itself.
            value = (
                "${hydra:runtime.choices." + key + "}"
                if "." not in key and _is_group(key)
                else "${" + key + "}"
            )
            template += f"-{_short(key)}_{value}"
    return template


def _is_group(key: str) -> bool:
    return (config_folder() / key).is_dir()


def _short(key: str) -> str:
    return key.rsplit(".", 1)[-1]
