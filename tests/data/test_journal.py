"""Builds that were stopped go on, repeat no finished part, and end as undisturbed ones."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from building import (
    CLEANING,
    DIRTY,
    TOKENIZER,
    TRAIN,
    Stop,
    contents,
    in_parts,
    in_shards,
    prepared,
    rates,
    settings_in,
    stop_at,
    write,
)

from configs import run_config
from endeavour.data import build
from endeavour.data.cleaning import PairJudge
from endeavour.data.encoding import TrainingEncoder
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer_training import train_tokenizer

CRAWLED = replace(CLEANING, crawled=run_config(["cleaning=crawled"]).cleaning.crawled)
COPIES = rates(upper_case=0.4, title_case=0.4, typos=0.7, no_final_punctuation=0.4)
# Settings beside those of `settings_in`, for files in this folder.
RECIPES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "plain": lambda raw: {"corpus": write(raw, train=DIRTY)},
    "crawled": lambda _: {"cleaning": CRAWLED, "tokenizer": replace(TOKENIZER, vocabulary_size=310)},
    "tagged": lambda raw: {"corpus": in_parts(raw, {"b": DIRTY[:90], "a": DIRTY[60:]}, tags=True)},
    "copies": lambda raw: {"corpus": write(raw, train=DIRTY), "augmentation": COPIES},
    "masked": lambda _: {"augmentation": rates(denoising=2)},
    "held out": lambda raw: {"corpus": replace(write(raw, train=DIRTY), held_out_rare=20)},
}
# By the event at which it stops: batches that are still to be cleaned, tokenizers to be trained, batches to be encoded.
LEFT = {
    "plain": {
        0: (5, 1, 5),
        3: (5, 1, 5),
        5: (3, 1, 5),
        8: (0, 1, 5),
        9: (0, 0, 5),
        12: (0, 0, 3),
        15: (0, 0, 2),
    },
    "crawled": {3: (5, 1, 5), 5: (3, 1, 5), 7: (1, 1, 5)},
    "tagged": {4: (6, 1, 7), 9: (1, 1, 7), 14: (0, 0, 5), 22: (0, 0, 1)},
    "copies": {8: (0, 1, 5), 12: (0, 0, 3), 15: (0, 0, 2)},
    "masked": {8: (0, 1, 20), 12: (0, 0, 20), 25: (0, 0, 12)},
    "held out": {
        3: (5, 1, 5),
        6: (2, 1, 5),
        9: (0, 1, 5),
        11: (0, 0, 5),
        13: (0, 0, 4),
        16: (0, 0, 2),
        20: (0, 0, 0),
    },
}


def settings_of(recipe: str, folder: Path) -> dict[str, Any]:
    return settings_in(folder) | RECIPES[recipe](folder / "raw")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], PreparedData]:
    """What a recipe gives that is built at once and never stopped."""
    return cache(lambda recipe: prepared(**settings_of(recipe, tmp_path_factory.mktemp("whole"))))


def test_text_of_each_kind_is_dropped(undisturbed: Callable[[str], PreparedData]) -> None:
    steps = {step["name"]: step["dropped"] for step in undisturbed("plain").report["steps"]}
    dropped = {"empty": 2, "duplicate": 2, "overlap with validation or test": 2, "more than 100 tokens": 1}
    assert {name: count for name, count in steps.items() if count} == dropped


@pytest.mark.parametrize(
    ("recipe", "sizes"),
    [
        *(("plain", sizes) for sizes in [(7, 100), (7, 1), (7, 3), (40, 1), (1, 1), (len(DIRTY), 1)]),
        *(("copies", sizes) for sizes in [(7, 100), (40, 1)]),
    ],
)
def test_the_parts_in_which_it_is_built_change_nothing(
    undisturbed: Callable[[str], PreparedData],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    sizes: tuple[int, int],
) -> None:
    whole = undisturbed(recipe)
    in_shards(monkeypatch, *sizes)
    assert contents(prepared(**settings_of(recipe, tmp_path))) == contents(whole)


@pytest.mark.parametrize(("recipe", "event"), [(recipe, event) for recipe in LEFT for event in LEFT[recipe]])
def test_a_stopped_build_goes_on_where_it_was_and_ends_as_an_undisturbed_one(
    undisturbed: Callable[[str], PreparedData],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    event: int,
) -> None:
    whole, settings = undisturbed(recipe), settings_of(recipe, tmp_path)
    stop_at(event, settings, monkeypatch)
    cleaned, trained, encoded = [], [], []
    clean, encode = PairJudge.__call__, TrainingEncoder.__call__
    monkeypatch.setattr(PairJudge, "__call__", lambda self, pairs: cleaned.append(1) or clean(self, pairs))
    monkeypatch.setattr(
        build, "train_tokenizer", lambda *arguments: trained.append(1) or train_tokenizer(*arguments)
    )
    monkeypatch.setattr(
        TrainingEncoder, "__call__", lambda self, pairs: encoded.append(1) or encode(self, pairs)
    )
    assert contents(prepared(**settings)) == contents(whole)
    assert (len(cleaned), len(trained), len(encoded)) == LEFT[recipe][event]


def test_what_other_code_left_half_done_is_not_taken_up(settings, monkeypatch):
    in_shards(monkeypatch, 40)

    def stop_late(what, done, total):
        if what == "encode train":
            raise Stop

    with pytest.raises(Stop):
        prepared(**settings, progress=stop_late)
    (scratch,) = (settings["folder"] / "prepared").glob(".*.scratch")
    code = json.loads((scratch / "recipe.json").read_text())
    (scratch / "recipe.json").write_text(json.dumps(code | {"versions": {}}))
    torn = scratch / "clean-00000.json"
    torn.write_text(json.dumps({"read": 40, "steps": []}))
    assert prepared(**settings).splits["train"]["pairs"] == len(TRAIN)
    assert not scratch.exists()


def test_files_that_were_changed_for_a_while_are_read_again(settings, tmp_path, monkeypatch):
    path = tmp_path / "raw" / "train.en"
    right = path.read_text()
    in_shards(monkeypatch, 40)

    def change_and_stop(what, *_):
        if what == "load the corpus":
            path.write_text(right.replace("number 0", "number 9"))
        if what == "train the tokenizer":
            raise Stop

    with pytest.raises(Stop):
        prepared(**settings, progress=change_and_stop)
    path.write_text(right)
    data = prepared(**settings)
    assert contents(data) == contents(prepared(**settings | {"folder": tmp_path / "undisturbed"}))
