"""Devices by name."""

import os

import pytest
import torch

from endeavour.errors import UserError
from endeavour.training.device import choose_device


@pytest.mark.parametrize(
    ("cuda", "mps", "chosen"),
    [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_is_the_fastest_device(
    cuda: bool, mps: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        assert choose_device("auto").type == chosen
        assert choose_device("cpu").type == "cpu"
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "cuda:x", "meta"])
def test_a_device_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UserError, match=f"device={name}"):
        choose_device(name)


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


def test_on_cpus_more_kernels_are_kept_unless_the_user_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, "7")
    choose_device("cpu")
    assert os.environ[name] == "7"
    monkeypatch.delenv(name)
    choose_device("cpu")
    assert int(os.environ[name]) > 1024
