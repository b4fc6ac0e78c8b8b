"""A test set that sacreBLEU knows, in a cache of the test's own."""

from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.base import Dataset
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from endeavour.evaluation import standard_sets

XML = "xml/test.en-de.xml"
NOWHERE = "http://127.0.0.1:9/test.tar.gz"
SOURCES = ["the old dog", "a man sees a tree", "today  the man finds a dog", "often"]
REFERENCES = ["der alte Hund", "ein Mann sieht ein Baum", "heute findet der Mann ein Hund", "oft"]
DOCUMENTS = [("news", "n.1", 2), ("speech", "s.1", 1), ("speech", "s.2", 1)]  # domain, document, sentences


def add_set(
    patch: pytest.MonkeyPatch,
    cache: Path,
    name: str,
    *,
    data: str = NOWHERE,
    md5: str | None = None,
    **more: Any,
) -> Path:
    """Makes a set in the form of WMT24 known to sacreBLEU, with its files in `cache`; its folder, which is not made."""
    settings: dict[str, Any] = {"langpairs": {"en-de": [XML]}, "refs": ["refA"]} | more
    return _register(
        patch, cache, WMTXMLDataset(name, [data], md5=None if md5 is None else [md5], **settings)
    )


def add_old_set(patch: pytest.MonkeyPatch, cache: Path, name: str, files: list[str]) -> Path:
    """The same of a set in the form of WMT14."""
    return _register(patch, cache, FakeSGMLDataset(name, [NOWHERE], langpairs={"en-de": files}))


def _register(patch: pytest.MonkeyPatch, cache: Path, dataset: Dataset) -> Path:
    folder = cache / dataset.name
    patch.setattr(dataset, "_outdir", str(folder))
    patch.setattr(dataset, "_rawdir", str(folder / "raw"))
    patch.setitem(DATASETS, dataset.name, dataset)
    patch.setattr(standard_sets, "SACREBLEU_DIR", str(cache))
    return folder


def unpack(cache: Path, name: str) -> None:
    """The files as sacreBLEU leaves them after a download, before it makes text of them."""
    folder = cache / name
    (folder / "raw" / "xml").mkdir(parents=True)
    (folder / "raw" / f"{name.replace('/', '_')}.test.tar.gz").write_bytes(b"downloaded")
    (folder / "raw" / XML).write_text(xml(), "utf-8")


def xml(translators: tuple[str, ...] = ("refA", "refB")) -> str:
    """SOURCES with a reference of each translator; the first one's are REFERENCES."""
    documents, row = "", 0
    for domain, document, count in DOCUMENTS:
        rows = range(row, row + count)
        row += count
        documents += f'<doc id="{document}" domain="{domain}" origlang="en">'
        documents += f'<src lang="en">{_segments([SOURCES[one] for one in rows])}</src>'
        for translator in translators:
            lines = [REFERENCES[one] if translator == translators[0] else "anders" for one in rows]
            documents += f'<ref lang="de" translator="{translator}">{_segments(lines)}</ref>'
        documents += "</doc>"
    return f"<dataset>{documents}</dataset>"


def _segments(lines: list[str]) -> str:
    return "<p>" + "".join(f'<seg id="{row}">{line}</seg>' for row, line in enumerate(lines, 1)) + "</p>"
