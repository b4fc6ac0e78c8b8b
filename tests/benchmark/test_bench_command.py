"""The command, by its smallest settings: what it writes, what it says, and what it refuses."""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from bench_config import load_bench

from endeavour.benchmark import parts, scale
from endeavour.benchmark.measure import rates
from endeavour.benchmark.preparation import measure_preparation
from endeavour.benchmark.process import in_fresh_process, peak_memory
from endeavour.benchmark.results import new_folder
from endeavour.benchmark.scale import many_pairs
from endeavour.benchmark.startup import measure_startup
from endeavour.benchmark.tables import TABLES, part_table
from endeavour.benchmark.task import Task
from endeavour.commands.bench import bench, settings_of_figures
from endeavour.errors import UserError
from endeavour.pipeline.data import recipe_of
from served import small_run
from waiting import until

KEYS = {
    "precision": {"size", "what", "precision", "reason"},
    "training": {
        "size",
        "toolkit",
        "parameters",
        "precision",
        "updates",
        "target_tokens",
        "source_tokens",
        "padding",
        "seconds",
        "target_tokens_per_second",
        "tokens_per_second",
        "milliseconds_per_update",
        "flop_per_update",
        "flop_per_second",
        "product_flop_per_second",
        "share_of_product",
        "peak_memory",
        "first_update_seconds",
        "graphs",
        "graph_breaks",
        "recompilations",
        "waits_per_update",
        "waits",
    },
    "epochs": {
        "size",
        "precision",
        "updates",
        "first_epoch_tokens_per_second",
        "second_epoch_tokens_per_second",
        "repeated_tokens_per_second",
        "second_by_repeated",
        "batch_shapes",
        "product_shapes",
        "graphs",
        "graph_breaks",
        "recompilations",
    },
    "decoding": {
        "size",
        "toolkit",
        "precision",
        "beam_size",
        "batch",
        "sentences",
        "tokens_per_sentence",
        "seconds",
        "sentences_per_second",
        "tokens_per_second",
        "latency_milliseconds",
    },
    "data": {"corpus", "tokenizer", "pairs", "seconds", "pairs_per_second", "peak_memory"},
    "scale": {
        "corpus",
        "tokenizer",
        "pairs",
        "seconds",
        "pairs_per_second",
        "peak_memory",
        "training_start_seconds",
        "training_start_memory",
    },
    "growth": {
        "varied",
        "tokens_per_batch",
        "width",
        "updates",
        "seconds",
        "target_tokens_per_second",
        "flop_per_second",
    },
}


