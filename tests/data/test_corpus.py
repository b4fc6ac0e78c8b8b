"""What is in a file comes out as it stands there, and what is wrong with it is named by file and line."""

import gzip
import hashlib
import json
import os
import sys
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import REVISION, HubServer
from omegaconf import OmegaConf
from pydantic import ValidationError

from endeavour.data.corpus import CorpusConfig, fingerprint, load_splits
from endeavour.data.file_hashes import FileHashes
from endeavour.errors import UserError

CONF = Path(__file__).parents[2] / "conf"
PAIRS = [("A dog.", "Ein Hund."), ('Two "cats"\u2028there.', "Zwei Katzen – über ß."), ("", "leer")]
NUMBERS = {"english_column": "1", "german_column": "2"}
NESTED = {"english_column": "translation.en", "german_column": "translation.de"}


def shipped(name: str, /, **changes) -> CorpusConfig:
    values = OmegaConf.load(CONF / "corpus" / f"{name}.yaml")
    inherited = [OmegaConf.load(CONF / "corpus" / f"{one}.yaml") for one in values.pop("defaults", [])]
    return CorpusConfig(**(OmegaConf.to_container(OmegaConf.merge(*inherited, values)) | changes))


def read(folder: Path, *names: str, **changes) -> list[tuple[str, str]]:
    splits = {"train": list(names), "validation": list(names)}
    return list(load_splits(shipped("files", path=str(folder), splits=splits, **changes))["train"])


def write(path: Path, content: str | bytes | list[object]) -> None:
    """Text is compressed as the name says, records become Parquet, bytes are written as they are."""
    if isinstance(content, list):
        pq.write_table(pa.Table.from_pylist(content), path)
    elif isinstance(content, str):
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    else:
        path.write_bytes(content)


def json_lines(pairs) -> str:
    return "".join(json.dumps({"de": de, "en": en}) + "\n" for en, de in pairs)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("files", "changes"),
    [
        # The one ends with a line end, the other does not; neither line ends nor a byte order mark are text.
        ({"a.en": "".join(f"{en}\n" for en, _ in PAIRS), "a.de": "\n".join(de for _, de in PAIRS)}, {}),
        (
            {
                "a.en": "\ufeff" + "".join(f"{en}\r\n" for en, _ in PAIRS),
                "a.de": "".join(f"{de}\n" for _, de in PAIRS),
            },
            {},
        ),
        ({"a.tsv": "id\tde\ten\n" + "".join(f"7\t{de}\t{en}\n" for en, de in PAIRS)}, {}),
        ({"a.TSV": "".join(f"{en}\t{de}\tCC-BY\n" for en, de in PAIRS)}, NUMBERS),
        ({"a.jsonl": json_lines(PAIRS)}, {}),
        ({"a.ndjson": json_lines(PAIRS)}, {}),
    ],
)
def test_every_kind_of_text_file_gives_its_pairs(tmp_path, suffix, files, changes):
    for name, content in files.items():
        write(tmp_path / f"{name}{suffix}", content)
    assert read(tmp_path, *(f"{name}{suffix}" for name in files), **changes) == PAIRS


def test_parquet_may_be_nested_hold_nothing_or_begin_with_nothing(tmp_path):
    table = pa.Table.from_pylist([{"translation": {"de": de, "en": en}} for en, de in PAIRS])
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table.slice(0, 2))
    pq.write_table(table.slice(0, 0), tmp_path / "b::c.parquet")
    pq.write_table(table.slice(2), tmp_path / "d.parquet")
    assert read(tmp_path, "a.parquet", "b::c.parquet", "d.parquet", **NESTED) == PAIRS


def test_what_is_in_the_other_columns_of_a_parquet_file_is_no_matter(tmp_path):
    times = pa.array([2**62] * len(PAIRS), pa.timestamp("ms", "Mars/Base"))
    pairs = pa.Table.from_pylist([{"translation": {"de": de, "en": en}} for en, de in PAIRS])
    pq.write_table(pairs.append_column("read", times), tmp_path / "a.parquet")
    assert read(tmp_path, "a.parquet", **NESTED) == PAIRS
    with pytest.raises(UserError, match=r"a\.parquet: no column 'translation\.x' \(found: \['de', 'en'\]\)"):
        read(tmp_path, "a.parquet", **NESTED | {"german_column": "translation.x"})


