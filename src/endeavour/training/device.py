"""Which device computes, and what the processor is called. Knows torch's devices only."""

import ctypes
import os
import platform
import sys
from pathlib import Path

import torch

from endeavour.errors import UserError


def choose_device(name: str) -> torch.device:
    """`auto`: CUDA, then MPS, then the CPU; otherwise the device of that name.

    Raises:
        UserError: no such device here.
    """
    device = _device(name)
    if device.type == "cuda":
        # Of its kernels for attention torch prefers cuDNN's on H100 and later, which make a plan for every new shape
        # of a batch (half a second each: FunASR issue 3704) and gave NaN for masked rows (PyTorch issue 196678).
        torch.backends.cuda.enable_cudnn_sdp(False)
    elif device.type == "cpu":
        # oneDNN, which multiplies bf16 on CPUs, compiles a kernel for every new shape (2 ms, 0.7 MB) and keeps 1,024 of
        # them; an epoch of Multi30k can have 2,500. It reads this before its first product.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "4096")
    return device


def _device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"device={name} is not supported: choose auto, cpu, cuda, cuda:1 … or mps") from error
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not available.get(device.type, False):
        raise UserError(
            f"device={name}: this machine (or this build of torch) has none; use device=auto or cpu"
        )
    return device


def processor() -> str:
    """The processor's name; where the system does not tell, its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def keep_memory() -> None:
    """Makes the C library keep freed memory instead of giving it back: mapping it anew costs page faults.

    An update on the CPU frees and takes the same large blocks again and again. Linux with glibc only, and
    nothing elsewhere; to be called before the first large tensor.
    """
    if not sys.platform.startswith("linux"):
        return
    trim_threshold, top_pad, mmap_max = -1, -2, -4  # numbers of malloc.h
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(top_pad, 64 * 2**20)
    mallopt(mmap_max, 0)
