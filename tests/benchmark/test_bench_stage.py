"""The stage, by its smallest settings: what it writes, what it says, and what it refuses."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from endeavour.benchmark import scale
from endeavour.benchmark.process import in_fresh_process
from endeavour.benchmark.report import TABLES, screen_table
from endeavour.benchmark.scale import many_pairs
from endeavour.benchmark.startup import measure_startup
from endeavour.config import load_config
from endeavour.errors import UserError
from endeavour.stages.bench import bench, result_folder

KEYS = {
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


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, float) else []


def test_a_smoke_run_writes_all_it_promises(
    parallel_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [f"data_folder={tmp_path / 'data'}", f"output_folder={tmp_path / 'outputs'}", "device=cpu"]
    parts = "bench.parts=[training,decoding,data,growth,scale]"
    size = "tokenizer.vocabulary_size=400"  # the scale part has pairs of its own, with more characters
    config = load_config(
        [*parallel_files, *folders, "bench=smoke", parts, size, "bench.profile=true", "name=x"]
    )
    bench(config)
    folder = tmp_path / "outputs" / "bench" / "x"
    results = json.loads((folder / "bench.json").read_text("utf-8"))
    for part, keys in KEYS.items():
        assert results[part]
        assert all(set(row) == keys for row in results[part])
        assert all(math.isfinite(number) and number >= 0 for number in numbers(results[part]))
        assert set(TABLES[part][1][0].heading.split()) <= set(
            (folder / "report.md").read_text("utf-8").split()
        )
    assert results["settings"]["bench"]["sizes"] == ["nano"]
    english = [word.split("[")[1].split(",")[0] for word in parallel_files if "splits." in word]
    assert results["data"][0]["pairs"] == sum(Path(path).read_text("utf-8").count("\n") for path in english)
    ours, theirs = results["training"]
    assert (ours["toolkit"], theirs["toolkit"]) == ("endeavour", "torch")
    for key in ("target_tokens", "source_tokens", "padding", "flop_per_update", "parameters"):
        assert ours[key] == theirs[key]
    for row in (ours, theirs):
        assert len(row["seconds"]) == 2
        rate = row["target_tokens_per_second"]
        assert 0 < rate["lowest"] <= rate["median"] <= rate["highest"]
        assert 5e7 < row["peak_memory"] < 1e11  # Python with torch, and no terabyte
        assert row["share_of_product"] == row["flop_per_second"] / row["product_flop_per_second"]
    assert (folder / "growth.png").stat().st_size > 1000
    assert "Self CPU" in (folder / "profile-nano.txt").read_text("utf-8")
    assert json.loads((folder / "trace-nano.json").read_text("utf-8"))["traceEvents"]
    printed = capsys.readouterr()
    assert "target" in printed.out
    assert str(folder) in printed.err.replace("\n", "")


def test_what_was_measured_with_other_settings_is_not_overwritten(tmp_path: Path) -> None:
    config = load_config([f"output_folder={tmp_path}", "name=x"])
    folders: list[Path] = []
    for sizes in ("nano", "tiny", "nano", "tiny", "small"):
        settings = {"bench": {"sizes": [sizes]}}
        folders.append(result_folder(config, settings))
        folders[-1].mkdir(parents=True, exist_ok=True)
        (folders[-1] / "bench.json").write_text(json.dumps({"settings": settings}))
    assert [folder.name for folder in folders] == ["x", "x-2", "x", "x-2", "x-3"]
    for damage in ("", "[]", "{}"):  # is no reason not to measure, nor to overwrite
        (folders[0] / "bench.json").write_text(damage)
        assert result_folder(config, {"bench": {"sizes": ["big"]}}).name == "x-4"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["bench.growth_widths=[200]"], "bench.growth_widths=200: model.width=200 is no multiple"),
        (
            [
                "bench.known_sizes=[{name:odd,encoder_layers:1,decoder_layers:1,width:15,num_heads:2,feed_forward:8}]",
                "bench.sizes=[odd]",
            ],
            "bench.sizes=odd: model.width=15 is no multiple",
        ),
        (["bench.decoding_tokens=2100"], "bench.decoding_tokens=2100: at most the model's 2048 positions"),
        (
            ["model.positions=learned", "model.max_length=64", "bench.decoding_tokens=70"],
            "bench.decoding_tokens=70: at most the model's 64 positions",
        ),
        (["bench.growth_batches=[4]"], "a batch of 4 tokens is less than the longest pair"),
    ],
)
def test_what_no_part_could_measure_is_refused_before_the_first(
    overrides: list[str], message: str, parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    size = "tokenizer.vocabulary_size=400"
    with pytest.raises(UserError) as error:
        bench(load_config([*parallel_files, *folders, "bench=smoke", size, "device=cpu", *overrides]))
    assert str(error.value).startswith(message)
    assert not list(tmp_path.glob("**/bench.json"))
    if overrides == ["bench.growth_batches=[4]"]:  # which no other part reads
        config = load_config([*parallel_files, *folders, "bench=smoke", size, "device=cpu", *overrides])
        config.bench.parts = ["decoding"]
        config.bench.references = []
        assert bench(config)["decoding"]


@pytest.mark.parametrize(
    "other", ["direction=de-en", "cleaning.max_tokens=40", "decoding.tokens_per_batch=512", "seed=2"]
)
def test_a_benchmark_notes_all_that_its_figures_depend_on(
    other: str, parallel_files: list[str], folders: list[str]
) -> None:
    noted: list[dict[str, Any]] = []
    for overrides in ([], [other]):
        config = load_config(
            [
                *parallel_files,
                *folders,
                "bench=smoke",
                "tokenizer.vocabulary_size=400",
                "device=cpu",
                *overrides,
            ]
        )
        config.bench.parts, config.bench.references = ["decoding"], []
        noted.append(bench(config)["settings"])
    assert noted[0] != noted[1]
    assert noted[0]["device"] == "cpu"


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


def test_start_up_is_timed_in_processes_of_their_own() -> None:
    rows = measure_startup(["prepare"], repeats=1, done=lambda: None)
    assert [(row["stage"], row["what"]) for row in rows] == [
        ("", "python"),
        ("prepare", "import"),
        ("prepare", "--help"),
        ("prepare", "--cfg job"),
    ]
    assert all(row["seconds"] > 0 for row in rows)
    assert screen_table("startup", rows).row_count == 4
    with pytest.raises(UserError, match=r"no_such_stage"):
        measure_startup(["no_such_stage"], repeats=1, done=lambda: None)


def test_a_fresh_process_has_a_peak_of_its_own_and_its_errors_come_back() -> None:
    ballast = bytearray(400_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])  # touched, so that it is held
    result, peak = in_fresh_process(sorted, [3, 1, 2])
    assert result == [1, 2, 3]
    assert 1_000_000 < peak < len(ballast)
    with pytest.raises(ValueError, match="invalid literal"):
        in_fresh_process(int, "x")
    with pytest.raises(UserError, match="killed"):
        in_fresh_process(sys.modules["os"]._exit, 1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("parts=[trainig]", "bench.parts: trainig"),
        ("sizes=[huge]", "bench.sizes: huge"),
        ("references=[jax]", "bench.references: jax"),
        ("sizes=[]", "bench.sizes is empty"),
        ("repeats=0", "bench.repeats=0"),
        ("beam_sizes=[0]", "bench.beam_sizes"),
        ("warmup_updates=-1", "bench.warmup_updates"),
        ("decoding_tokens=1", "bench.decoding_tokens"),
        ("scale_pairs=0", "bench.scale_pairs=0"),
        ("warmup_updates=30", "bench.warmup_updates=30: from 0 to bench.updates=20"),
        ("decoding_batch=1", "bench.decoding_batch=1"),
        ("parts=[]", "bench.parts is empty"),
    ],
)
def test_what_is_no_benchmark_is_refused_by_key(setting: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        load_config([f"bench.{setting}"])