@pytest.mark.parametrize("names", ["a.en.txt a.de.txt", "en/a.txt de/a.txt", "a.de.en.txt b.txt"])
def test_names_that_do_not_say_german_first_are_read(tmp_path, names):
    for path, text in zip(map(tmp_path.joinpath, names.split()), ("1\n", "2\n"), strict=True):
        path.parent.mkdir(exist_ok=True)
        write(path, text)
    assert read(tmp_path, *names.split()) == [("1", "2")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are any bytes")
def test_a_name_that_is_not_utf_8_is_refused_before_anything_is_read(tmp_path):
    name = os.fsdecode(b"gr\xfcn.tsv")
    write(tmp_path / name, "en\tde\n1\t2\n")
    config = shipped("files", path=str(tmp_path), splits={"train": [name], "validation": [name]})
    for look in (load_splits, lambda config: fingerprint(config, FileHashes(tmp_path / "hashes"))):
        with pytest.raises(UserError, match=r"gr\\udcfcn\.tsv.*rename") as error:
            look(config)
        assert str(error.value).isascii()


def test_a_split_can_have_any_number_of_sources_in_their_order(tmp_path):
    for name in ("a", "c"):
        write(tmp_path / f"{name}.en", f"1{name}\n2{name}\n")
        write(tmp_path / f"{name}.de", f"3{name}\n4{name}\n")
    write(tmp_path / "b.tsv", "1b\t3b\n")
    pairs = read(tmp_path, "a.en", "a.de", "b.tsv", "c.en", "c.de", "a.en", "c.de", **NUMBERS)
    expected = ["1a 3a", "2a 4a", "1b 3b", "1c 3c", "2c 4c", "1a 3c", "2a 4c"]
    assert [" ".join(pair) for pair in pairs] == expected


def test_a_path_with_brackets_is_no_pattern(tmp_path):
    for folder, pairs in (("run[1]", PAIRS), ("run1", PAIRS[:1])):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "train.parquet", [{"en": en, "de": de} for en, de in pairs])
    assert read(tmp_path / "run[1]", "train.parquet") == PAIRS


