"""The trained runs that a command's config names, as the object that translates and evaluates."""

import sys
from pathlib import Path
from typing import Protocol

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import Quantization
from endeavour.interface import TrainedRun
from endeavour.runs.run import select_runs

UNASKED: Quantization = "int8"  # as in conf/


class Asked(Protocol):
    """What the configs of these commands share."""

    run: str | None
    device: str
    output_folder: str
    quantization: Quantization
    decoding: DecodingConfig


def open_runs(config: Asked) -> TrainedRun:
    """One run, or several as an ensemble. A note says where a quantization was named that nothing reads.

    Raises:
        UserError: no such run.
    """
    if config.decoding.engine == "pytorch" and config.quantization != UNASKED:
        print(
            f"note: quantization={config.quantization} is of an export, which decoding.engine=ctranslate2 reads; "
            "PyTorch decodes",
            file=sys.stderr,
        )
    return TrainedRun(
        select_runs(config.run, Path(config.output_folder)),
        config.decoding,
        device=config.device,
        quantization=config.quantization,
    )