@pytest.fixture(scope="module")
def smoke(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides of the smallest benchmark, whose data are prepared once."""
    size = "tokenizer.vocabulary_size=400"  # the scale part has pairs of its own, with more characters
    data = f"data_folder={tmp_path_factory.mktemp('data')}"
    return [*parallel_files, data, size, "bench=smoke", "device=cpu"]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, float) else []


def pairs_in(parallel_files: list[str]) -> int:
    english = [word.split("[")[1].split(",")[0] for word in parallel_files if "splits." in word]
    return sum(Path(path).read_text("utf-8").count("\n") for path in english)


def test_a_smoke_run_writes_all_it_promises(
    smoke: list[str],
    parallel_files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scale, "SENTENCES", 1000)
    measured = "bench.parts=[training,epochs,decoding,data,growth,scale]"
    outputs = f"output_folder={tmp_path / 'outputs'}"
    config = load_bench([*smoke, outputs, measured, "bench.profile=true", "name=x"])
    bench(config, ["endeavour", "bench"])
    folder = tmp_path / "outputs" / "bench" / "x"
    results = json.loads((folder / "bench.json").read_text("utf-8"))
    for part, keys in KEYS.items():
        assert results[part]
        assert all(set(row) == keys for row in results[part])
        assert all(math.isfinite(number) and number >= 0 for number in numbers(results[part]))
        assert set(TABLES[part][1][0].heading.split()) <= set(
            (folder / "report.md").read_text("utf-8").split()
        )
    assert results["epochs"][0]["updates"] == [3, 3]
    assert results["settings"]["bench"]["sizes"] == ["nano"]
    assert results["data"][0]["pairs"] == pairs_in(parallel_files)
    rows = results["training"]
    assert [(row["toolkit"], row["precision"]) for row in rows] == [
        (toolkit, precision) for toolkit in ("endeavour", "torch") for precision in ("fp32", "bf16")
    ]
    assert {row["precision"] for row in results["decoding"]} == {"fp32", "bf16"}
    for key in ("target_tokens", "source_tokens", "padding", "flop_per_update", "parameters"):
        assert len({row[key] for row in rows}) == 1
    for row in rows:
        assert len(row["seconds"]) == 2
        tokens = row["target_tokens"], row["source_tokens"] + row["target_tokens"]
        assert row["target_tokens_per_second"] == rates(tokens[0], row["seconds"])
        assert row["tokens_per_second"] == rates(tokens[1], row["seconds"])
        of_one = [each / row["updates"] for each in row["seconds"]]
        assert row["milliseconds_per_update"] == pytest.approx(1000 * statistics.median(of_one))
        assert row["flop_per_second"] == pytest.approx(rates(row["flop_per_update"], of_one)["median"])
        assert 5e7 < row["peak_memory"] < 1e11  # Python with torch, and no terabyte
        assert row["share_of_product"] == row["flop_per_second"] / row["product_flop_per_second"]
    for row in (*results["data"], *results["scale"]):
        assert row["pairs_per_second"] == row["pairs"] / row["seconds"]
    assert (folder / "growth.png").stat().st_size > 1000
    assert "Self CPU" in (folder / "profile-nano.txt").read_text("utf-8")
    assert json.loads((folder / "trace-nano.json").read_text("utf-8"))["traceEvents"]
    printed = capsys.readouterr()
    assert "target" in printed.out
    assert str(folder) in printed.err.replace("\n", "")


def test_pairs_that_training_text_gives_to_validation_are_read_once(
    parallel_files: list[str], tmp_path: Path
) -> None:
    overrides = ["tokenizer.vocabulary_size=400", "corpus.held_out_rare=3"]
    recipe = recipe_of(load_bench([*parallel_files, *overrides]))
    assert measure_preparation(recipe, tmp_path)["pairs"] == pairs_in(parallel_files)


def test_a_note_on_several_sizes_is_made_once(
    smoke: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure_training(_task: Task, _names: object, *, notes: list[str], done: object) -> list[object]:
        notes.append("slow kernels")
        return []

    monkeypatch.setattr(parts, "measure_training", measure_training)
    outputs = f"output_folder={tmp_path}"
    config = load_bench([*smoke, outputs, "bench.parts=[training]", "bench.sizes=[nano,nano]", "name=x"])
    assert bench(config, [])["notes"] == ["slow kernels"]
    assert (tmp_path / "bench" / "x" / "report.md").read_text("utf-8").count("slow kernels") == 1


def test_each_start_has_a_folder_of_its_own(tmp_path: Path) -> None:
    base = tmp_path / "deep" / "x"
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder(base), range(8)))
    assert {folder.name for folder in folders} == {"x", *(f"x-{number}" for number in range(2, 9))}
    base.with_name("x-9").touch()
    assert new_folder(base).name == "x-10"
    with pytest.raises(UserError, match="output_folder"):
        new_folder(base.with_name("x-9") / "x")


def test_what_was_measured_before_is_not_overwritten(smoke: list[str], tmp_path: Path) -> None:
    """By the same command, with newer code or on another machine."""
    config = load_bench(
        [*smoke, f"output_folder={tmp_path}", "bench.parts=[]", "bench.profile=true", "name=x"]
    )
    bench(config, [])
    before = (tmp_path / "bench" / "x" / "bench.json").stat()
    bench(config, [])
    assert (tmp_path / "bench" / "x" / "bench.json").stat() == before
    assert (tmp_path / "bench" / "x-2" / "report.md").is_file()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["bench.growth_widths=[200]"], "bench.growth_widths=200: model.width=200"),
        (
            [
                "bench.known_sizes=[{name:odd,encoder_layers:1,decoder_layers:1,width:15,num_heads:2,feed_forward:8}]",
                "bench.sizes=[odd]",
            ],
            "bench.sizes=odd: model.width=15",
        ),
        (["bench.decoding_tokens=2100"], "bench.decoding_tokens=2100: at most the model's 2048 positions"),
        (
            ["model.positions=learned", "model.max_length=64", "bench.decoding_tokens=70"],
            "bench.decoding_tokens=70: at most the model's 64 positions",
        ),
        (["bench.tokens_per_batch=4"], "bench.tokens_per_batch=4 is less than the longest pair"),
        (["bench.growth_batches=[4]"], "bench.growth_batches=4 is less than the longest pair"),
    ],
)
def test_what_no_part_could_measure_is_refused_before_the_first(
    overrides: list[str], message: str, smoke: list[str], tmp_path: Path
) -> None:
    typed = [*smoke, f"output_folder={tmp_path / 'outputs'}", *overrides]
    with pytest.raises(UserError) as error:
        bench(load_bench(typed), [])
    assert str(error.value).startswith(message)
    assert not list(tmp_path.glob("**/bench.json"))
    if overrides == ["bench.growth_batches=[4]"]:  # which no other part reads
        config = load_bench(typed)
        config.bench.parts = ["decoding"]
        config.bench.references = []
        assert bench(config, [])["decoding"]


@pytest.mark.parametrize(
    "other", ["direction=de-en", "cleaning.max_tokens=40", "decoding.tokens_per_batch=512", "seed=2"]
)
def test_a_benchmark_notes_all_that_its_figures_depend_on(other: str) -> None:
    def noted(*overrides: str) -> dict[str, Any]:
        return settings_of_figures(load_bench(overrides), torch.device("cpu"))

    assert noted(other) != noted()
    assert noted("name=other", "data_folder=other", "output_folder=other", "device=auto") == noted()
    assert noted()["device"] == "cpu"


def test_the_pairs_of_the_scale_part_are_as_many_as_asked_for_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scale, "SENTENCES", 2000)
    monkeypatch.setattr(scale, "BLOCK", 1000)
    pairs = list(many_pairs(2050, seed=1))
    assert len(pairs) == 2050
    assert len(set(pairs)) > 2040
    assert pairs == list(many_pairs(2050, seed=1))
    assert all(source and target and "\n" not in source + target for source, target in pairs)


def uncounted(_: int) -> Callable[[], None]:
    return lambda: None


def test_start_up_is_timed_in_processes_of_their_own() -> None:
    rows = measure_startup(["prepare"], repeats=1, steps=uncounted)
    assert [(row["command"], row["what"]) for row in rows] == [
        ("", "python"),
        ("prepare", "import"),
        ("prepare", "--help"),
        ("prepare", "--cfg job"),
    ]
    assert all(row["seconds"] > 0 for row in rows)
    assert part_table("startup", rows).row_count == 4
    (python,) = measure_startup([], repeats=3, steps=uncounted)
    assert len(python["all_seconds"]) == 3
    assert python["seconds"] == statistics.median(python["all_seconds"])
    with pytest.raises(UserError, match=r"no_such_stage"):
        measure_startup(["no_such_stage"], repeats=1, steps=uncounted)


def test_a_fresh_process_has_a_peak_of_its_own_and_its_errors_come_back() -> None:
    ballast = bytearray(400_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])  # touched, so that it is held
    peak = in_fresh_process(peak_memory)
    assert peak is not None
    assert 1_000_000 < peak < len(ballast)
    with pytest.raises(ValueError, match="invalid literal"):
        in_fresh_process(int, "x")
    with pytest.raises(UserError, match="killed"):
        in_fresh_process(sys.modules["os"]._exit, 1)


STOPPED = """
import sys
from endeavour.benchmark.process import in_fresh_process
if __name__ == "__main__":
    in_fresh_process(exec, "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(600)")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="groups of processes")
