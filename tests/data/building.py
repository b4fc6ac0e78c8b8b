"""Small corpora and the data prepared of them, whole or stopped on the way: shared by the tests of this folder."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import datasets
import pytest
from omegaconf import OmegaConf

from configs import run_config
from endeavour.data import part, tables
from endeavour.data.augmentation import AugmentationConfig
from endeavour.data.corpus import CorpusConfig
from endeavour.data.dataset import RaggedArray
from endeavour.data.files import Pair
from endeavour.data.perturbations import PERTURBATIONS
from endeavour.data.prepared import PreparedData
from endeavour.data.preparing import prepare_data
from endeavour.data.recipe import DataRecipe
from endeavour.data.tables import read_tables
from endeavour.progress import Report

CONF = Path(__file__).parents[2] / "conf"

ENGLISH = ["dog", "cat", "old man", "girl", "green apple", "house", "car", "tree"]
GERMAN = ["Hund", "Kater", "alter Mann", "Mädchen", "grüner Apfel", "Häuschen", "Wagen", "Baum"]
TRAIN = [
    (f"A {ENGLISH[i]} and a {ENGLISH[j]} number {k}.", f"Ein {GERMAN[i]} und ein {GERMAN[j]} Nummer {k}.")
    for i in range(8)
    for j in range(8)
    for k in range(3)
]
VALIDATION = [("Some  dogs  .", "Ein paar Ha\u0308user ."), ("", "leer"), ("x" * 500, "y")]
TEST = [("A test.", "Ein\u00a0Test\ufeff."), ("A test.", "Ein\u00a0Test\ufeff."), (" – „ß“ ", "½ 🙂 ")]

# Of each kind that is dropped some pairs, early and late, and what is met a second time stood in another part.
DROPPED = [("", "leer"), TEST[0], ("A " + "cat " * 150, "Ein " + "Kater " * 150), TRAIN[100]]
DIRTY = [*TRAIN[:9], *DROPPED, *TRAIN[9:], *DROPPED[:3]]

CLEANING = replace(run_config().cleaning, max_tokens=100)
TOKENIZER = replace(run_config().tokenizer, name="toy", vocabulary_size=340, max_sentences=1000)


def write(folder: Path, **changes: list[Pair]) -> CorpusConfig:
    """The corpus of the three splits above, except for `changes`."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = {"train": TRAIN, "validation": VALIDATION, "test": TEST} | changes
    for name, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (folder / f"{name}.{language}").write_bytes(text.encode())
    shipped = OmegaConf.to_container(OmegaConf.load(CONF / "corpus" / "files.yaml"))
    own = {"path": str(folder), "splits": {name: [f"{name}.en", f"{name}.de"] for name in splits}}
    return CorpusConfig(**(shipped | own))


def in_parts(folder: Path, parts: dict[str, Sequence[Pair]], **changes: Any) -> CorpusConfig:
    """The same, its training split in these parts."""
    base = write(folder, **{name: list(pairs) for name, pairs in parts.items()})
    files = {name: base.splits[name] for name in parts}
    splits = {name: base.splits[name] for name in ("validation", "test")}
    return replace(base, splits=splits, parts=files, **changes)


def settings_in(folder: Path) -> dict[str, Any]:
    """What `prepared` takes."""
    return {
        "corpus": write(folder / "raw"),
        "cleaning": CLEANING,
        "tokenizer": TOKENIZER,
        "direction": "en-de",
        "folder": folder / "data",
    }


def rates(**chosen: float) -> AugmentationConfig:
    """No copies except for those chosen."""
    return AugmentationConfig(**({"seed": 1, "denoising": 0} | dict.fromkeys(PERTURBATIONS, 0.0) | chosen))


def prepared(*, folder: Path, progress: Report = lambda *_: None, **recipe: Any) -> PreparedData:
    return prepare_data(DataRecipe(**recipe), folder, progress)


def rows(data: PreparedData, split: str, side: str) -> list[list[int]]:
    return [row.tolist() for row in RaggedArray(data.folder / f"{split}.{side}")]


def pairs_of(data: PreparedData) -> list[Pair]:
    """The rows that are trained on, as text."""
    sides = zip(("source", "target"), data.load_tokenizers(), strict=True)
    source, target = (tokenizer.decode(rows(data, "train", side)) for side, tokenizer in sides)
    return list(zip(source, target, strict=True))


def text_of(data: PreparedData, split: str = "train") -> list[Pair]:
    return [pair for pairs in read_tables(data.folder / "text" / split) for pair in pairs]


def contents(data: PreparedData) -> list[object]:
    """All that is in the folder, except for when and how it was made."""
    reports = [(data.folder / name).read_text() for name in ("report.json", "report.md")]
    text = datasets.load_from_disk(str(data.folder / "text" / "train"))[:]
    return [data.manifest, data.content_digest, text, *reports]


def in_shards(monkeypatch: pytest.MonkeyPatch, batch: int, shard: int = 1) -> None:
    """Prepares batches of so many pairs, and so many batches in a shard."""
    monkeypatch.setattr(tables, "BATCH", batch)
    monkeypatch.setattr(part, "SHARD_BATCHES", shard)


class Stop(Exception):
    pass


def stop_at(event: int, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepares shards of 40 pairs until so many things were reported."""
    in_shards(monkeypatch, 40)
    events = count()

    def progress(*_: object) -> None:
        if next(events) == event:
            raise Stop

    with pytest.raises(Stop):
        prepared(**settings, progress=progress)
