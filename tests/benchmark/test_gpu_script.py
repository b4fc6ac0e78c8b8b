"""`benchmark/gpu.py`: each step is a command that exists, and what was measured outlives failures and cuts."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench_config import load_bench

from configs import run_config
from endeavour.overrides import quote_literal

FOLDER = Path(__file__).parents[2] / "benchmark"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    import gpu

    yield gpu
    for name in ("gpu", "gpu_steps"):
        sys.modules.pop(name, None)


def run(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *words])
    return gpu.main()


def with_steps(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, codes: dict[str, str], **seconds: float
) -> None:
    """Makes steps of one line of Python each, in whose folder `results.json` is what they left.

    Args:
        seconds: their limits; the others have a minute.
    """

    def step(name: str, code: str) -> Any:
        def results(folder: Path) -> dict[str, Any]:
            return json.loads((folder / "results.json").read_text("utf-8"))

        return type(gpu.STEPS["tests"])(seconds.get(name, 60.0), lambda place, name: ["-c", code], results)

    monkeypatch.setattr(gpu, "STEPS", {name: step(name, code) for name, code in codes.items()})
    monkeypatch.setattr(gpu, "GRACE", 0.3)


@pytest.mark.parametrize("rehearse", [False, True])
@pytest.mark.parametrize("folder", ["results", "g (6), o'n ${x} ü"])
def test_every_step_is_a_command_that_its_config_accepts(
    rehearse: bool, folder: str, gpu: ModuleType, tmp_path: Path
) -> None:
    place = gpu.Place(tmp_path / folder, None, tmp_path / folder / "text", rehearse)
    composed = 0
    for name, step in gpu.STEPS.items():
        words = step.command(place, name)
        if name in ("install", "ensemble"):  # need what is not there
            assert words is None
            continue
        if words[1] != "endeavour":
            assert str(tmp_path / folder / name) in words[-1]
            continue
        assert f"device={'cpu' if rehearse else 'cuda'}" in words
        overrides = [quote_literal(word) for word in words[3:]]
        config = load_bench(overrides) if words[2] == "bench" else run_config(overrides)
        assert config.name == name
        assert (config.output_folder, config.data_folder) == (str(place.out / name), str(place.out / "data"))
        if words[2] == "train":
            assert config.corpus.path == str(place.out / "toy" if rehearse else place.text)
        composed += 1
    assert composed == 13


def test_a_step_that_fails_or_hangs_is_recorded_and_the_next_one_begins(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    leaving = f"open({str(tmp_path / 'good' / 'results.json')!r}, 'w').write('{{\"figure\": 7}}')"
    codes = {"bad": "print('the reason'); 1 / 0", "hangs": ignoring, "good": leaving}
    with_steps(gpu, monkeypatch, codes, hangs=0.5)
    assert run(gpu, monkeypatch, "--out", str(tmp_path)) == 1
    entries = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert {name: entry["status"] for name, entry in entries.items()} == {
        "bad": "failed",
        "hangs": "too slow",
        "good": "done",
    }
    assert entries["bad"]["log"][0] == "the reason"
    assert entries["bad"]["results"] == entries["hangs"]["results"] == {}
    assert entries["good"]["results"] == {"figure": 7}
    table = (tmp_path / "gpu.md").read_text("utf-8")
    assert "| hangs | too slow |" in table
    assert "ZeroDivisionError" in table


def test_steps_run_one_by_one_add_to_what_is_there_and_none_begins_late(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_steps(gpu, monkeypatch, {"first": "1 / 0", "second": "pass"})
    assert run(gpu, monkeypatch, "--out", str(tmp_path), "first") == 1
    assert run(gpu, monkeypatch, "--out", str(tmp_path), "second", "--minutes", "0") == 0
    entries = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert [entry["status"] for entry in entries.values()] == ["failed", "left out"]
    with pytest.raises(SystemExit):
        run(gpu, monkeypatch, "--out", str(tmp_path), "third")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wheels", "empty"], "--wheels {}/empty: no wheels"),
        (["--wheels", "missing"], "--wheels {}/missing: no wheels"),
        (["--text", "empty"], "--text {}/empty: no train.en"),
        ([], "{}/out/gpu.json is damaged"),
    ],
)
def test_what_the_steps_could_not_use_is_refused_before_the_first(
    words: list[str],
    message: str,
    gpu: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gpu.json").write_text("" if not words else "{}")
    with_steps(gpu, monkeypatch, {"first": "pass"})
    with pytest.raises(SystemExit, match="2"):
        run(gpu, monkeypatch, "--out", "out", *words)
    assert message.format(tmp_path) in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["gpu.json"]


def test_the_table_has_the_scores_of_each_test_set_in_words(gpu: ModuleType, tmp_path: Path) -> None:
    results = {
        "summary": {"test": {"test": {"bleu": 41.234, "chrf": 60.0}, "test_rare": {"bleu": 7.5}}},
        "train": {"tokens_per_second": 12345.6},
    }
    gpu.write(tmp_path, {"multi30k": {"status": "done", "seconds": 3.0, "results": results}})
    row = "| multi30k | done | 3.0 | test: bleu 41.23, chrf 60; test_rare: bleu 7.5; 12,346 target tokens/s |"
    assert row in (tmp_path / "gpu.md").read_text("utf-8")


def test_a_python_that_is_no_version_is_refused_before_anything_is_collected(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import wheels

    monkeypatch.delitem(sys.modules, "wheels")
    monkeypatch.setattr(wheels, "fetch", None)
    for python in ("nonsense", "3", "3.12.1"):
        monkeypatch.setattr(sys, "argv", ["wheels.py", str(tmp_path / "wheels"), "--python", python])
        with pytest.raises(SystemExit, match="2"):
            wheels.main()
        assert f"--python {python}: no version such as 3.12" in capsys.readouterr().err
    assert not (tmp_path / "wheels").exists()


def test_wheels_are_installed_for_the_steps_that_follow(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "carried-1.0-py3-none-any.whl", "w") as wheel:
        info = "carried-1.0.dist-info"
        wheel.writestr("carried.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    out = tmp_path / "out"
    step = gpu.STEPS["install"]
    with_steps(gpu, monkeypatch, {"uses": "import carried, endeavour"})
    gpu.STEPS["install"] = step
    words = ["--out", str(out), "--wheels", str(tmp_path / "wheels")]
    assert run(gpu, monkeypatch, *words, "install", "uses") == 0


def test_the_collected_packages_are_those_needed_but_torch(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wheels
    from packaging.markers import default_environment

    everything = wheels.needed(["datasets", "hydra-core", "torch"], {"torch"}, default_environment())
    assert {"hydra-core", "omegaconf", "numpy", "antlr4-python3-runtime", "pandas"} <= set(everything)
    assert {"torch", "networkx"} & set(everything) == set()
    fewer = wheels.needed(["hydra-core"], {"omegaconf"}, default_environment())
    assert "omegaconf" not in fewer
    assert wheels.needed(["hydra-core"], {"hydra-core"}, default_environment()) == {}
    with pytest.raises(SystemExit, match="no-such-package is not installed here"):
        wheels.needed(["no-such-package"], set(), default_environment())
    sys.modules.pop("wheels")


@pytest.mark.slow  # a dozen processes that import torch: half a minute where nothing else runs
def test_a_rehearsal_goes_through_all_steps(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "gpu.py"), "--out", str(tmp_path), "--rehearse"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    entries = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    failed = {name: entry for name, entry in entries.items() if entry["status"] == "failed"}
    assert failed == {}, ended.stdout
    for name in ("base-eager", "base-compiled", "big-eager", "big-compiled"):
        row = entries[name]["results"]["training"][0]
        assert row["first_update_seconds"] > 0
        assert row["share_of_product"] > 0
    assert {row["batch"] for row in entries["decoding"]["results"]["decoding"]} == {1, 4}
    assert entries["growth"]["results"]["growth"]
    assert entries["multi30k"]["results"]["summary"]["status"] == "finished"
    best = entries["best"]["results"]
    assert [run["status"] for run in (*best["teachers"], best["summary"])] == ["finished"] * 3
    assert len(entries["ensemble"]["results"]) == 3
    assert entries["tests"]["results"]["failures"] == 0
    assert entries["tests"]["results"]["tests"] > 0
    text = (tmp_path / "gpu.md").read_text("utf-8")
    assert "first update, s" in text
    assert text.count("How it was counted") == 1
