"""Every engine that is measured decodes the same weights to the same length."""

from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch
from bench_config import load_bench

from endeavour.benchmark import decoding
from endeavour.benchmark.decoders import NEVER, decoding_contenders, never_ending
from endeavour.benchmark.decoding import measure_decoding
from endeavour.benchmark.measure import rates
from endeavour.benchmark.task import Task
from endeavour.data.batching import pad
from endeavour.decoding.beam_search import beam_search
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS

SMALL = ["width=16", "feed_forward=32", "num_heads=2", "encoder_layers=1", "decoder_layers=2"]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_never_ending_model_decodes_to_the_limit(norm: str, tie: str) -> None:
    config = load_bench([f"model.{setting}" for setting in (*SMALL, f"norm={norm}", f"tie={tie}")]).model
    torch.manual_seed(0)
    model = never_ending(Transformer(config, source_vocabulary=50, target_vocabulary=50)).eval()
    source = pad([[5, 6, 7, EOS], [9, EOS]])
    logits = model(source, torch.tensor([[BOS, 8, 30, 4], [BOS, 5, 5, 5]]))
    torch.testing.assert_close(logits[..., EOS], torch.full((2, 4), NEVER))
    for beam in (1, 5):
        found = beam_search(
            model,
            source,
            [12, 12],
            beam_size=beam,
            alpha=0.0,
            num_hypotheses=1,
        )
        assert [len(row[0].ids) for row in found] == [12, 12]


def test_measured_in_turn(make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch) -> None:
    """Asserts by itself that every translation has the length that is counted."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    references = [
        name
        for name, package in (("huggingface", "transformers"), ("ctranslate2", "ctranslate2"))
        if find_spec(package)
    ]
    task = make_task("bench.decoding_batches=[3,5]")
    names = decoding_contenders(["torch", *references], ["fp32", "bf16"], torch.device("cpu"))
    assert len(names) == 2 + 2 * len(references)
    steps: list[None] = []
    notes: list[str] = []
    rows = measure_decoding(task, [*names, "ctranslate2 int3"], notes=notes, done=lambda: steps.append(None))
    (note,) = notes
    assert note.startswith("ctranslate2 int3: "), "a reference that fails leaves the others their rows"
    own = sum(name.startswith("ctranslate2") for name in names)  # which make batches of their own
    assert len(rows) == (len(names) * 3 - own) * 2
    assert {row["batch"] for row in rows if row["toolkit"] == "endeavour"} == {1, 3, 5}
    assert len(steps) == 2 * len(rows)
    for row in rows:
        assert (row["latency_milliseconds"] is not None) == (row["batch"] == 1)
        assert row["sentences"] == (2 if row["batch"] == 1 else 6)
        assert row["sentences_per_second"] == rates(row["sentences"], row["seconds"])
        tokens = row["sentences"] * row["tokens_per_sentence"]
        assert row["tokens_per_second"] == rates(tokens, row["seconds"])


def test_the_latency_is_the_median_of_all_sentences_of_all_turns(make_task: Callable[..., Task]) -> None:
    turns = [[1.0, 9.0, 5.0], [2.0, 4.0, 7.0]]
    row = decoding._row(make_task(), "endeavour fp32", 1, 1, turns)  # pyright: ignore[reportPrivateUsage]
    assert row["latency_milliseconds"] == 4500
    assert (row["sentences"], row["seconds"]) == (3, [15, 13])
