"""How often pairs are seen, and whether that is few or many: the limits, copies and stages that count."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from configs import run_config
from endeavour.data.batching import epoch_batches
from endeavour.data.dataset import ParallelDataset, Rows, save_rows
from endeavour.data.prepared import PreparedData
from endeavour.pipeline.seen import ending_lines, usual_times, what_is_seen

FILES = ["corpus=files", "corpus.splits.train=[a.tsv]", "corpus.splits.validation=[b.tsv]"]
BATCH = "training.tokens_per_batch=1000"
PARTS = [
    "corpus=files",
    "+corpus.parts.big=[a.tsv]",
    "+corpus.parts.own=[b.tsv]",
    "corpus.splits.validation=[c.tsv]",
    BATCH,
]


def counts(pairs: int) -> dict[str, int]:
    return {"pairs": pairs, "longer_tokens": 10 * pairs}


def data(pairs: int, **parts: int) -> PreparedData:
    manifest: dict[str, Any] = {"splits": {"train": counts(pairs)}}
    manifest["parts"] = {name: counts(size) for name, size in parts.items()}
    return PreparedData(Path(), manifest, {})


def test_the_epochs_are_those_of_the_batches(tmp_path: Path) -> None:
    """But for padding, which is not foreseen."""
    random = np.random.default_rng(1)
    sides = random.integers(3, 40, (2, 3000), np.int32)
    for side, lengths in zip(("source", "target"), sides, strict=True):
        save_rows(tmp_path / f"train.{side}", [Rows(np.zeros(lengths.sum(), np.uint16), lengths)])
    dataset = ParallelDataset.open(tmp_path, "train")
    batches = sum(1 for _ in epoch_batches(*sides, tokens_per_batch=1000, seed=1, epoch=1))
    prepared = PreparedData(Path(), {"splits": {"train": dataset.counts}}, {})
    seen = what_is_seen(run_config([*FILES, BATCH, f"training.max_updates={7 * batches}"]).training, prepared)
    assert seen is not None
    assert 7.0 < seen.times_on_average < 7.0 * 1.06


def judged(pairs: int, *overrides: str) -> str:
    """few, usual or many."""
    lines = ending_lines(run_config([*FILES, BATCH, "training.warmup_updates=1", *overrides]), data(pairs))
    assert "epochs of" in lines[0]
    return lines[1].partition(":")[0]


def test_more_epochs_are_first_few_then_usual_then_many() -> None:
    said = [judged(20_000, f"training.max_updates={200 * epochs}") for epochs in (1, 10, 40, 90, 150, 1000)]
    assert said == ["few", "few", "usual", "usual", "many", "many"]


@pytest.mark.parametrize(
    "regulariser", ["model.dropout=0.3", "training.r_drop=0.5", "augmentation.typos=0.01"]
)
def test_what_regularises_asks_for_more(regulariser: str) -> None:
    assert judged(20_000, "training.max_updates=6400") == "usual"  # 32 epochs
    assert judged(20_000, "training.max_updates=6400", regulariser) == "few"
    assert judged(20_000, "training.max_updates=30000") == "many"  # 150
    assert judged(20_000, "training.max_updates=30000", regulariser) == "usual"


def test_a_large_text_asks_for_fewer() -> None:
    limits = [usual_times(run_config(FILES), size) for size in (29_000, 200_000, 4_500_000)]
    assert limits == sorted(limits, reverse=True)
    assert judged(5_000_000, "training.max_updates=1000000") == "usual"  # 20 epochs


def test_a_teachers_translation_is_its_sentence_seen_again() -> None:
    """Thirty epochs of three copies each."""
    assert judged(60_000, "training.max_updates=18000", "model.dropout=0.3") == "few"
    assert judged(60_000, "training.max_updates=18000", 'teachers="1 2"') == "usual"


@pytest.mark.parametrize(("updates", "judgement"), [(777, "few"), (77_777, "many")])
def test_the_hint_makes_few_or_many_usual(updates: int, judgement: str) -> None:
    (_, line) = ending_lines(run_config([*FILES, BATCH, f"training.max_updates={updates}"]), data(20_000))
    hint = next(word for word in line.split() if word.startswith("training.max_updates="))
    assert line.startswith(judgement)
    assert judged(20_000, hint) == "usual"


def test_the_hint_names_the_limit_that_counts() -> None:
    (_, line) = ending_lines(
        run_config(
            [
                *FILES,
                BATCH,
                "training.schedule=inverse_sqrt",
                "training.max_updates=null",
                "training.max_epochs=7",
            ]
        ),
        data(20_000),
    )
    assert "training.max_epochs=30" in line
    endless = ["training.schedule=inverse_sqrt", "training.max_updates=77777"]
    (_, line) = ending_lines(run_config([*FILES, BATCH, *endless]), data(20_000))
    assert "training.patience=" in line


def test_the_first_limit_counts() -> None:
    limits = ["training.max_updates=1000", "training.max_epochs=3", "training.schedule=inverse_sqrt"]
    seen = what_is_seen(run_config([*FILES, BATCH, *limits]).training, data(20_000))
    assert seen is not None
    assert (seen.updates, seen.times_on_average) == (600, 3)
    limits[1] = "training.max_epochs=30"
    seen = what_is_seen(run_config([*FILES, BATCH, *limits]).training, data(20_000))
    assert seen is not None
    assert (seen.updates, seen.times_on_average) == (1000, 5)
    (line,) = ending_lines(
        run_config(
            [*FILES, "training.schedule=inverse_sqrt", "training.max_updates=null", "training.max_minutes=5"]
        ),
        data(20_000),
    )
    assert "5 minutes" in line


def test_stages_end_epochs_and_count_by_what_they_draw() -> None:
    mixture = "training.mixture=[{until:250,weights:{big:1}},{until:null,weights:{own:1}}]"
    limits = ["training.max_updates=null", "training.schedule=inverse_sqrt", "training.max_epochs=5"]
    settings = run_config([*PARTS, mixture, *limits]).training
    # 100 updates an epoch of big, so that the stage ends three; 10 one of own, of which two are left.
    seen = what_is_seen(settings, data(11_000, big=10_000, own=1_000))
    assert seen is not None
    assert seen.updates == 270
    assert seen.times == {"big": 2.5, "own": 2}
    assert seen.times_on_average == pytest.approx(27_000 / 11_000)


def test_what_begins_with_weights_is_not_judged() -> None:
    lines = ending_lines(run_config([*FILES, "pretrained=other"]), data(20_000))
    assert not any(line.startswith(("few", "usual", "many")) for line in lines)
