"""`endeavour sweep`: `train` at many points, all of a grid or those that a search asks for; then the results.

    <output_folder>/sweeps/<name>/<number>/      one trial: see sweeps.trial
    <output_folder>/sweeps/<name>/results.csv    the table, best first
    <output_folder>/sweeps/<name>/results.png    the metric against each swept value
    <output_folder>/sweeps/<name>/study.db       of a search: see sweeps.search
The runs themselves lie in run folders of their own, named after what was swept.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from endeavour.config import run_hydra
from endeavour.errors import RunError, UserError
from endeavour.evaluation.metrics import METRICS, bleu_key
from endeavour.overrides import quote_words
from endeavour.progress import results_console, say
from endeavour.runs.config import read_config
from endeavour.runs.locks import lock_folder
from endeavour.storage import write_errors
from endeavour.sweeps.picture import draw_results
from endeavour.sweeps.plan import Plan, make_plan
from endeavour.sweeps.table import FAILED, Row, results_table, seeds_table, sort_rows, write_csv
from endeavour.sweeps.trial import NOTE, OUTPUT, TRACEBACK, note_trial_restart, read_note, result_rows, trial

# The screen has room for the scores that decide; the CSV has all.
ONLY_IN_CSV = ("_digest", "checkpoints", ".perplexity")


def sweep(overrides: list[str]) -> None:
    """Trains at every point of the sweep, then prints the results, best first, and writes table and picture.

    What is finished already is not trained again, and a trial that fails does not end the sweep.

    Raises:
        UserError: nothing is swept, or in a way that is not supported; or trials failed (after all the others ran).
        RuntimeError: trials failed by a defect.
    """
    if any(argument.startswith("-") for argument in overrides):
        run_hydra("train", "sweep", trial, overrides)  # --help, --cfg and the like
        return
    # choice(…) means the list in it, but of what Hydra takes from a function it loses the quotes.
    overrides = [quote_words(re.sub(r"=choice\((.*,.*)\)$", r"=\1", override)) for override in overrides]
    plan = make_plan(overrides)
    with lock_folder(plan.folder, "swept"):
        with write_errors(plan.folder, "output_folder"):
            if plan.folder.exists():
                TemporaryFile(dir=plan.folder).close()  # or it would be told after all trials
            # A search's notes belong to its study; a grid's are all written again.
            for name in () if plan.searches else (NOTE, OUTPUT, TRACEBACK):
                for old in plan.folder.glob(f"*/{name}"):
                    old.unlink()
        if not plan.searches and any("training.restart" in override for override in overrides):
            _note_restarts(plan, overrides)
        defect: Exception | None = None
        try:
            run_hydra("train", "sweep", trial, ["--multirun", *overrides, *plan.added])
        except UserError:
            raise
        except Exception as error:  # of a launcher; the results of its trials are still worth a table
            defect = error
        rows = _report(plan)
    if defect is not None and not rows:
        raise defect
    if defect is not None:
        raise RunError(f"{type(defect).__name__}: {defect}\nthe same command continues") from defect
    if not rows:
        raise RuntimeError(f"no trial has left a note in {plan.folder}")
    _raise_failures(plan, [row for row in rows if row["status"] == FAILED], len(rows))


def _note_restarts(plan: Plan, overrides: list[str]) -> None:
    """Notes of all runs of a grid that they are to be trained anew, so that a sweep that is stopped goes on with it."""
    here = [one for one in overrides if not one.startswith(("hydra/launcher", "hydra.launcher"))]
    run_hydra("train", "sweep", note_trial_restart, ["--multirun", *here, *plan.added])


def _raise_failures(plan: Plan, failed: list[Row], trials: int) -> None:
    if not failed:
        return
    reason = "; ".join(str(failed[0]["error"]).splitlines()[:2])  # the second says what to do
    text = f"{len(failed)} of {trials} trials failed, such as {failed[0]['name']}: {reason}\n"
    again = "the same command tries them again and repeats no other"
    notes = {path.parent: read_note(path.parent) for path in plan.folder.glob(f"*/{NOTE}")}
    defects = [str(folder) for folder, note in notes.items() if not note.get("by_user", True)]
    if defects:
        raise RunError(f"{text}{min(defects)}/{TRACEBACK} shows where it happened; {again}")
    raise UserError(f"{text}once that is mended, {again}")


def _report(plan: Plan) -> list[Row]:
    """Prints and writes the results of a sweep's trials, best first; nothing if none was started."""
    notes = sorted(plan.folder.glob(f"*/{NOTE}"), key=lambda path: int(path.parent.name))
    rows = sort_rows(result_rows([path.parent for path in notes], plan.metric), plan.metric)
    if not rows:
        return rows
    judged = _judged_by([path.parent for path in notes])
    shown = [
        {column: row[column] for column in row if _is_shown(column, plan.metric, judged)} for row in rows
    ]
    console = results_console()
    console.print(results_table(shown, plan.metric))
    if over_seeds := seeds_table(shown, plan.keys):
        console.print(over_seeds)
    table, picture = plan.folder / "results.csv", plan.folder / "results.png"
    # A key with the same value in all rows has no column.
    keys = [key for key in plan.keys if any(key in row for row in rows)]
    with write_errors(plan.folder, "output_folder"):
        write_csv(table, rows)
        drawn = draw_results(rows, keys, plan.metric, picture)
    say(console, f"table: {table}")
    if drawn:
        say(console, f"picture: {picture}")
    return rows


def _judged_by(trials: Sequence[Path]) -> set[str]:
    """The BLEUs by which the runs of these trials are to be judged."""
    keys: set[str] = set()
    for folder in trials:
        with suppress(UserError):  # a failed trial may have left no config
            config = read_config(Path(read_note(folder)["run"]) / "config.yaml")
            keys.add(bleu_key(lowercase=config.tokenizer.lowercase))
    return keys


def _is_shown(column: str, metric: str, judged: Collection[str]) -> bool:
    name = column.rpartition(".")[2]
    by_another = column.startswith("test.") and name in METRICS and name not in judged
    return column == metric or not (by_another or column.endswith(ONLY_IN_CSV))
