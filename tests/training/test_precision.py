"""The precision that is chosen, with made-up measurements; and that the real one measures in both precisions."""

import json
import math
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch

from endeavour.training import bf16_speed, precision
from endeavour.training.bf16_speed import decoding_speedup, training_speedup
from endeavour.training.precision import (
    Precision,
    choose_decoding_precision,
    choose_training_precision,
)

CPU = torch.device("cpu")
Measured = Callable[..., list[dict[str, int]]]


def train_in(name: str = "auto", device: torch.device = CPU, width: int = 16) -> Precision:
    return choose_training_precision(name, device, width=width, feed_forward=32, vocabulary=99, tokens=7)


def decode_in(device: torch.device = CPU, rows: int = 5, width: int = 32) -> Precision:
    return choose_decoding_precision(device, width=width, feed_forward=32, vocabulary=99, rows=rows)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENDEAVOUR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "precision.json"


@pytest.fixture
def measured(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Called with a ratio: a processor with AVX-512 BF16 that gives it; returns the sizes that will be measured."""

    def measure(ratio: float) -> list[dict[str, int]]:
        calls: list[dict[str, int]] = []

        def speedup(**sizes: int) -> float:
            calls.append(sizes)
            return ratio

        monkeypatch.setattr(precision, "training_speedup", speedup)
        monkeypatch.setattr(precision, "decoding_speedup", speedup)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
        return calls

    return measure


@pytest.mark.parametrize(("units", "slow"), [(True, ["fp16"]), (False, ["bf16", "fp16"])])
def test_a_precision_that_is_asked_for_is_said_to_be_slow_where_it_is(
    units: bool, slow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: units)
    said = {name: train_in(name).reason for name in ("fp32", "bf16", "fp16")}
    assert all(reason.startswith(f"{name}, as asked for") for name, reason in said.items())
    assert [name for name, reason in said.items() if "slower than fp32" in reason] == slow


@pytest.mark.parametrize(
    ("ratio", "training", "decoding"),
    [(0.7, "fp32", "fp32"), (1.04, "fp32", "fp32"), (1.06, "bf16", "fp32"), (1.5, "bf16", "bf16")],
)
def test_auto_is_bf16_where_it_is_clearly_faster(
    ratio: float, training: str, decoding: str, measured: Measured
) -> None:
    calls = measured(ratio)
    for chosen, name in ((train_in(), training), (decode_in(rows=500), decoding)):
        assert chosen.name == name
        assert chosen.reason.startswith(name)
        assert f"{ratio:.2f}" in chosen.reason
    sizes = {"feed_forward": 32, "vocabulary": 99}
    assert calls == [sizes | {"width": 16, "tokens": 7}, sizes | {"width": 32, "rows": 500}]


@pytest.mark.parametrize(("build", "name"), [("kernels-1", "bf16"), ("", "fp32")])
def test_of_few_rows_kernels_gain_what_products_do(
    build: str, name: str, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = measured(1.2)
    monkeypatch.setattr(precision.native, "build", lambda: build)
    assert decode_in(rows=5).name == name
    assert decode_in(rows=5, width=48).name == "fp32", "which the kernels do not take"
    assert decode_in(rows=500).name == "fp32"
    monkeypatch.setattr(precision.native, "build", lambda: "kernels-2")
    decode_in(rows=5)
    assert len(calls) == 4, "other kernels are measured anew"


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_a_precision_that_is_asked_for_is_not_measured(name: str, measured: Measured, cache: Path) -> None:
    calls = measured(3.0)
    chosen = train_in(name)
    assert chosen.name == name
    assert chosen.reason.startswith(name)
    assert not calls
    assert not cache.exists()


@pytest.mark.parametrize(
    ("device", "capability", "name"),
    [("cuda", (9, 0), "bf16"), ("cuda", (8, 0), "bf16"), ("cuda", (7, 5), "fp32"), ("mps", None, "fp32")],
)
def test_other_devices_are_not_measured(
    device: str,
    capability: tuple[int, int] | None,
    name: str,
    measured: Measured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = measured(3.0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    for chosen in (train_in(device=torch.device(device)), decode_in(device=torch.device(device))):
        assert chosen.name == name
        assert chosen.reason.startswith(name)
    assert not calls


def test_a_processor_without_bf16_is_not_measured(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = measured(3.0)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert train_in().name == decode_in().name == "fp32"
    assert not calls


def test_what_was_measured_is_kept_by_machine_and_sizes(
    measured: Measured, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = measured(1.5)
    first = train_in()
    assert train_in() == first
    assert len(calls) == 1
    assert list(json.loads(cache.read_text()).values()) == [1.5]
    others = (lambda: train_in(width=32), decode_in, lambda: decode_in(rows=6))
    for number, other in enumerate(others, start=2):
        other()
        other()
        assert len(calls) == number
    monkeypatch.setattr(torch, "__version__", "0.1")
    train_in()
    assert len(calls) == 5
    assert list(cache.parent.iterdir()) == [cache]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", "\udcff", '{"%s": "1.5"}', '{"%s": NaN}', '{"%s": -1.0}']
)
def test_a_damaged_cache_is_written_anew(text: str, measured: Measured, cache: Path) -> None:
    calls = measured(1.5)
    train_in()
    (key,) = json.loads(cache.read_text())
    cache.write_text(text.replace("%s", key), encoding="utf-8", errors="surrogateescape")
    assert train_in().name == "bf16"
    assert len(calls) == 2
    assert json.loads(cache.read_text()) == {key: 1.5}


def test_a_cache_that_cannot_be_written_is_no_hindrance(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = measured(1.5)
    (tmp_path / "file").touch()
    monkeypatch.setenv("ENDEAVOUR_CACHE", str(tmp_path / "file" / "below"))
    assert train_in().name == train_in().name == "bf16"
    assert len(calls) == 2


def test_without_a_folder_of_its_own_it_is_the_users(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(1.5)
    monkeypatch.delenv("ENDEAVOUR_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    train_in()
    assert (tmp_path / "home" / ".cache" / "endeavour" / "precision.json").is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    train_in()
    assert (tmp_path / "xdg" / "endeavour" / "precision.json").is_file()


@pytest.mark.parametrize("steps", [(1.0, 1.0), (3.0, 1.5), (1.0, 2.0)])
def test_the_ratio_is_that_of_the_best_times(
    steps: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    spent, calls = 0.0, count()

    def piece(dtype: torch.dtype) -> None:
        nonlocal spent
        disturbed = 5.0 if next(calls) in (4, 5) else 0.0
        spent += steps[dtype == torch.bfloat16] + disturbed

    monkeypatch.setattr(bf16_speed.time, "thread_time", lambda: spent)
    threads = torch.get_num_threads()
    ratio = bf16_speed._speedup([(piece, 3.0), (piece, 1.0)])  # pyright: ignore[reportPrivateUsage]
    assert ratio == pytest.approx(steps[0] / steps[1])
    assert torch.get_num_threads() == threads


def test_measuring_draws_nothing_at_random() -> None:
    before = torch.random.get_rng_state()
    for found in (
        training_speedup(width=8, feed_forward=16, vocabulary=32, tokens=4),
        decoding_speedup(width=8, feed_forward=16, vocabulary=32, rows=1),
    ):
        assert 0 < found < math.inf
    assert torch.equal(torch.random.get_rng_state(), before)
