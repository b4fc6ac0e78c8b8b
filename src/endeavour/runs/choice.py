"""The runs that a command means: by name, the newest, or all that are compared or joined. Knows folders and names."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from endeavour.errors import UserError
from endeavour.runs.listing import begun_runs, trained_runs
from endeavour.runs.names import names_in, quoted, run_name
from endeavour.runs.run import Run


def select_runs(text: str | None, root: Path, *, begun: bool = False) -> list[Run]:
    """The trained runs that `run=…` names, or the newest finished one; with `begun` also those still being trained.

    Raises:
        UserError: there is no such run.
    """
    if text is None:
        newest = _newest(root) or (next(iter(begun_runs(root)), None) if begun else None)
        if newest is None:
            raise UserError(
                f"there is no finished run in {root}: train one, wait for one, or name another folder by "
                "output_folder=…"
            )
        return [newest]
    runs = named_runs("run", text, root)
    if not runs:
        raise UserError(
            'run names no run: run=NAME, run="NAME NAME" for an ensemble, or null for the newest one'
        )
    for run in runs:
        if not (begun and run.has_config):
            require_trained(run, "name another with run=…, or train it first")
    return runs


def select_run(text: str | None, root: Path, reason: str, *, begun: bool = False) -> Run:
    """The one run that `run=…` names, otherwise as `select_runs`.

    Raises:
        UserError: there is no such run, or several are named; `reason` says why there can only be one.
    """
    run, *others = select_runs(text, root, begun=begun)
    if others:
        raise UserError(f"{reason}: name one run with run=…")
    return run


def named_runs(key: str, text: str | None, root: Path) -> list[Run]:
    """The runs in `a b`, `a,b` or `[a, b]`, trained or not; none in an empty text.

    Raises:
        UserError: a name leads out of `root`, or is there twice; `key` is what the text is the value of.
    """
    runs: list[Run] = []
    for name in names_in(key, text):
        run = Run(root, run_name(key, name, str(root)))
        if run in runs:
            raise UserError(f"{key}={text}: {run.name} is named twice")
        runs.append(run)
    return runs


def require_trained(run: Run, remedy: str) -> None:
    """Raises `UserError`, with the remedy and trained runs of the closest names, where a run has no final weights."""
    if run.is_trained:
        return
    if run.was_begun:
        if run.is_locked:
            raise UserError(f"{run} is being trained")
        if run.is_finished:
            raise UserError(f"{run} has lost its model: restore it, or {run.model_again}")
        raise UserError(f"{run} is not finished: {run.continuation}")
    names = [one.name for one in trained_runs(run.root)]
    closest = get_close_matches(run.name, names, n=8, cutoff=0)
    more = f" … and {len(names) - len(closest)} more" if len(names) > len(closest) else ""
    known = f"finished runs: {', '.join(closest)}{more}" if names else "there is no finished run yet"
    raise UserError(f"{run} holds no trained model ({known})\n{remedy}")


def require_translators(runs: Iterable[Run]) -> None:
    """Raises `UserError` for one that restores masked sentences."""
    for run in runs:
        if run.restores:
            raise UserError(f"{run} has learnt to restore masked sentences, not to translate; name others")


def require_one_direction(runs: Sequence[Run]) -> None:
    """Raises `UserError` where they do not translate in the same direction."""
    first = runs[0].config.direction
    for run in runs:
        if run.config.direction != first:
            raise UserError(
                f"{run} translates {run.config.direction} and {runs[0]} {first}: no ensemble of them"
            )


def joined(runs: Sequence[Run]) -> str:
    """The names of runs as `run=…` takes them."""
    return " ".join(quoted(run.name) for run in runs)


def _newest(root: Path) -> Run | None:
    """The run that was finished last of those that were trained here, to translate."""
    finished = [run for run in trained_runs(root) if (run.folder / "summary.json").is_file()]
    finished.sort(key=lambda run: (run.folder / "summary.json").stat().st_mtime_ns, reverse=True)
    return next(filter(_is_own_translator, finished), None)


def _is_own_translator(run: Run) -> bool:
    try:
        return not (run.is_imported or run.is_averaged or run.restores)
    except UserError:  # damaged, which is reported by those who need it
        return True
