"""What is in a file comes out as it stands there, and what is wrong with it is named by file and line."""

import gzip
import hashlib
import json
import os
import sys
import types
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import REVISION, HubServer
from omegaconf import OmegaConf
from pydantic import ValidationError

from endeavour.data.corpus import CorpusConfig, fingerprint, load_splits, local_files
from endeavour.data.file_hashes import FileHashes
from endeavour.errors import UserError

CONF = Path(__file__).parents[2] / "conf"
MULTI30K = Path(__file__).parents[3] / "shared" / "data" / "multi30k"
PAIRS = [("A dog.", "Ein Hund."), ('Two "cats"\u2028there.', "Zwei Katzen – über ß."), ("", "leer")]


def corpus(**changes) -> CorpusConfig:
    settings = {
        "name": "mine",
        "kind": "files",
        "path": None,
        "repository": None,
        "revision": None,
        "splits": {},
        "path_files": None,
        "english_column": "en",
        "german_column": "de",
        "train_pairs": None,
        "seed": None,
    }
    return CorpusConfig(**(settings | changes))


def shipped(name: str, /, **changes) -> CorpusConfig:
    return CorpusConfig(
        **(OmegaConf.to_container(OmegaConf.load(CONF / "corpus" / f"{name}.yaml")) | changes)
    )


def read(folder: Path, *names: str, **changes) -> list[tuple[str, str]]:
    config = corpus(path=str(folder), splits={"train": list(names), "validation": list(names)}, **changes)
    return list(load_splits(config)["train"])


