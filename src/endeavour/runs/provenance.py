"""What it would take to repeat a command: its words, the code's commit, versions, the device."""

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from endeavour.native.functions import why_not
from endeavour.training.device import processor

PACKAGES = (
    "endeavour",
    "torch",
    "datasets",
    "sentencepiece",
    "sacrebleu",
    "hydra-core",
    "safetensors",
    "wandb",
)


def describe_start(device: torch.device, command: Sequence[str]) -> dict[str, Any]:
    """What it would take to repeat this `command`: its words, git commit, versions, device."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    # Those of `native` round otherwise than torch's operations.
    kernels = device.type == "cpu" and why_not() is None
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": list(command),
        "git_commit": _git_commit(),
        "packages": {package: _version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "device": {
            "type": device.type,
            "name": name,
            "threads": torch.get_num_threads(),
            "kernels": kernels,
        },
        "cores": os.cpu_count(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """Of the checkout that this code lies in, with "+changes" where it differs from the commit; None elsewhere."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        # Installed, this may lie in the checkout of something else.
        git("ls-files", "--error-unmatch", __file__)
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None
