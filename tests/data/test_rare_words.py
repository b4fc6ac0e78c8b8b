"""The pairs with the rarest words as a split of their own: rare, disjoint from training, and the same every time."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from building import CLEANING, CONF, TOKENIZER, in_parts, prepared, settings_in, text_of, write
from omegaconf import OmegaConf
from pydantic import ValidationError

from endeavour.data.corpus import RARE, CorpusConfig
from endeavour.data.files import Pair
from endeavour.errors import UserError

HELD_OUT = 30


def zipfian(count: int = 600, seed: int = 1) -> list[Pair]:
    """Sentences of two to twenty words, of which the few frequent ones are most of the text, and their translations."""
    draw = random.Random(seed)
    names = [
        f"{a}{b}{c}" for a in "bdfgklmnpr" for b in ("a", "ei", "o", "u") for c in ("n", "rt", "ls", "m")
    ]
    weights = [1 / rank for rank in range(1, len(names) + 1)]
    sources = [draw.choices(names, weights, k=draw.randint(2, 20)) for _ in range(count)]
    return [(" ".join(words).capitalize() + ".", " ".join(words[::-1]) + " -") for words in sources]


TEXT = list(dict.fromkeys(zipfian()))


def settings_for(folder: Path, train: list[Pair], held_out_rare: int | None = HELD_OUT) -> dict[str, Any]:
    settings = settings_in(folder)
    return settings | {"corpus": replace(write(folder / "raw", train=train), held_out_rare=held_out_rare)}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return settings_for(tmp_path, TEXT)


def words(pairs: list[Pair]) -> list[set[str]]:
    return [set(source.lower().rstrip(".").split()) for source, _ in pairs]


def test_the_rarest_are_held_out_of_everything(settings: dict[str, Any]) -> None:
    data = prepared(**settings)
    held, kept = text_of(data, RARE), text_of(data, "train")
    assert len(held) == HELD_OUT
    assert not {source for source, _ in held} & {source for source, _ in kept}
    assert not {target for _, target in held} & {target for _, target in kept}
    assert sorted([*held, *kept]) == sorted(TEXT)

    frequencies = Counter(word for one in words(TEXT) for word in one)
    logarithm = {word: np.log(count) for word, count in frequencies.items()}
    means = [[mean(logarithm[word] for word in one) for one in words(pairs)] for pairs in (held, kept)]
    assert mean(means[0]) < mean(means[1]) - np.std(means[1])
    lengths = [mean(map(len, words(pairs))) for pairs in (held, kept)]
    assert lengths[1] / 1.5 < lengths[0] < lengths[1] * 1.5, "neither the short nor the long are preferred"

    assert list(data.splits) == ["train", "validation", "test", RARE]
    assert data.lines(RARE, "source") == [source for source, _ in held]
    assert data.splits[RARE]["pairs"] == HELD_OUT
    report = json.loads((data.folder / "report.json").read_text())
    assert report["read"] - report["kept"] == sum(step["dropped"] for step in report["steps"])
    assert RARE in (data.folder / "report.md").read_text()


def test_the_score_is_as_it_is_defined(settings: dict[str, Any]) -> None:
    """Computed plainly, with all sentences in memory."""
    running = [word for one in words(TEXT) for word in one]
    logarithm = {word: np.log(count) for word, count in Counter(running).items()}
    values = np.array([logarithm[word] for word in running])

    def score(one: set[str]) -> float:
        above = np.array([logarithm[word] for word in one]) - values.mean()
        return float(above.sum() / values.std() / np.sqrt(len(one)))

    expected = sorted(TEXT, key=lambda pair: score(words([pair])[0]))[:HELD_OUT]
    assert set(text_of(prepared(**settings), RARE)) == set(expected)


def test_the_tokenizer_has_not_read_them(settings: dict[str, Any], tmp_path: Path) -> None:
    data = prepared(**settings)
    rest = settings_for(tmp_path / "rest", text_of(data, "train"), held_out_rare=None)
    alone = prepared(**rest)
    assert data.manifest["vocabularies"] == alone.manifest["vocabularies"]
    for side in ("source", "target"):
        name = f"train.{side}.ids.npy"
        assert (data.folder / name).read_bytes() == (alone.folder / name).read_bytes()


def test_what_shares_a_side_with_one_goes_too(settings: dict[str, Any], tmp_path: Path) -> None:
    held = text_of(prepared(**settings), RARE)
    frequent = " ".join(
        word for word, _ in Counter(word for one in words(TEXT) for word in one).most_common(5)
    )
    more = [(held[0][0], "etwas anderes"), (frequent, held[1][1]), held[2]]
    dirty = settings_for(tmp_path / "dirty", [*TEXT, *more])
    data = prepared(**dirty)
    assert set(text_of(data, RARE)) == set(held), "a source that stands there twice counts once"
    kept = text_of(data, "train")
    assert held[0][0] not in {source for source, _ in kept}
    assert held[1][1] not in {target for _, target in kept}
    steps = json.loads((data.folder / "report.json").read_text())["steps"]
    assert {
        step["name"]: step["dropped"] for step in steps if RARE in step["name"] or "rare" in step["name"]
    } == {
        "held out for its rare words": HELD_OUT,
        f"overlap with {RARE}": 2,
    }
    both = prepared(**dirty | {"cleaning": replace(CLEANING, drop_overlap=False)})
    assert (held[0][0], "etwas anderes") in text_of(both, "train")


def test_nor_does_what_has_other_capitals_stay_if_the_vocabulary_lowercases(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    held = text_of(prepared(**settings), RARE)
    more = [
        (held[0][0].upper(), held[0][1]),
        (held[1][0].upper(), "etwas anderes"),
        ("x", held[2][1].upper()),
    ]
    dirty = settings_for(tmp_path / "dirty", [*TEXT, *more])
    for drop_duplicates in (True, False):
        cleaning = replace(CLEANING, drop_duplicates=drop_duplicates)
        small = {"tokenizer": replace(TOKENIZER, lowercase=True, vocabulary_size=320), "cleaning": cleaning}
        data = prepared(**dirty | small)
        assert text_of(data, RARE) == held
        assert set(text_of(data, "train")) == set(TEXT) - set(held)


def test_translations_of_the_text_that_are_added_hold_out_the_same(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    data = prepared(**settings)
    texts = list(zip(*text_of(data, "train"), strict=True))
    other = [[f"{line} Xerxes {number} !" for number, line in enumerate(lines)] for lines in texts]
    extra = []
    for name, sides in (("forward", (texts[0], other[1])), ("backward", (other[0], texts[1]))):
        extra.append((tmp_path / f"{name}.en", tmp_path / f"{name}.de"))
        for path, lines in zip(extra[-1], sides, strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    taught = prepared(**settings, extra_pairs=extra)
    assert taught.lines(RARE, "source") == data.lines(RARE, "source")
    assert taught.lines(RARE, "target") == data.lines(RARE, "target")
    assert taught.splits["train"]["pairs"] == 3 * data.splits["train"]["pairs"]


def test_the_option_alone_makes_another_folder(settings: dict[str, Any], tmp_path: Path) -> None:
    plain = prepared(**settings | {"corpus": replace(settings["corpus"], held_out_rare=None)})
    assert "held_out_rare" not in json.dumps(plain.manifest)
    assert RARE not in plain.splits
    folders = {plain.folder}
    for count in (HELD_OUT, HELD_OUT + 1):
        folders.add(
            prepared(**settings | {"corpus": replace(settings["corpus"], held_out_rare=count)}).folder
        )
    assert len(folders) == 3


def test_parts_hold_out_together(tmp_path: Path, settings: dict[str, Any]) -> None:
    corpus = in_parts(tmp_path / "parts", {"one": TEXT[:250], "two": TEXT[250:]}, held_out_rare=HELD_OUT)
    data = prepared(**settings | {"corpus": corpus})
    assert set(text_of(data, RARE)) == set(text_of(prepared(**settings), RARE))
    assert sum(counts["pairs"] for counts in data.parts.values()) == len(TEXT) - HELD_OUT


def test_a_part_that_is_held_out_whole_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    rare = [("Xylophon quokka zephyr .", "Xylophon Quokka Zephir .")]
    corpus = in_parts(tmp_path / "parts", {"all": TEXT, "few": rare}, held_out_rare=1)
    with pytest.raises(UserError, match=r"corpus\.parts\.few .*held out"):
        prepared(**settings | {"corpus": corpus})


def test_the_textbook_has_rare_words_too(tmp_path: Path, settings: dict[str, Any]) -> None:
    values = OmegaConf.to_container(OmegaConf.load(CONF / "corpus" / "textbook.yaml"))
    corpus = CorpusConfig(**(values | {"train_pairs": 400, "held_out_rare": 20}))
    tokenizer = replace(TOKENIZER, vocabulary_size=600)
    data = prepared(**settings | {"corpus": corpus, "tokenizer": tokenizer})
    assert list(data.splits) == corpus.split_names == ["train", "validation", "test", "test_unseen", RARE]
    assert data.splits[RARE]["pairs"] == 20


def test_more_than_half_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    for corpus in (
        replace(settings["corpus"], held_out_rare=len(TEXT) // 2 + 1),
        replace(write(tmp_path / "digits", train=[(f"{n} .", f"{n} !") for n in range(90)]), held_out_rare=5),
    ):
        with pytest.raises(UserError, match=r"corpus\.held_out_rare="):
            prepared(**settings | {"corpus": corpus})


def test_a_split_of_that_name_is_refused(settings: dict[str, Any]) -> None:
    corpus = settings["corpus"]
    with pytest.raises(ValidationError, match=rf"corpus\.splits\.{RARE}"):
        replace(corpus, splits=corpus.splits | {RARE: corpus.splits["test"]})
