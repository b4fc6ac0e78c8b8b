"""Whether a run goes on or is trained anew, and how one is thrown away so that no stop leaves half of it."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from endeavour.errors import UserError
from endeavour.runs.config import RunConfig
from endeavour.runs.listing import begun_runs, trained_runs
from endeavour.runs.run import Run
from endeavour.runs.starts import was_started_in_this_job
from endeavour.storage import hidden_beside, write_errors


def goes_on(run: Run, config: RunConfig) -> bool:
    """Whether `config` continues what is in the folder of `run`, or finds it finished; not whether settings agree.

    A restart that was stopped before it threw the run away is still one, whatever `config` says.
    """
    restarts = config.training.restart and not was_started_in_this_job(run.starts_file)
    return run.was_begun and not restarts and not restart_file(run).exists()


def restart_file(run: Run) -> Path:
    """A file that is there while what was trained is to be discarded."""
    return hidden_beside(run.folder, "restart")


def note_restart(run: Run) -> None:
    """Notes that what was trained is to be discarded, by whichever command goes on after a stop.

    Raises:
        FolderBusy: another process trains it.
    """
    if run.was_begun:
        with run.lock(), write_errors(run.folder, "output_folder"):
            restart_file(run).touch()


@contextmanager
def restart_noted(run: Run) -> Generator[None]:
    """The same; after a mistake of the user it is not to be."""
    note_restart(run)
    try:
        yield
    except UserError:
        restart_file(run).unlink(missing_ok=True)
        raise


def require_alone(run: Run) -> None:
    """Raises `UserError` where other runs lie in the folder of `run`, which is to be replaced."""
    real = run.folder.resolve()  # it may be a link to another disk
    if within := [other.name for other in {*begun_runs(real), *trained_runs(real)} if other.folder != real]:
        raise UserError(
            f"{run} holds other runs ({', '.join(sorted(within))}), which would be thrown away with it: move them"
        )


def discard(run: Run) -> None:
    """Deletes what was trained, in one step, so that half of it is never mistaken for a run.

    Raises:
        UserError: other runs lie in its folder.
    """
    real = run.folder.resolve()
    discarded = hidden_beside(real, "discarded")
    shutil.rmtree(discarded, ignore_errors=True)  # of a restart that was killed
    if run.was_begun:
        require_alone(run)
        real.rename(discarded)
        if run.folder.is_symlink():
            real.mkdir()  # or it would lead nowhere
        shutil.rmtree(discarded)
        run.forget_config()
    restart_file(run).unlink(missing_ok=True)