def test_ctrl_c_shows_nothing_of_the_measuring_process(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(STOPPED)
    command = [sys.executable, "stopped.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        until(lambda: (tmp_path / "begun").exists())
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()[1]
    assert "KeyboardInterrupt" in said
    assert "SpawnProcess" not in said


def test_the_run_that_is_played_is_looked_for_before_anything_is_measured(
    smoke: list[str], tmp_path: Path
) -> None:
    small_run(tmp_path, "unasked")
    for name, said in (
        ("none", "name another with bench.played_run="),
        ("unasked", "bench.played_run: unasked"),
    ):
        settings = ["bench.parts=[training,serving]", f"bench.played_run={name}"]
        with pytest.raises(UserError, match=said):
            bench(load_bench([*smoke, f"output_folder={tmp_path}", *settings]), [])
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("parts=[trainig]", "parts"),
        ("sizes=[huge]", "bench.sizes: huge"),
        ("references=[jax]", "references"),
        ("precisions=[fp8]", "precisions"),
        ("precisions=[]", "precisions"),
        ("sizes=[]", "sizes"),
        ("repeats=0", "repeats"),
        ("beam_sizes=[0]", "beam_sizes"),
        ("warmup_updates=-1", "warmup_updates"),
        ("decoding_tokens=1", "decoding_tokens"),
        ("scale_pairs=0", "scale_pairs"),
        ("label_smoothing=1", "label_smoothing"),
        ("clip_norm=0", "clip_norm"),
        ("warmup_updates=30", "bench.warmup_updates=30"),
        ("decoding_batches=[1]", "decoding_batches"),
        ("parts=[]", "bench.parts"),
    ],
)
def test_what_is_no_benchmark_is_refused_by_key(setting: str, key: str) -> None:
    with pytest.raises(UserError) as refused:
        load_bench([f"bench.{setting}"])
    assert str(refused.value).removeprefix("bench.").startswith(key.removeprefix("bench."))


@pytest.mark.parametrize("name", ["/tmp/x", "..", "4+4/16", ".hidden"])
def test_a_size_or_a_peer_is_no_path(name: str) -> None:
    """Files and folders are written and deleted under their names."""
    with pytest.raises(UserError) as refused:
        load_bench([f"bench.known_sizes.0.name={name}"])
    assert str(refused.value).startswith(f"bench.known_sizes.0.name={name}: ")
    with pytest.raises(UserError, match="string should match pattern"):
        load_bench([f"+bench.peers={{{name}:${{bench.peers.eole}}}}"])
    assert load_bench(["bench.known_sizes.0.name=4+4.big-x", "bench.sizes=[4+4.big-x]"])


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("name=../elsewhere", "name='../elsewhere'"),
        ("decoding=sample", "decoding=sample"),
        ("decoding=mbr", "decoding=mbr"),
        ("decoding.precision=bf16", "decoding.precision"),
        ("decoding.engine=ctranslate2", "decoding.engine: a benchmark measures all of bench.references"),
        ("decoding.beam_size=7", "decoding.beam_size: a benchmark measures all of bench.beam_sizes"),
    ],
)
def test_what_is_not_measured_or_written_is_refused(setting: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        bench(load_bench([f"output_folder={tmp_path}", "device=cpu", setting]), [])
    assert str(refused.value).startswith(key)
