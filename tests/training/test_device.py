"""Devices and precisions by name."""

import pytest
import torch

from endeavour.errors import UserError
from endeavour.training.device import autocast, choose_device, choose_precision


def test_auto_finds_a_device() -> None:
    assert choose_device("auto").type in ("cuda", "mps", "cpu")
    assert choose_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "cuda:x", "meta"])
def test_a_device_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UserError, match=f"device={name}"):
        choose_device(name)


def test_precisions() -> None:
    cpu = torch.device("cpu")
    assert choose_precision("fp32", cpu) == torch.float32
    assert choose_precision("bf16", cpu) == torch.bfloat16
    assert choose_precision("auto", cpu) in (torch.float32, torch.bfloat16)
    with autocast(cpu, torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with autocast(cpu, torch.float32):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_on_cuda_attention_is_not_cudnns(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        choose_device("cpu")
        assert torch.backends.cuda.cudnn_sdp_enabled()
        assert choose_device("auto").type == "cuda"
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
