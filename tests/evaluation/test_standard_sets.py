"""Test sets by sacreBLEU's names: from its cache or a server, with labels; what is said where neither has them."""

import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import partial
from hashlib import md5
from http.server import SimpleHTTPRequestHandler
from io import BytesIO
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu_cache import REFERENCES, SOURCES, XML, add_old_set, add_set, unpack, xml

from endeavour.errors import UserError
from endeavour.evaluation import standard_sets
from endeavour.evaluation.config import folder_name
from endeavour.evaluation.standard_sets import (
    check_standard_sets,
    read_standard_set,
    standard_name,
)
from local_server import LocalServer

SHOWN = [" ".join(line.split()) for line in SOURCES]  # as sacreBLEU makes text of them


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of an archive with the set, on a server of this machine."""
    folder = tmp_path / "served"
    folder.mkdir()
    content = xml().encode()
    with tarfile.open(folder / "test.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo(XML)
        entry.size = len(content)
        archive.addfile(entry, BytesIO(content))
    with LocalServer(partial(_Quiet, directory=str(folder))) as served:
        yield f"{served.url}/test.tar.gz"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: object) -> None:
        pass


def test_a_set_in_the_cache_is_read_with_its_labels_and_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_set(monkeypatch, tmp_path, "fake24")
    unpack(tmp_path, "fake24")
    one = read_standard_set("fake24", "en-de")
    assert one.sources == SHOWN
    assert one.references == REFERENCES  # refA's, as sacreBLEU takes them
    assert one.labels == {
        "domain": ["news", "news", "speech", "speech"],
        "docid": ["n.1", "n.1", "s.1", "s.2"],
    }  # of one original language there is nothing to tell


def test_text_that_sacrebleu_made_before_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = add_old_set(monkeypatch, tmp_path, "fake14/full", ["src.sgm", "ref.sgm"])
    folder.mkdir(parents=True)
    columns = {"src": SOURCES, "ref": REFERENCES, "docid": list("aabb"), "genre": [""] * 4}
    for field, lines in (columns | {"origlang": ["en", "de", "en", "de"]}).items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"fake14_full.en-de.{field}").write_text(text, "utf-8")
    one = read_standard_set("fake14/full", "en-de")
    assert (one.sources, one.references) == (SOURCES, REFERENCES)
    assert list(one.labels) == ["origlang", "docid"]


def test_the_environment_says_where_the_cache_is(tmp_path: Path) -> None:
    """sacreBLEU reads it when it is imported."""
    folder = tmp_path / "cache" / "wmt14"
    folder.mkdir(parents=True)
    for field in ("src", "ref", "docid", "genre", "origlang"):
        (folder / f"wmt14.en-de.{field}").write_text(f"{field}\n", "utf-8")
    code = "from endeavour.evaluation.standard_sets import read_standard_set as read\n"
    code += "print(read('wmt14', 'en-de'))"
    environment = os.environ | {"SACREBLEU": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "sources=['src'], references=['ref']" in result.stdout


def test_a_set_is_downloaded_once(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = md5((tmp_path / "served" / "test.tar.gz").read_bytes()).hexdigest()
    add_set(monkeypatch, tmp_path / "cache", "fake24", data=server, md5=digest)
    first = read_standard_set("fake24", "en-de")
    assert first.sources == SHOWN
    (tmp_path / "served" / "test.tar.gz").unlink()
    assert read_standard_set("fake24", "en-de") == first


def refusal(name: str) -> str:
    with pytest.raises(UserError) as error:
        read_standard_set(name, "en-de")
    return str(error.value)


def test_without_cache_and_network_it_is_said_what_to_bring_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add_set(monkeypatch, tmp_path, "fake24/x")
    said = refusal("fake24/x")
    for part in ("fake24/x", str(folder), "-t fake24/x -l en-de", "+evaluation.files.fake24_x="):
        assert part in said
    assert said.count("\n") == 1


def test_a_server_that_says_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standard_sets, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/test.tar.gz"
        add_set(monkeypatch, tmp_path, "fake24", data=address)
        assert "timed out" in refusal("fake24")
    assert socket.getdefaulttimeout() is None


def test_a_damaged_download_is_to_be_deleted(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add_set(monkeypatch, tmp_path, "fake24", data=server, md5="0" * 32)
    assert f"delete {folder / 'raw'}" in refusal("fake24")


def test_a_cache_that_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = add_set(monkeypatch, tmp_path, "fake24")
    unpack(tmp_path, "fake24")
    read_standard_set("fake24", "en-de")
    (folder / "fake24.en-de.ref-refA").write_text("one\n", "utf-8")
    assert "[1, 4] lines" in refusal("fake24")
    (folder / "raw" / XML).write_text("<dataset>", "utf-8")
    assert str(folder) in refusal("fake24")


def test_several_references_are_refused_with_the_sets_that_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_set(monkeypatch, tmp_path, "fake24")
    add_set(monkeypatch, tmp_path, "fake24/AB", refs=["refA", "refB"])
    unpack(tmp_path, "fake24/AB")
    said = refusal("fake24/AB")
    assert "2 references" in said
    assert "(fake24)" in said


def test_names_are_checked_without_reading_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = add_set(monkeypatch, tmp_path, "fake24")
    for names, direction, part in (
        (["fake99"], "en-de", "fake99 is none"),
        (["fake24"], "de-en", "fake24 has none for de-en"),
        (["fake24", "fake24"], "en-de", "named twice"),
    ):
        with pytest.raises(UserError, match=part):
            check_standard_sets(names, direction)
    check_standard_sets(["wmt14", "wmt24", "fake24"], "en-de")
    assert not folder.exists()


def test_every_set_of_our_languages_has_a_folder_name_of_its_own() -> None:
    names = [name for name in DATASETS if {"en-de", "de-en"} & set(DATASETS[name].langpairs)]
    assert len({folder_name(name) for name in names}) == len(names) > 20
    assert all(standard_name(folder_name(name)) == name for name in names)
    assert standard_name("news") is None