GZIP = gzip.compress(b'{"en": "1", "de": "2"}\n' * 2000)
LATIN = b"eins\n" + "für\n".encode("latin-1")
NO_PARTNER = "the German one has to follow it"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.tsv": "en\tother\n1\t2\n"}, r"a\.tsv:1: no column 'de'.*to 1 and 2"),
        ({"a.tsv": "en\tde\ten\n1\t2\t3\n"}, r"a\.tsv:1: 2 columns are called 'en'"),
        ({"a.tsv": "en\tde\n1\t2\n3\n"}, r"a\.tsv:3: the line has 1 columns, not 2; correct"),
        ({"a.tsv": "en\tde\nA dog\tran.\tEin Hund lief.\n"}, r"a\.tsv:2: the line has 3 columns, not 2"),
        ({"a.jsonl": '{"en": ' + "1" * 5000 + "}\n"}, r"a\.jsonl:1: not a JSON object"),
        ({"a.jsonl": "[" * 100_000 + "\n"}, r"a\.jsonl:1: not a JSON object"),
        (
            {"a.jsonl": '{"en": "1", "de": "2"}\n{"en": \n'},
            r"a\.jsonl:2: not a JSON object \(Expecting value\)",
        ),
        ({"a.jsonl": '{"en": "1", "de": "2"}\n["1", "2"]\n'}, r"a\.jsonl:2: no column 'en' \(found: list"),
        (
            {"a.jsonl": '{"en": "1", "de": "2"}\n{"en": "1"}\n'},
            r"jsonl:2: no column 'de' \(found: \['en'\].*correct the line",
        ),
        ({"a.jsonl": '{"en": "1", "de": null}\n'}, r"a\.jsonl:1: column 'de' holds None, not text"),
        ({"a.jsonl": '{"en": "1", "de": "\\ud800"}\n'}, r"a\.jsonl:1: column 'de' holds a lone surrogate"),
        ({"a.parquet": "no parquet"}, r"a\.parquet: not a readable Parquet file"),
        ({"a.parquet": [{"en": "1", "id": 2}]}, r"a\.parquet: no column 'de' \(found: \['en', 'id'\]\)"),
        ({"a.en": "1\n", "a.de": ""}, r"a\.en:1: .*a\.de"),
        ({"a.en": "1\n2\n3\n4\n", "a.de": "1\n2\n"}, r"en:3: .*a\.de ends at line 2 and .*a\.en has 4 lines"),
        ({"a.en": "1\n2\n", "a.de": "1\n2\n3\n4\n"}, r"de:3: .*a\.en ends at line 2 and .*a\.de has 4 lines"),
        ({"a.en": "1\n2\n", "a.de": LATIN}, r"a\.de:2: invalid UTF-8 \(byte 2"),
        ({"a.en": "1\n2\n", "a.de.gz": gzip.compress(LATIN)}, r"a\.de\.gz:2: invalid UTF-8 \(byte 2"),
        ({"a.en": "A dog\n".encode("utf-16"), "a.de": "b\n"}, r"a\.en:1: invalid UTF-8 \(byte 1"),
        ({"a.en": b"a\xed\xa0\x80\n", "a.de": "b\n"}, r"a\.en:1: invalid UTF-8 \(byte 2"),
        (
            {"a.en": "1\n2" + "\r2" * 10 + "\n", "a.de": "1\n2\n"},
            r"a\.en:2: 10 carriage returns within a line",
        ),
        ({"a.tsv": ""}, r"a\.tsv:1: no column 'en'"),
        ({"a.jsonl": '{"en": "1", "de": 2}\n'}, r"a\.jsonl:1: column 'de' holds 2, not text"),
        ({"a.jsonl": '{"en": "1", "de": "2"}\n\n'}, r"a\.jsonl:2: not a JSON object"),
        ({"cut.jsonl.gz": GZIP[:-20]}, r"cut\.jsonl\.gz:\d+: damaged gzip"),
        ({"no.jsonl.gz": b"plain text"}, r"no\.jsonl\.gz:1: damaged gzip.*if it is plain text, rename it"),
        ({"missing.en": None, "a.de": "x\n"}, r"missing\.en: no such file"),
        ({"e" * 300 + ".tsv": None}, r"e\.tsv: cannot be read \(File name too long\)"),
        ({"a.de": "x\n", "a.en": "x\n"}, "the English file comes first"),
        ({"a.de.txt": "x\n", "a.EN.txt.gz": "x\n"}, "the English file comes first"),
        ({"a.en": "x\n", "./a.en": None}, r"a\.en stands for both"),
        ({"a.en": "x\n", "a.de": "x\n", "b.txt": "x\n"}, NO_PARTNER),
        # What is no text is not read as two aligned files.
        *[
            ({f"a.{suffix}": "x\n", f"b.{suffix}": "x\n"}, rf"a\.{suffix}: \.{suffix} is not read; convert")
            for suffix in ("json", "csv", "sgm", "sgml", "xml", "tmx", "xliff", "xlf", "po")
        ],
        ({"news.en": "x\n", "extra.jsonl": "x\n"}, NO_PARTNER),
        ({"extra.jsonl": "x\n", "news.en": "x\n"}, NO_PARTNER),
        ({"a.en": "x\n", "b.XZ": "x\n"}, NO_PARTNER),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, files, message):
    for name, content in files.items():
        if content is not None:
            write(tmp_path / name, content)
    with pytest.raises(UserError, match=message):
        read(tmp_path, *files)


def test_without_a_header_every_line_has_as_many_columns_as_the_first(tmp_path):
    for content, message in (
        ("A dog\tran.\tEin Hund.\nA\tB\n", ":2: .*2 columns, not 3"),
        ("A\n", ":1: .*not 2"),
    ):
        write(tmp_path / "a.tsv", content)
        with pytest.raises(UserError, match=message):
            read(tmp_path, "a.tsv", **NUMBERS)


