"""The trained runs that a command's config names, as the object that translates and evaluates."""

from pathlib import Path

from pydantic.dataclasses import dataclass

from endeavour.decoding.config import DecodingConfig
from endeavour.interface import TrainedRun
from endeavour.runs.choice import select_runs
from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class TranslatingRoot:
    """What the roots of the commands that translate with trained runs share."""

    run: str | None
    device: str
    output_folder: str
    decoding: DecodingConfig


def open_runs(config: TranslatingRoot) -> TrainedRun:
    """One run, or several as an ensemble.

    Raises:
        UserError: no such run.
    """
    return TrainedRun(
        select_runs(config.run, Path(config.output_folder)),
        config.decoding,
        device=config.device,
    )
