"""The trained runs that a command's config names, as the object that translates and evaluates."""

import sys
from pathlib import Path
from typing import Protocol

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import Quantization
from endeavour.interface import TrainedRun
from endeavour.runs.choice import select_runs

UNASKED: Quantization = "int8"  # as in conf/


class Translates(Protocol):
    """What the configs of all commands that translate share."""

    quantization: Quantization
    decoding: DecodingConfig


class Asked(Translates, Protocol):
    """And of those that open one run or several."""

    run: str | None
    device: str
    output_folder: str


def open_runs(config: Asked) -> TrainedRun:
    """One run, or several as an ensemble.

    Raises:
        UserError: no such run.
    """
    note_unread(config)
    return TrainedRun(
        select_runs(config.run, Path(config.output_folder)),
        config.decoding,
        device=config.device,
        quantization=config.quantization,
    )


def note_unread(config: Translates) -> None:
    """Says where a quantization was named that nothing reads."""
    if config.decoding.engine == "pytorch" and config.quantization != UNASKED:
        print(
            f"note: quantization={config.quantization} is of an export, which decoding.engine=ctranslate2 reads; "
            "PyTorch decodes",
            file=sys.stderr,
        )