def write(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_line_aligned_files(tmp_path, suffix):
    write(tmp_path / f"a.en{suffix}", "".join(english + "\n" for english, _ in PAIRS))
    write(tmp_path / f"a.de{suffix}", "\n".join(german for _, german in PAIRS))  # no line end at the end
    assert read(tmp_path, f"a.en{suffix}", f"a.de{suffix}") == PAIRS


def test_windows_line_ends_and_a_byte_order_mark_are_not_text(tmp_path):
    write(tmp_path / "a.en", "\ufeffA dog.\r\nA cat.\r\n")
    write(tmp_path / "a.de", "Ein Hund.\nEine Katze.\n")
    assert read(tmp_path, "a.en", "a.de") == [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_tsv_with_a_header(tmp_path, suffix):
    write(tmp_path / f"a.tsv{suffix}", "id\tde\ten\n" + "".join(f"7\t{de}\t{en}\n" for en, de in PAIRS))
    assert read(tmp_path, f"a.tsv{suffix}") == PAIRS


def test_tsv_without_a_header(tmp_path):
    write(tmp_path / "a.tsv", "".join(f"{en}\t{de}\tCC-BY\n" for en, de in PAIRS))
    assert read(tmp_path, "a.tsv", english_column="1", german_column="2") == PAIRS


def test_a_tab_in_a_sentence_shifts_no_column(tmp_path):
    write(tmp_path / "a.tsv", "A dog.\tEin Hund.\nA dog\tran.\tEin Hund lief.\n")
    with pytest.raises(UserError, match=r"a\.tsv:2: the line has 3 columns and the first line 2"):
        read(tmp_path, "a.tsv", english_column="1", german_column="2")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_json_lines(tmp_path, suffix):
    write(tmp_path / f"a.jsonl{suffix}", "".join(json.dumps({"de": de, "en": en}) + "\n" for en, de in PAIRS))
    assert read(tmp_path, f"a.jsonl{suffix}") == PAIRS


def test_nested_parquet_and_several_files_of_one_split(tmp_path):
    rows = [{"translation": {"de": de, "en": en}} for en, de in PAIRS]
    pq.write_table(pa.Table.from_pylist(rows[:2]), tmp_path / "0.parquet")
    pq.write_table(pa.Table.from_pylist(rows[2:]), tmp_path / "1.parquet")
    columns = {"english_column": "translation.en", "german_column": "translation.de"}
    assert read(tmp_path, "0.parquet", "1.parquet", **columns) == PAIRS


def test_one_column_is_not_both_sides(tmp_path):
    write(tmp_path / "a.tsv", "en\tde\n1\t2\n")
    with pytest.raises(UserError, match="are both 'en'"):
        read(tmp_path, "a.tsv", german_column="en")


def test_missing_partner_lines_are_named(tmp_path):
    write(tmp_path / "a.en", "1\n2\n3\n4\n")
    write(tmp_path / "a.de", "1\n2\n")
    with pytest.raises(UserError, match=r"a\.en:3: .*a\.de ends at line 2 and .*a\.en has 4 lines"):
        read(tmp_path, "a.en", "a.de")
    write(tmp_path / "a.de", "1\n2\n3\n4\n5\n6\n")
    with pytest.raises(UserError, match=r"a\.de:5: .*a\.en ends at line 4 and .*a\.de has 6 lines"):
        read(tmp_path, "a.en", "a.de")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_invalid_utf8_is_named(tmp_path, suffix):
    write(tmp_path / f"a.en{suffix}", "1\n2\n")
    write(tmp_path / f"a.de{suffix}", b"eins\n" + "für\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"a\.de(\.gz)?:2: invalid UTF-8 \(byte 2"):
        read(tmp_path, f"a.en{suffix}", f"a.de{suffix}")


@pytest.mark.parametrize(("line", "byte"), [("A dog\n".encode("utf-16"), 1), (b"a\xed\xa0\x80\n", 2)])
def test_utf16_and_lone_surrogates_are_no_utf8(tmp_path, line, byte):
    write(tmp_path / "a.en", line)
    write(tmp_path / "a.de", "b\n")
    with pytest.raises(UserError, match=rf"a\.en:1: invalid UTF-8 \(byte {byte} of"):
        read(tmp_path, "a.en", "a.de")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "en\tother\n1\t2\n", r"a\.tsv:1: no column 'de'.*to 1 and 2"),
        (
            "b.tsv",
            "en\tde\nA dog\tran.\tEin Hund lief.\n",
            r"b\.tsv:2: the line has 3 columns and the header 2",
        ),
        ("a.jsonl", '{"en": ' + "1" * 5000 + "}\n", r"a\.jsonl:1: not a JSON object"),
        ("a.tsv", "en\tde\n1\t2\n3\n", r"a\.tsv:3: column 2 is missing, the line has 1"),
        ("a.tsv", "en\tde\ten\n1\t2\t3\n", r"a\.tsv:1: 2 columns are called 'en'"),
        ("a.jsonl", '{"en": "1", "de": "2"}\n{"en": "1"}\n', r"a\.jsonl:2: no column 'de' \(found: \['en'\]"),
        ("a.jsonl", '{"en": "1", "de": "2"}\n{"en": \n', r"a\.jsonl:2: not a JSON object"),
        ("a.jsonl", '{"en": "1", "de": "2"}\n["1", "2"]\n', r"a\.jsonl:2: no column 'en' \(found: list"),
        ("a.jsonl", '{"en": "1", "de": null}\n', r"a\.jsonl:1: column 'de' holds None, not text"),
        ("a.jsonl", '{"en": "1", "de": "\\ud800"}\n', r"a\.jsonl:1: column 'de' holds a lone surrogate"),
        ("a.parquet", "no parquet", r"a\.parquet: not a readable Parquet file"),
        ("a.tsv", "", r"a\.tsv:1: no column 'en'"),
        ("a.jsonl", '{"en": "1", "de": 2}\n', r"a\.jsonl:1: column 'de' holds 2, not text"),
        ("a.jsonl", '{"en": "1", "de": "2"}\n\n', r"a\.jsonl:2: not a JSON object"),
        ("a.jsonl", "[" * 200_000 + "\n", r"a\.jsonl:1: not a JSON object \(nested too deeply"),
    ],
)
def test_a_malformed_record_is_named(tmp_path, name, content, message):
    write(tmp_path / name, content)
    with pytest.raises(UserError, match=message):
        read(tmp_path, name)


def test_a_parquet_file_without_the_column_is_named(tmp_path):
    pq.write_table(pa.Table.from_pylist([{"en": "1"}]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet, row 1: no column 'de'"):
        read(tmp_path, "a.parquet")


def test_a_parquet_file_may_hold_nothing_or_begin_with_nothing(tmp_path):
    table = pa.Table.from_pylist([{"en": en, "de": de} for en, de in PAIRS])
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    pq.write_table(table.slice(0, 0), tmp_path / "b::c.parquet")
    assert read(tmp_path, "a.parquet", "b::c.parquet") == PAIRS


def test_a_damaged_page_of_a_parquet_file_is_one_line(tmp_path, capfd):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([{"en": "1", "de": "2"}] * 1000), path)
    content = bytearray(path.read_bytes())
    content[4:64] = bytes(range(60))
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"a\.parquet: not a readable Parquet file \(.*\); download or copy it again$"
    ):
        read(tmp_path, "a.parquet")
    assert capfd.readouterr().err == ""


def test_what_cannot_be_looked_at_is_named(tmp_path):
    long = "e" * 300
    with pytest.raises(UserError, match=r"e\.tsv: cannot be read \(File name too long\)"):
        read(tmp_path, f"{long}.tsv")
    with pytest.raises(UserError, match=r"^corpus\.path=.*e: cannot be read \(File name too long\)"):
        read(tmp_path / long, "a.tsv")


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_a_memory_of_hashes_that_is_none_costs_one_more_reading(tmp_path, content):
    (tmp_path / "store").write_text(content)
    (tmp_path / "file").write_text("x")
    assert FileHashes(tmp_path / "store").of(tmp_path / "file") == hashlib.sha256(b"x").hexdigest()


def test_damaged_gzip_is_named(tmp_path):
    whole = gzip.compress(b'{"en": "1", "de": "2"}\n' * 2000)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) - 20])
    (tmp_path / "no.jsonl.gz").write_bytes(b"plain text")
    for name in ("cut", "no"):
        with pytest.raises(UserError, match=rf"{name}\.jsonl\.gz:\d+: damaged gzip"):
            read(tmp_path, f"{name}.jsonl.gz")