@pytest.mark.parametrize("header", ["en\tde", "Source\tTarget \tScore", "English\tGerman\tid"])
def test_a_header_is_not_read_as_a_pair(tmp_path, header):
    write(tmp_path / "a.tsv", f"{header}\n")
    with pytest.raises(UserError, match=r"a\.tsv:1: .*is a header"):
        read(tmp_path, "a.tsv", **NUMBERS)
    write(tmp_path / "a.tsv", f"A source\tEin Ziel\n{header[: header.index(chr(9))]}\tX\n")
    assert read(tmp_path, "a.tsv", **NUMBERS)[0] == ("A source", "Ein Ziel")


def test_the_keys_of_columns_are_named_as_they_are_typed(tmp_path):
    write(tmp_path / "a.jsonl", '{"en": "1", "de": "2"}\n')
    with pytest.raises(
        UserError, match=r"set corpus\.english_column and corpus\.german_column, and give \.tsv"
    ):
        read(tmp_path, "a.jsonl", **NUMBERS)


def test_one_column_is_not_both_sides(tmp_path):
    write(tmp_path / "a.tsv", "en\tde\n1\t2\n")
    with pytest.raises(UserError, match="are both 'en'"):
        read(tmp_path, "a.tsv", german_column="en")
    with pytest.raises(UserError, match="are both '1'"):
        read(tmp_path, "a.tsv", english_column="1", german_column="01")


@pytest.mark.parametrize(
    ("name", "reason"), [("nowhere", "no such folder"), ("e" * 300, "File name too long")]
)
def test_a_folder_that_cannot_be_read_is_named_with_its_key(tmp_path, name, reason):
    with pytest.raises(UserError, match=rf"^corpus\.path=.*{name}: .*{reason}"):
        read(tmp_path / name, "a.tsv")


def test_a_damaged_page_of_a_parquet_file_is_one_line(tmp_path, capfd):
    path = tmp_path / "a.parquet"
    write(path, [{"en": "1", "de": "2"}] * 1000)
    content = bytearray(path.read_bytes())
    content[4:64] = bytes(range(60))
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"a\.parquet: not a readable Parquet file \(.*\); download or copy it again$"
    ):
        read(tmp_path, "a.parquet")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["textbook", "multi30k", "iwslt17", "wmt14", "opus100", "files"])
def test_the_shipped_corpora_fit_the_schema_and_are_pinned(name, tmp_path):
    own = {"splits": {"train": ["a.en", "a.de"], "validation": ["b.tsv"]}} if name == "files" else {}
    config = shipped(name, **own)
    assert config.name == name
    if config.kind == "hub":
        inputs = fingerprint(config, FileHashes(tmp_path / "hashes"))
        assert inputs["revision"] == config.revision
        assert set(inputs["splits"]) == {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("files", {"kind": "folder"}, "'textbook', 'hub' or 'files'"),
        ("files", {"splits": {"validation": ["b.tsv"]}}, "no files for split train"),
        ("files", {"splits": {"train": ["a.tsv"], "validation": []}}, r"corpus\.splits\.validation"),
        ("files", {"splits": {"train": ["a"], "validation": ["b"], "a/b": ["c"]}}, "letters, digits"),
        ("textbook", {"train_pairs": 0}, "train_pairs"),
        ("textbook", {"seed": None}, "seed"),
        # A name is a part of a folder's name.
        ("wmt14", {"name": "../x"}, "name"),
        ("wmt14", {"name": "legal/2024"}, "name"),
        # What would not be read.
        ("wmt14", {"train_pairs": 1000}, "train_pairs"),
        ("multi30k", {"seed": 2}, "seed"),
        ("textbook", {"path": "my"}, "path"),
        ("files", {"splits": {"train": ["a"], "validation": ["b"]}, "revision": "37e1186"}, "hub"),
        ("textbook", {"splits": {"news": ["n.tsv"]}}, "splits"),
        # What can move.
        ("multi30k", {"revision": "main"}, "full commit hash"),
        ("multi30k", {"revision": "37e1186"}, "full commit hash"),
        ("multi30k", {"revision": None}, "full commit hash"),
    ],
)
def test_impossible_configs_are_named(name, changes, message):
    with pytest.raises(ValidationError, match=message):
        shipped(name, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": "https://huggingface.co/datasets/a/b"},
        {"splits": {"train": ["/home/me/t.jsonl"], "validation": ["v.jsonl"]}},
    ],
)
def test_what_the_hub_could_not_have_is_said_in_a_line(changes):
    with pytest.raises(UserError, match=r"the hub has no .*corpus\.repository and corpus\.splits"):
        load_splits(shipped("multi30k", **changes))


