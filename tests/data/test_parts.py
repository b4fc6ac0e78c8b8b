"""A training split in parts: cleaned one by one, counted one by one, and their sources tagged."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import CLEANING, TEST, TRAIN, VALIDATION, in_parts, prepared, rows, write
from pydantic import ValidationError

from endeavour.data.files import Pair
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.special import EOS

GENERAL, OWN = TRAIN[:150], TRAIN[100:]
DIRTY_OWN = [*OWN, OWN[3], OWN[5], ("", "leer"), (TEST[0][0], "Prüfung")]


@pytest.fixture
def settings(settings: dict[str, Any]) -> dict[str, Any]:
    raw = settings["folder"].with_name("raw")
    return settings | {"corpus": in_parts(raw, {"own": DIRTY_OWN, "general": GENERAL})}


def report_of(data: PreparedData) -> dict[str, Any]:
    return json.loads((data.folder / "report.json").read_text())


def test_each_part_is_cleaned_on_its_own_in_the_order_of_the_names(settings: dict[str, Any]) -> None:
    data = prepared(**settings)
    kept = [*GENERAL, *OWN]
    source, target = data.load_tokenizers()
    assert rows(data, "train", "source") == [[*ids, EOS] for ids in source.encode([one for one, _ in kept])]
    assert rows(data, "train", "target") == [[*ids, EOS] for ids in target.encode([one for _, one in kept])]
    assert {name: counts["pairs"] for name, counts in data.parts.items()} == {"general": 150, "own": len(OWN)}
    assert list(data.parts) == ["general", "own"]
    for side in ("source_tokens", "target_tokens", "longer_tokens"):
        assert sum(counts[side] for counts in data.parts.values()) == data.splits["train"][side]

    report = report_of(data)
    assert (report["read"], report["kept"]) == (len(GENERAL) + len(DIRTY_OWN), len(kept))
    steps = {
        name: {step["name"].split()[0]: step["dropped"] for step in part["steps"] if step["dropped"]}
        for name, part in report["parts"].items()
    }
    # What is in both parts is a duplicate in neither; validation and test count for both.
    assert steps == {"general": {}, "own": {"empty": 1, "duplicate": 2, "overlap": 1}}
    together = {step["name"].split()[0]: step["dropped"] for step in report["steps"] if step["dropped"]}
    assert together == steps["own"]
    shown = (data.folder / "report.md").read_text()
    assert "| general | 150 | 150 |" in shown
    assert f"| own | {len(DIRTY_OWN)} | {len(OWN)} |" in shown


def test_one_part_is_the_same_as_none_but_for_its_name(settings: dict[str, Any], tmp_path: Path) -> None:
    corpus = in_parts(tmp_path / "one", {"all": DIRTY_OWN})
    one = prepared(**settings | {"corpus": corpus})
    none = prepared(**settings | {"corpus": write(tmp_path / "none", train=list(DIRTY_OWN))})
    assert one.folder != none.folder
    assert rows(one, "train", "source") == rows(none, "train", "source")
    same = ("read", "kept", "steps", "splits")
    assert {key: report_of(one)[key] for key in same} == {key: report_of(none)[key] for key in same}
    assert none.parts == {}


def test_where_a_part_ends_is_part_of_the_data(settings: dict[str, Any], tmp_path: Path) -> None:
    data = prepared(**settings | {"corpus": in_parts(tmp_path / "raw", {"a": TRAIN[:90], "b": TRAIN[90:]})})
    moved = prepared(**settings | {"corpus": in_parts(tmp_path / "raw", {"a": TRAIN[:91], "b": TRAIN[91:]})})
    assert rows(data, "train", "source") == rows(moved, "train", "source")
    assert data.content_digest != moved.content_digest


def test_tags_stand_before_every_source(settings: dict[str, Any]) -> None:
    plain = prepared(**settings)
    tagged = prepared(**settings | {"corpus": replace(settings["corpus"], tags=True, tag="own")})
    source, _ = tagged.load_tokenizers()
    bare = source.tagged("")

    def encoded(texts: Sequence[str], tag: str) -> list[list[int]]:
        found = bare.encode([f"<{tag}> {text}" if text else "" for text in texts])
        return [[*ids, EOS] for ids in found]

    texts = [one for one, _ in [*GENERAL, *OWN]]
    assert rows(tagged, "train", "source") == [
        *encoded(texts[:150], "general"),
        *encoded(texts[150:], "own"),
    ]
    assert rows(tagged, "validation", "source") == encoded([one for one, _ in VALIDATION], "own")
    assert source.encode(["A dog."]) == bare.encode(["<own> A dog."])
    # Nothing else knows of tags: what is kept, the text, the targets.
    assert tagged.lines("validation", "source") == plain.lines("validation", "source")
    assert report_of(tagged)["steps"] == report_of(plain)["steps"]
    target = tagged.load_tokenizers()[1]
    assert target.decode(rows(tagged, "train", "target")) == [one for _, one in [*GENERAL, *OWN]]

    without = prepared(**settings | {"corpus": replace(settings["corpus"], tags=True)})
    assert without.load_tokenizers()[0].tag == []
    assert len({one.content_digest for one in (plain, tagged, without)}) == 3


def test_a_tag_counts_towards_no_limit(settings: dict[str, Any]) -> None:
    whole = prepared(**settings)
    pairs = zip(rows(whole, "train", "source"), rows(whole, "train", "target"), strict=True)
    longest = max(len(source) - 1 for source, target in pairs if len(source) >= len(target))
    settings |= {"cleaning": replace(CLEANING, max_tokens=longest), "tokenizers": whole.load_tokenizers()}
    plain = prepared(**settings)
    tagged = prepared(**settings | {"corpus": replace(settings["corpus"], tags=True)})
    assert tagged.splits["train"]["pairs"] == plain.splits["train"]["pairs"]


@pytest.mark.parametrize(
    ("pairs", "reason"), [([], "the part own is empty"), ([("", "leer")], r"corpus\.parts\.own \(empty 1\)")]
)
def test_a_part_of_which_nothing_is_left_is_named(
    settings: dict[str, Any], tmp_path: Path, pairs: list[Pair], reason: str
) -> None:
    settings["corpus"] = in_parts(tmp_path / "raw", {"general": GENERAL, "own": pairs})
    with pytest.raises(UserError, match=reason):
        prepared(**settings)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"splits": {"train": ["a.tsv"], "validation": ["v.tsv"]}}, r"corpus\.splits\.train"),
        ({"parts": {"own": []}}, r"corpus\.parts\.own"),
        ({"parts": {"a b": ["a.tsv"]}}, r"corpus\.parts\.a b"),
        ({"parts": {"unk": ["a.tsv"]}}, r"corpus\.parts\.unk"),
        ({"parts": {"S": ["a.tsv"]}}, r"corpus\.parts\.S"),
        ({"parts": {}}, r"corpus\.splits\.train"),
        ({"kind": "hub", "repository": "a/b", "revision": "0" * 40}, r"corpus\.parts"),
        ({"tag": "own"}, r"corpus\.tag=own.*corpus\.tags=false"),
        ({"tags": True, "tag": "other"}, r"corpus\.tag=other.*general, own"),
        ({"parts": {}, "splits": {"train": ["a"], "validation": ["v"]}, "tags": True}, r"corpus\.tags"),
    ],
)
def test_what_does_not_go_together_is_refused(
    settings: dict[str, Any], changes: dict[str, Any], key: str
) -> None:
    with pytest.raises(ValidationError, match=key):
        replace(settings["corpus"], **changes)