def test_files_that_make_no_split_are_named(tmp_path):
    for name in ("a.en", "a.de", "b.txt"):
        write(tmp_path / name, "x\n")
    with pytest.raises(UserError, match=r"missing\.en: no such file"):
        read(tmp_path, "missing.en", "a.de")
    (tmp_path / "folder.de").mkdir()
    with pytest.raises(UserError, match=r"folder\.de: a folder"):
        read(tmp_path, "a.en", "folder.de")
    with pytest.raises(UserError, match="pairs of line-aligned text files"):
        read(tmp_path, "a.en", "a.de", "b.txt")
    with pytest.raises(UserError, match="the English file comes first"):
        read(tmp_path, "a.de", "a.en")
    with pytest.raises(UserError, match="no such folder"):
        read(tmp_path / "nowhere", "a.en", "a.de")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "folder"}, "'textbook', 'hub' or 'files'"),
        ({"splits": {"validation": ["b.tsv"]}}, "no files for split train"),
        ({"splits": {"train": ["a.tsv"], "validation": []}}, r"corpus\.splits\.validation"),
        ({"splits": {"train": ["a"], "validation": ["b"], "a/b": ["c"]}}, "letters, digits"),
        ({"kind": "textbook", "splits": {}, "seed": 1, "train_pairs": 0}, "train_pairs"),
        ({"kind": "textbook", "splits": {}, "train_pairs": 5}, "seed"),
    ],
)
def test_impossible_configs_are_named(changes, message):
    with pytest.raises(ValidationError, match=message):
        corpus(**({"splits": {"train": ["a.tsv"], "validation": ["b.tsv"]}} | changes))


@pytest.mark.parametrize("name", ["textbook", "multi30k", "iwslt17", "wmt14", "opus100", "files"])
def test_the_shipped_corpora_fit_the_schema_and_are_pinned(name, tmp_path):
    own = {"splits": {"train": ["a.en", "a.de"], "validation": ["b.tsv"]}} if name == "files" else {}
    config = shipped(name, **own)
    assert config.name == name
    if config.kind == "hub":
        inputs = fingerprint(config, FileHashes(tmp_path / "hashes"))
        assert inputs["revision"] == config.revision
        assert set(inputs["splits"]) == {"train", "validation", "test"}


@pytest.mark.parametrize("revision", ["main", "37e1186", None])
def test_a_revision_that_can_move_is_refused(revision):
    with pytest.raises(ValidationError, match="full commit hash"):
        shipped("multi30k", revision=revision)