@pytest.mark.parametrize("place", ["hub", "folder"])
def test_the_hubs_files_are_read_from_there_and_from_a_folder(tmp_path, monkeypatch, place):
    expected = {"train": PAIRS, "validation": PAIRS[:1], "test": PAIRS[1:]}
    files = {
        f"{name}.jsonl": json_lines(expected[split])
        for name, split in (("train", "train"), ("val", "validation"))
    }
    if place == "hub":
        files["test.jsonl"] = json_lines(PAIRS[1:])
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        with HubServer("bentrevett/multi30k", {name: text.encode() for name, text in files.items()}) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            splits = load_splits(shipped("multi30k", revision=REVISION))
    else:  # one of them under other names
        for side, suffix in enumerate(("en", "de")):
            files[f"test_2016_flickr.{suffix}"] = "".join(pair[side] + "\n" for pair in PAIRS[1:])
        for name, text in files.items():
            write(tmp_path / name, text)
        splits = load_splits(shipped("multi30k", path=str(tmp_path)))
    assert {name: list(pairs) for name, pairs in splits.items()} == expected


def test_the_textbook_corpus_asks_the_textbook(monkeypatch):
    package = types.ModuleType("textbook_stub")
    package.textbook_splits = lambda *, seed, train_pairs: {"train": [(f"{seed}", f"{train_pairs}")]}
    monkeypatch.setitem(sys.modules, "textbook_stub", package)
    monkeypatch.setattr("endeavour.data.corpus._TEXTBOOK", "textbook_stub")
    assert load_splits(shipped("textbook", seed=5, train_pairs=9)) == {"train": [("5", "9")]}


def later(file: Path) -> None:
    """As if it had been changed a second later: some file systems know no shorter time than a few milliseconds."""
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 10**9))


def test_the_fingerprint_follows_content_and_not_place(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a.tsv", "en\tde\n1\t2\n")
    splits = {"train": ["a.tsv"], "validation": ["a.tsv"], "test": []}
    one, two = (shipped("files", path=str(tmp_path / name), splits=splits) for name in ("one", "two"))
    hashes = FileHashes(tmp_path / "hashes")
    assert fingerprint(one, hashes) == fingerprint(two, hashes)
    write(tmp_path / "two" / "a.tsv", "en\tde\n1\t3\n")
    later(tmp_path / "two" / "a.tsv")
    assert fingerprint(one, hashes) != fingerprint(two, hashes)


def test_hashes_are_remembered_until_the_file_changes(tmp_path, monkeypatch):
    file, store = tmp_path / "a", tmp_path / "hashes"
    file.write_text("one")
    hashes = FileHashes(store)
    first = hashes.of(file)
    hashes.save()
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read again"))
        assert FileHashes(store).of(file) == first
    file.write_text("two")  # of the same size
    later(file)
    for content in (
        None,
        "",
        "[]",
        "torn {",
        "null",
        json.dumps({str(file.resolve()): 5}),
    ):  # what it cannot read costs one more reading
        if content is not None:
            store.write_text(content)
        assert FileHashes(store).of(file) == hashlib.sha256(b"two").hexdigest() != first


@pytest.mark.skipif(os.name == "nt", reason="there ctime is the time of creation")
def test_other_content_of_the_same_size_and_time_of_change_is_noticed(tmp_path):
    file, store = tmp_path / "a", tmp_path / "hashes"
    file.write_text("one")
    hashes = FileHashes(store)
    first = hashes.of(file)
    hashes.save()
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # some clocks of file systems are coarse
        file.write_text("two")
        os.utime(file, ns=(0, before.st_mtime_ns))  # as tar and rsync do
    assert FileHashes(store).of(file) != first
