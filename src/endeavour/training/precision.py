"""In which precision matrix products are computed, and why: as asked for, by the device, or as measured.

`auto` on a CPU with bf16 instructions measures: without AMX they can be slower than fp32's. What was measured is kept
in `precision.json` of a cache folder, which may be missing, damaged or read-only. Knows sizes only.
"""

import json
import math
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from endeavour.native import functions as native
from endeavour.native.layer_step import INPUTS, most_rows
from endeavour.storage import cache_folder, read_json_object
from endeavour.training.bf16_speed import decoding_speedup, training_speedup
from endeavour.training.device import processor

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# bf16 rounds, so it must be clearly faster to be chosen. Most of an update is products, and of a step by the kernels.
# About half of a step by torch's operations is not, and tends to lose: 1.3 times as fast products made searches slower,
# 1.45 times as fast 1.1 to 1.25 faster.
WORTHWHILE, WORTHWHILE_BY_TORCH = 1.05, 1.4
CACHE = "precision.json"


@dataclass(frozen=True)
class Precision:
    """What matrix products compute in, fp32, bf16 or fp16, with one line for the user on how it was chosen."""

    name: str
    reason: str

    def __post_init__(self) -> None:
        if self.name not in DTYPES:
            raise ValueError(f"{self.name} is not a precision")

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.name]


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[object]:
    """Products in `precision`; weights and optimizer stay in fp32."""
    if precision == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=precision)


def choose_training_precision(
    name: str, device: torch.device, *, width: int, feed_forward: int, vocabulary: int, tokens: int
) -> Precision:
    """The precision of training under `autocast`.

    Args:
        name: auto, fp32, bf16 or fp16.
        width, feed_forward, vocabulary: the model's sizes, the vocabulary being the target's.
        tokens: of one batch.
    """
    if name != "auto":
        slow = "" if has_units(name, device) else "; no units for it are known here: slower than fp32"
        return Precision(name, f"{name}, as asked for{slow}")
    sizes = {"width": width, "feed_forward": feed_forward, "vocabulary": vocabulary, "tokens": tokens}
    return _choose(device, "training", sizes, lambda: training_speedup(**sizes), WORTHWHILE)


def choose_decoding_precision(
    device: torch.device, *, width: int, feed_forward: int, vocabulary: int, rows: int
) -> Precision:
    """The precision of a search whose weights are held in it, where it is to be chosen.

    Args:
        width, feed_forward, vocabulary: the model's sizes, the vocabulary being the target's.
        rows: hypotheses that are extended at a time: sentences of a batch × beam size.
    """
    sizes = {"width": width, "feed_forward": feed_forward, "vocabulary": vocabulary, "rows": rows}
    few = device.type == "cpu" and rows <= most_rows(torch.bfloat16)
    by_kernels = few and width % INPUTS == feed_forward % INPUTS == 0 and native.build()
    least = WORTHWHILE if by_kernels else WORTHWHILE_BY_TORCH
    return _choose(device, "decoding", sizes, lambda: decoding_speedup(**sizes), least)


def _choose(
    device: torch.device, task: str, sizes: dict[str, int], measure: Callable[[], float], least: float
) -> Precision:
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        if major >= 8:
            return Precision(
                "bf16", f"bf16: this GPU, of compute capability {major}.{minor}, has units for it"
            )
        return Precision(
            "fp32", f"fp32: this GPU, of compute capability {major}.{minor}, has no units for bf16"
        )
    if device.type != "cpu":
        return Precision("fp32", f"fp32, as always on {device.type}")
    if not _has_bf16_instructions():
        return Precision("fp32", "fp32: this processor has no bf16 instructions")
    key = f"{_machine()}: {task}, " + ", ".join(f"{size} {number}" for size, number in sizes.items())
    ratio = _remembered(key)
    if ratio is None:
        ratio = measure()
        _remember(key, ratio)
    found = f"products are {ratio:.2f} times as fast in bf16 as in fp32 here, measured"
    if ratio >= least:
        return Precision("bf16", f"bf16: {found}")
    return Precision("fp32", f"fp32: {found}; {task} gains from {least} on")


def has_units(name: str, device: torch.device) -> bool:
    """Whether it is known to compute in this precision, other than by emulating it."""
    if device.type == "cpu" and name != "fp32":
        return name == "bf16" and _has_bf16_instructions()
    return name != "bf16" or device.type != "cuda" or torch.cuda.get_device_capability(device)[0] >= 8


def _has_bf16_instructions() -> bool:
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()  # pyright: ignore[reportPrivateUsage]


def _machine() -> str:
    """What a measurement holds for: processor, instructions that the system lets through, build of torch, kernels."""
    units = "AMX" if torch.cpu._is_amx_tile_supported() else "AVX-512"  # pyright: ignore[reportPrivateUsage]
    return f"{processor()} with {units}, torch {torch.__version__}, {native.build() or 'no kernels'}"


def _read() -> dict[str, Any]:
    """What was measured so far; empty where that cannot be read."""
    try:
        return read_json_object(cache_folder() / CACHE)
    except (OSError, ValueError, RuntimeError, RecursionError):
        return {}


def _remembered(key: str) -> float | None:
    ratio = _read().get(key)
    return ratio if isinstance(ratio, float) and 0 < ratio < math.inf else None


def _remember(key: str, ratio: float) -> None:
    """Adds to the cache, where it can be written: under a name of its own first, as runs may begin together."""
    with suppress(OSError, RuntimeError):
        path = cache_folder() / CACHE
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_read() | {key: ratio}, indent=1, sort_keys=True)
        with tempfile.TemporaryDirectory(prefix=f".{CACHE}-", dir=path.parent) as folder:
            (Path(folder) / CACHE).write_text(content + "\n", "utf-8")
            (Path(folder) / CACHE).replace(path)