def test_a_hub_corpus_is_fetched_and_read(tmp_path, monkeypatch):
    lines = {"train": PAIRS, "val": PAIRS[:1], "test": PAIRS[1:]}
    files = {
        f"{name}.jsonl": "".join(json.dumps({"en": en, "de": de}) + "\n" for en, de in pairs).encode()
        for name, pairs in lines.items()
    }
    with HubServer("bentrevett/multi30k", files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        splits = load_splits(shipped("multi30k", revision=REVISION), hub_cache=tmp_path)
        assert {name: list(pairs) for name, pairs in splits.items()} == {
            "train": PAIRS,
            "validation": PAIRS[:1],
            "test": PAIRS[1:],
        }


def test_the_hubs_own_files_are_read_from_a_folder_too(tmp_path):
    for name, pairs in (("train", PAIRS), ("val", PAIRS[:1])):
        rows = "".join(json.dumps({"en": en, "de": de}) + "\n" for en, de in pairs)
        write(tmp_path / f"{name}.jsonl", rows)
    for suffix, number in (("en", 0), ("de", 1)):
        write(tmp_path / f"test_2016_flickr.{suffix}", "".join(pair[number] + "\n" for pair in PAIRS[1:]))
    splits = load_splits(shipped("multi30k", path=str(tmp_path)))
    found = {name: list(pairs) for name, pairs in splits.items()}
    assert found == {"train": PAIRS, "validation": PAIRS[:1], "test": PAIRS[1:]}


@pytest.mark.parametrize(
    ("name", "changes", "key"),
    [
        ("wmt14", {"train_pairs": 1000}, "train_pairs"),
        ("multi30k", {"seed": 2}, "seed"),
        ("textbook", {"path": "my"}, "path"),
        ("textbook", {"splits": {"news": ["n.tsv"]}}, "splits"),
        ("wmt14", {"name": "../x"}, "name"),
        ("wmt14", {"name": "legal/2024"}, "name"),
    ],
)
def test_a_setting_that_would_not_be_read_is_refused(name, changes, key):
    with pytest.raises(ValidationError, match=key):
        shipped(name, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": "https://huggingface.co/datasets/a/b"},
        {"splits": {"train": ["/home/me/t.jsonl"], "validation": ["v.jsonl"]}},
    ],
)
def test_what_the_hub_could_not_have_is_said_in_a_line(tmp_path, changes):
    with pytest.raises(UserError, match=r"the hub has no .*corpus\.repository and corpus\.splits"):
        load_splits(shipped("multi30k", **changes), hub_cache=tmp_path)


@pytest.mark.parametrize(
    "names",
    [
        ("a.json", "b.json"),
        ("a.csv", "b.csv"),
        ("news.en", "extra.jsonl"),
        ("extra.jsonl", "news.en"),
        ("a.en", "b.XZ"),
    ],
)
def test_two_files_that_are_no_text_are_not_read_as_such(tmp_path, names):
    for name in names:
        write(tmp_path / name, "x\n")
    with pytest.raises(UserError, match="pairs of line-aligned text files, English first"):
        read(tmp_path, *names)


def test_a_split_can_have_any_number_of_sources_in_their_order(tmp_path):
    for name in ("a", "c"):
        write(tmp_path / f"{name}.en", f"1{name}\n2{name}\n")
        write(tmp_path / f"{name}.de", f"3{name}\n4{name}\n")
    write(tmp_path / "b.tsv", "1b\t3b\n")
    names = ("a.en", "a.de", "b.tsv", "c.en", "c.de", "a.en", "c.de")
    pairs = read(tmp_path, *names, english_column="1", german_column="2")
    assert pairs == [
        ("1a", "3a"),
        ("2a", "4a"),
        ("1b", "3b"),
        ("1c", "3c"),
        ("2c", "4c"),
        ("1a", "3c"),
        ("2a", "4c"),
    ]


def test_suffixes_may_be_written_large(tmp_path):
    write(tmp_path / "a.TSV", "".join(f"{en}\t{de}\n" for en, de in PAIRS))
    assert read(tmp_path, "a.TSV", english_column="1", german_column="2") == PAIRS


def test_a_path_with_brackets_is_no_pattern(tmp_path):
    for folder, pairs in (("run[1]", PAIRS), ("run1", PAIRS[:1])):
        (tmp_path / folder).mkdir()
        columns = {"en": [en for en, _ in pairs], "de": [de for _, de in pairs]}
        pq.write_table(pa.table(columns), tmp_path / folder / "train.parquet")
    assert read(tmp_path / "run[1]", "train.parquet") == PAIRS


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
    one, two = (
        corpus(path=str(tmp_path / name), splits={"train": ["a.tsv"], "validation": ["a.tsv"], "test": []})
        for name in ("one", "two")
    )
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
    assert FileHashes(store).of(file) != first
    store.write_text("torn {")
    assert FileHashes(store).of(file) != first


def test_a_users_own_splits_win_over_the_names_that_a_corpus_has_under_a_path(tmp_path):
    config = shipped("multi30k", path=str(tmp_path))
    files = local_files(replace(config, splits=config.splits | {"train": ["my.en", "my.de"]}))
    assert [path.name for path in files["train"]] == ["my.en", "my.de"]
    assert [path.name for path in files["validation"]] == ["val.en", "val.de"]


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"Multi30k is not at {MULTI30K}")
def test_multi30k_from_a_folder():
    splits = load_splits(shipped("multi30k", path=str(MULTI30K)))
    rows = {name: list(pairs) for name, pairs in splits.items()}
    assert {name: len(pairs) for name, pairs in rows.items()} == {
        "train": 29000,
        "validation": 1014,
        "test": 1000,
    }
    assert rows["test"][0][0].startswith("A man in an orange hat")
    assert rows["test"][0][1].startswith("Ein Mann mit einem orangefarbenen Hut")
