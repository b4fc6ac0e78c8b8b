"""One trial of a sweep: trains one run, and leaves a note of its result in the sweep's folder.

    <sweep>/<number>/trial.json       the run's folder, what it was started with; its error, or why it was pruned
    <sweep>/<number>/output.txt       what the run would have shown, where several run at a time
    <sweep>/<number>/traceback.txt    of a defect
Knows nothing of the other trials except for the notes beside its own.
"""

import json
import math
import traceback
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from endeavour.config import to_config
from endeavour.errors import UserError
from endeavour.pipeline.training import train_run
from endeavour.progress import say
from endeavour.redaction import redact
from endeavour.runs.config import RunConfig
from endeavour.runs.restart import goes_on, note_restart
from endeavour.runs.run import Run
from endeavour.storage import write_errors, write_json
from endeavour.sweeps.plan import told_apart
from endeavour.sweeps.table import FAILED, PRUNED, Row, collect, less_is_better
from endeavour.training.log import MetricLog
from endeavour.training.loop import Pruned

NOTE = "trial.json"
OUTPUT = "output.txt"
TRACEBACK = "traceback.txt"
# The sweep sets these itself, and they tell no trials apart.
NOT_NOTED = ("name", "tracking.group")

Note = dict[str, Any]

OmegaConf.register_new_resolver(told_apart.__name__, told_apart, replace=True)  # is in the names of trials


def trial(composed: DictConfig) -> None:
    """Trains one point of a sweep. Its failure is noted, not raised: the others still have their turn."""
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    # Hydra puts a backslash before the spaces in a sweep's values; no command line has it.
    overrides = [override.replace("\\ ", " ") for override in hydra.overrides.task]
    try:
        name, run = composed.name, Path(composed.output_folder) / composed.name
    except (OmegaConfBaseException, TypeError):  # below it is said what is wrong
        name, run = ", ".join(overrides), folder
    note: Note = {"run": str(run), "overrides": _as_dict(overrides)}
    say(Console(stderr=True), f"trial {folder.name}: {name}")
    metric = cast(str | None, OmegaConf.select(hydra.sweeper, "metric"))
    at_least = cast(int | None, OmegaConf.select(hydra.sweeper, "prune_after"))
    prune = partial(falls_behind, folder, metric, at_least) if metric and at_least else None
    with write_errors(folder, "output_folder"), ExitStack() as stack:
        write_json(folder / NOTE, note)
        if hydra.runtime.choices["hydra/launcher"] == "joblib":  # the lines of several would mingle
            output = stack.enter_context((folder / OUTPUT).open("a", encoding="utf-8"))
            stack.enter_context(redirect_stderr(output))
            stack.enter_context(redirect_stdout(output))
        try:
            config = to_config(RunConfig, composed)
            # The name may have been typed with the output folder before it.
            note["run"] = str(Run.of(config))
            write_json(folder / NOTE, note)
            # run.json says how to repeat this run alone.
            train_run(config, ["endeavour", "train", *overrides], prune=prune)
            _check_scores(config)
        except Pruned as reason:
            write_json(folder / NOTE, note | {"pruned": str(reason)})
        except Exception as error:
            by_user = isinstance(error, UserError)
            error_text = redact(f"{type(error).__name__}: {error}")
            write_json(folder / NOTE, note | {"error": error_text, "by_user": by_user})
            if not by_user:
                (folder / TRACEBACK).write_text(redact(traceback.format_exc()), "utf-8")


def note_trial_restart(composed: DictConfig) -> None:
    """Notes that the run of one point of a sweep is to be trained anew, where its config says so."""
    with suppress(UserError):  # which its trial reports
        config = to_config(RunConfig, composed)
        run = Run.of(config)
        if not goes_on(run, config):
            note_restart(run)


def falls_behind(folder: Path, metric: str, at_least: int) -> bool:
    """Whether the trial noted in `folder` is worse than half of the sweep: then the rest of it is saved.

    The median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.2), on best values instead of
    running averages: the best value of `metric` so far is worse than the median of what the other trials had
    reached by the same update. At least `at_least` of them must have come that far.

    Optuna's MedianPruner would need the study in the process of every trial, on a cluster one SQLite file over the
    network, and sees finished trials only. This one reads the logs.
    """
    best = min if less_is_better(metric) else max
    own = read_note(folder)["run"]
    mine = metric_history(Path(own), metric)
    update = max(mine)
    notes = [read_note(path.parent) for path in folder.parent.glob(f"*/{NOTE}")]
    runs = {note["run"] for note in notes if "error" not in note} - {own}
    histories = [metric_history(Path(run), metric) for run in sorted(runs)]
    theirs = [
        best(value for at, value in there.items() if at <= update)
        for there in histories
        if there and min(there) <= update <= max(there)  # they may validate at other updates
    ]
    if len(theirs) < at_least:
        return False
    reached, middle = best(mine.values()), median(theirs)
    return reached > middle if less_is_better(metric) else reached < middle


def metric_history(run: Path, metric: str) -> dict[int, float]:
    """The values of `metric`, such as `validation.bleu`, by update, as the run in `run` has logged them.

    One that is not a number is the worst of all.
    """
    kind, _, name = metric.partition(".")
    lines = MetricLog(run / "log.jsonl").read()
    # What a pretrained run begins with, as of update 0, is not to the trial's credit.
    values = {line["update"]: line[name] for line in lines if line["kind"] == kind and line["update"]}
    worst = math.inf if less_is_better(metric) else -math.inf
    return {update: worst if math.isnan(value) else value for update, value in values.items()}


def read_note(folder: Path) -> Note:
    return json.loads((folder / NOTE).read_text("utf-8"))


def result_rows(folders: list[Path], metric: str) -> list[Row]:
    """One row of the sweep's table for each trial's folder; each must hold a note.

    A pruned run has the best value of `metric` that it reached.
    """
    notes = [read_note(folder) for folder in folders]
    rows = collect([Path(note["run"]) for note in notes], [note["overrides"] for note in notes])
    for row, note in zip(rows, notes, strict=True):
        if "error" not in note and "pruned" not in note:
            continue
        for column in [column for column in row if column not in ("name", *note["overrides"])]:
            del row[column]  # a failed run's folder holds another run's results
        if "pruned" in note:
            row["status"] = PRUNED
            if reached := metric_history(Path(note["run"]), metric):  # or else its folder was deleted
                best = min if less_is_better(metric) else max
                row |= {metric: best(reached.values()), "updates": max(reached)}
        else:
            row |= {"status": FAILED, "error": note["error"]}
    return rows


def _as_dict(overrides: list[str]) -> dict[str, str]:
    pairs = [override.partition("=") for override in overrides]  # `~key` has no value
    return {key.lstrip("+"): value for key, _, value in pairs if key not in NOT_NOTED}


def _check_scores(config: RunConfig) -> None:
    """Raises `UserError` where a run that was finished before was evaluated in another way than is asked for now."""
    run = Run.of(config)
    for key in ("decoding", "evaluation"):
        if getattr(run.config, key) != getattr(config, key):
            raise UserError(
                f"{run} is finished, and its scores are of other {key} settings: give this sweep a name=… of its own, "
                "or score the run by `endeavour evaluate`"
            )
