"""Prepared data: a function of config and inputs, faithful to the text, whole or not there."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
from building import (
    CLEANING,
    TEST,
    TOKENIZER,
    TRAIN,
    VALIDATION,
    contents,
    prepared,
    rows,
    settings_in,
    write,
)

from configs import run_config
from endeavour.data import build, file_hashes, part, preparing
from endeavour.data.duplicates import SeenHashes
from endeavour.data.normalization import normalize
from endeavour.data.prepared import MANIFEST, PreparedData, find_prepared
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.errors import UserError
from endeavour.special import EOS
from endeavour.storage import DIGESTS
from multi30k import MULTI30K, needs_multi30k


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> PreparedData:
    """What `settings` give, not to be altered."""
    return prepared(**settings_in(tmp_path_factory.mktemp("shared")))


def dropped(data: PreparedData) -> dict[str, int]:
    steps = json.loads((data.folder / "report.json").read_text())["steps"]
    return {step["name"].split()[0]: step["dropped"] for step in steps if step["dropped"]}


def test_rows_are_the_encoded_normal_form_and_end_in_eos(data):
    for split, pairs in {"train": TRAIN, "validation": VALIDATION, "test": TEST}.items():
        table = datasets.load_from_disk(data.folder / "text" / split)
        assert table.column_names == ["source", "target"]
        for side, tokenizer, number in zip(("source", "target"), data.load_tokenizers(), (0, 1), strict=True):
            found = rows(data, split, side)
            normal = [normalize(pair[number]) for pair in pairs]
            assert found == [[*ids, EOS] for ids in tokenizer.encode(normal)]
            assert tokenizer.decode(found) == list(table[side]) == normal
            assert data.splits[split][f"{side}_tokens"] == sum(map(len, found))
        assert data.splits[split]["pairs"] == len(pairs)
    assert list(data.splits) == ["train", "validation", "test"]


def test_references_are_kept_byte_for_byte(data):
    for split, pairs in {"validation": VALIDATION, "test": TEST}.items():
        for number, side in enumerate(("source", "target")):
            lines = [pair[number] for pair in pairs]
            kept = (data.folder / f"{split}.{side}.txt").read_bytes()
            assert kept.decode() == "".join(f"{line}\n" for line in lines)
            assert data.lines(split, side) == lines


def test_the_direction_swaps_the_sides(settings, data):
    back = prepared(**(settings | {"direction": "de-en"}))
    assert data.folder.name != back.folder.name
    assert (back.manifest["source_language"], back.manifest["target_language"]) == ("de", "en")
    assert back.lines("test", "source") == data.lines("test", "target")
    assert rows(back, "train", "source") == rows(data, "train", "target")


def test_given_vocabularies_are_taken_as_they_are(settings, tmp_path, data):
    given = data.load_tokenizers()
    other = [(f"Another {source}", f"Anderes {target}") for source, target in TRAIN]
    settings["corpus"] = write(tmp_path / "raw", train=other)
    second = prepared(**(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=350)}), tokenizers=given)
    assert second.manifest["vocabularies"] == data.manifest["vocabularies"]
    sources = given[0].encode([source for source, _ in other])
    assert rows(second, "train", "source") == [[*ids, EOS] for ids in sources]
    # How they were learnt is no matter, which they are is.
    assert prepared(**settings, tokenizers=given).folder == second.folder
    assert prepared(**settings).folder != second.folder


def test_only_training_pairs_are_dropped_and_every_one_is_accounted_for(settings, tmp_path):
    long = " ".join(str(number) for number in range(101))
    dirty = [*TRAIN, TRAIN[0], ("A test.", "neu"), ("neu", TEST[0][1]), ("", "x"), (long, long)]
    settings["corpus"] = write(tmp_path / "raw", train=dirty)
    cleaned = prepared(**settings)
    report = json.loads((cleaned.folder / "report.json").read_text())
    assert (report["read"], report["kept"]) == (len(dirty), len(TRAIN))
    assert dropped(cleaned) == {"empty": 1, "duplicate": 1, "overlap": 2, "more": 1}
    assert cleaned.splits["test"]["pairs"] == len(TEST)
    assert "| overlap with validation or test | 0 | 2 |" in (cleaned.folder / "report.md").read_text()


def test_a_test_sentence_in_other_capitals_is_one_for_a_vocabulary_that_lowercases(settings, tmp_path):
    again = [(TEST[0][0].upper(), "neu"), ("neu", "EIN TEST.")]
    settings["corpus"] = write(tmp_path / "raw", train=[*TRAIN, *again])
    small = replace(TOKENIZER, lowercase=True, vocabulary_size=320)
    lowercased = prepared(**(settings | {"tokenizer": small}))
    assert dropped(lowercased) == {"overlap": 2}
    given = prepared(**settings, tokenizers=lowercased.load_tokenizers())
    assert rows(given, "train", "source") == rows(lowercased, "train", "source")
    assert dropped(prepared(**settings)) == {}


def test_the_tokenizer_learns_from_the_training_split_only(settings, tmp_path, data):
    other = [("Zyxwv qqq zzz.", "Zyxwv qqq zzz.")] * 500
    settings["corpus"] = write(tmp_path / "raw", validation=other, test=other)
    second = prepared(**settings)
    assert second.folder.name != data.folder.name
    assert second.manifest["vocabularies"] == data.manifest["vocabularies"]


def test_joint_and_separate_vocabularies(settings, data):
    source, target = data.load_tokenizers()
    assert source.digest == target.digest
    apart = prepared(**(settings | {"tokenizer": replace(TOKENIZER, joint=False, vocabulary_size=310)}))
    source, target = apart.load_tokenizers()
    assert source.digest != target.digest
    assert apart.manifest["vocabularies"]["target"]["size"] == 310


def test_a_sample_for_the_tokenizer_is_even_and_bounded(settings, monkeypatch):
    seen = []
    monkeypatch.setattr(
        build,
        "train_tokenizer",
        lambda texts, *rest: train_tokenizer((seen.append(text) or text for text in texts), *rest),
    )
    few = replace(TOKENIZER, max_sentences=40, vocabulary_size=320)
    assert prepared(**(settings | {"tokenizer": few})).splits["train"]["pairs"] == len(TRAIN)
    stride = -(-len(TRAIN) // 40)
    assert stride > 1
    assert seen == [normalize(text) for pair in TRAIN[::stride] for text in pair]


def test_a_second_prepare_does_nothing_and_imports_nothing_heavy(settings, monkeypatch):
    first = prepared(**settings)
    code = "\nimport sys; assert not {'datasets', 'huggingface_hub', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script(settings) + code], check=True)
    monkeypatch.setattr(preparing, "load_splits", lambda *_: pytest.fail("built again"))
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read again"))
    assert prepared(**settings) == first


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"cleaning": replace(CLEANING, max_tokens=99)},
        {"cleaning": replace(CLEANING, drop_overlap=False)},
        {"tokenizer": replace(TOKENIZER, vocabulary_size=341)},
        {"tokenizer": replace(TOKENIZER, algorithm="unigram", vocabulary_size=300)},
    ],
)
def test_equal_settings_make_equal_files_and_a_changed_one_makes_a_new_folder(settings, data, change):
    other = prepared(**(settings | change))
    assert (other.folder.name == data.folder.name) is (not change)
    assert (contents(other) == contents(data)) is (not change)


def test_a_changed_input_makes_a_new_folder_and_the_old_one_stays(settings, tmp_path):
    first = prepared(**settings)
    path = tmp_path / "raw" / "train.en"
    path.write_text(path.read_text().replace("number 0", "number 9"))
    second = prepared(**settings)
    assert first.folder != second.folder
    assert PreparedData.open(first.folder) == first


def test_an_input_that_changes_while_it_is_read_is_not_taken_for_the_one_before(settings, tmp_path):
    path = tmp_path / "raw" / "train.en"

    def change(what, *_):
        if what == "encode train":
            path.write_text(path.read_text().replace("number 0", "number 9"))

    with pytest.raises(UserError, match="changed while it was read"):
        prepared(**settings, progress=change)
    assert not list((settings["folder"] / "prepared").glob("[!.]*"))
    assert prepared(**settings).splits["train"]["pairs"] == len(TRAIN)


def test_an_input_that_is_another_one_only_while_it_is_read_is_noticed(settings, tmp_path):
    path = tmp_path / "raw" / "train.en"
    text, time = path.read_text(), path.stat().st_mtime_ns

    def exchange(what, *_):
        if what == "load the corpus":
            path.write_text(text.replace("number 0", "number 9"))
        elif what == "encode train":
            path.write_text(text)
            os.utime(path, ns=(0, time + 10**9))

    with pytest.raises(UserError, match="changed while it was read"):
        prepared(**settings, progress=exchange)
    assert not list((settings["folder"] / "prepared").glob("[!.]*"))


@pytest.mark.parametrize("damage", ["", "[]"])
def test_damaged_data_are_passed_over(damage, settings):
    first = prepared(**settings)
    (first.folder / MANIFEST).write_text(damage)
    assert find_prepared(settings["folder"], first.content_digest) is None


def test_a_split_may_be_called_as_a_file_of_the_build_is(tmp_path):
    settings = settings_in(tmp_path) | {"corpus": write(tmp_path / "raw", **{"clean-00000": TEST})}
    named = prepared(**settings)
    assert rows(named, "clean-00000", "source") == rows(named, "test", "source")
    assert rows(named, "train", "source") == rows(prepared(**settings_in(tmp_path)), "train", "source")


def test_finished_data_that_may_only_be_read_are_used(settings, monkeypatch):
    first = prepared(**settings)
    (settings["folder"] / "prepared" / ".hashes.json").unlink()

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", forbidden)
    monkeypatch.setattr("endeavour.storage.file_lock", forbidden)
    assert prepared(**settings) == first
    with pytest.raises(UserError, match=r"cannot be written \(Permission denied\).*data_folder"):
        prepared(**(settings | {"direction": "de-en"}))


@pytest.mark.parametrize("name", [MANIFEST, DIGESTS, "train.source.ids.npy"])
def test_a_torn_file_is_refused_with_what_to_delete(settings, name):
    folder = prepared(**settings).folder
    (folder / name).write_text('{"format":')
    with pytest.raises(UserError, match=f"delete {folder} and run `endeavour prepare`"):
        prepared(**settings).verify()


def test_files_are_hashed_once_and_again_when_they_have_changed(settings, monkeypatch):
    data = prepared(**settings)
    hashed = []
    digest = file_hashes.file_digest
    monkeypatch.setattr(file_hashes, "file_digest", lambda path: hashed.append(path.name) or digest(path))
    data.verify()
    assert {"train.source.ids.npy", "source.model", MANIFEST} <= set(hashed)
    hashed.clear()
    data.verify()
    assert not hashed
    ids = data.folder / "train.target.ids.npy"
    ids.write_bytes(ids.read_bytes()[:-2] + b"\1\1")  # the same size
    with pytest.raises(UserError, match=r"train\.target\.ids\.npy.*altered"):
        data.verify()
    assert hashed == [ids.name]


def test_a_build_that_the_user_must_change_leaves_nothing_behind(settings):
    with pytest.raises(UserError, match="vocabulary_size"):
        prepared(**(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=100_000)}))
    left = [path.name for path in (settings["folder"] / "prepared").iterdir()]
    assert all(name.startswith(".") and not name.endswith(("partial", "scratch")) for name in left)


def test_a_full_disk_is_told_and_nothing_done_is_lost(settings, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(part, "save_rows", full)
    with pytest.raises(UserError, match=r"cannot be written \(No space left.*free some space"):
        prepared(**settings)
    assert [path for path in (settings["folder"] / "prepared").iterdir() if path.name.endswith("scratch")]
    monkeypatch.undo()
    prepared(**settings)


def test_a_file_that_cannot_be_read_for_a_moment_costs_nothing_that_was_done(settings, monkeypatch):
    def unreadable(*_):
        raise UserError("train.en: cannot be read") from OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(part.Part, "encode_all", unreadable)
        with pytest.raises(UserError, match="cannot be read"):
            prepared(**settings)
    (scratch,) = (settings["folder"] / "prepared").glob(".*.scratch")
    assert (scratch / "clean-00000.json").is_file()
    prepared(**settings)
    assert not scratch.exists()


def test_near_duplicates_of_crawled_text_are_dropped_and_the_packages_noted_that_found_them(settings):
    """Pairs of the same words, in another order or with another number, are near."""
    chosen = replace(CLEANING, crawled=run_config(["cleaning=crawled"]).cleaning.crawled)
    crawled = prepared(
        **settings | {"cleaning": chosen, "tokenizer": replace(TOKENIZER, vocabulary_size=310)}
    )
    assert dropped(crawled)["near-duplicate"] >= len(TRAIN) - 8 * 9 // 2
    assert {"eldc", "rensa"} < crawled.manifest["versions"].keys()


def test_a_killed_build_is_never_mistaken_for_a_finished_one(settings):
    # Killed at the last moment: everything is written but for the rename.
    code = (
        f"import os, pathlib\npathlib.Path.rename = lambda *_: os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    process = subprocess.run([sys.executable, "-c", code + script(settings)], check=False)
    assert process.returncode == -signal.SIGKILL
    root = settings["folder"] / "prepared"
    assert [path for path in root.iterdir() if not path.name.startswith(".")] == []
    assert any((path / MANIFEST).exists() for path in root.glob(".*.partial"))
    data = prepared(**settings)
    assert [path for path in root.iterdir() if path.suffix in (".partial", ".scratch")] == []
    assert PreparedData.open(data.folder) == data


def test_of_two_processes_one_builds_and_the_other_waits(settings):
    builds = (
        "lambda what, *_: what == 'train the tokenizer' and (print(what, flush=True), sys.stdin.readline())"
    )
    command = [sys.executable, "-c", "import os, sys\n" + script(settings, progress=builds)]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "train the tokenizer\n"
    second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert any("waiting for another process" in line for line in second.stderr)
    first.communicate("go on\n", timeout=60)
    output, _ = second.communicate(timeout=60)
    assert [first.returncode, second.returncode] == [0, 0]
    assert "train the tokenizer" not in output


def test_progress_counts_up_to_the_total(settings):
    seen = []
    prepared(**settings, progress=lambda *event: seen.append(event))
    total = len(TRAIN)
    assert {("train the tokenizer", 0, None), ("encode train", total, total)} <= set(seen)
    assert ("read and clean train", total, None) in seen


def test_the_hashes_of_earlier_pairs_are_gone_when_the_vocabulary_is_learnt(settings):
    gc.collect()
    alive = {"before": hashes_alive()}

    def count(what, *_):
        alive[what] = hashes_alive()

    prepared(**settings, progress=count)
    assert alive["read and clean train"] == alive["before"] + 1
    assert alive["train the tokenizer"] == alive["before"]


def hashes_alive() -> int:
    return sum(type(one) is SeenHashes for one in gc.get_objects())  # some feign a class, with a warning


def test_the_garbage_collector_rests_while_text_is_prepared_and_no_longer(settings):
    before, meanwhile = gc.get_threshold(), {}
    prepared(**settings, progress=lambda what, *_: meanwhile.setdefault(what, gc.get_threshold()[0]))
    assert meanwhile["read and clean train"] == meanwhile["encode train"] > 100 * before[0]
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": []}, "split train is empty"),
        ({"test": []}, "split test is empty"),
        ({"train": VALIDATION}, r"cleaning dropped all 3 training pairs \(empty 1, overlap"),
        (
            {"train": [(nothing, "x") for nothing in ("", " \t", "\u2003", "\x00", "\u200b\u200e")]},
            r"\(empty 5\)",
        ),
    ],
)
def test_nothing_to_learn_from_is_an_error(settings, tmp_path, changes, message):
    settings["corpus"] = write(tmp_path / "raw", **changes)
    with pytest.raises(UserError, match=message):
        prepared(**settings)


def test_a_line_break_inside_a_reference_is_an_error(settings, tmp_path):
    (tmp_path / "raw" / "t.jsonl").write_text(json.dumps({"en": "a", "de": "b\nc"}) + "\n")
    settings["corpus"].splits["test"] = ["t.jsonl"]
    with pytest.raises(UserError, match="split test, pair 1: a line break"):
        prepared(**settings)


@needs_multi30k
def test_multi30k(settings):
    names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
    settings["corpus"] = replace(
        settings["corpus"],
        name="multi30k",
        path=str(MULTI30K),
        splits={split: [f"{name}.en", f"{name}.de"] for split, name in names.items()},
    )
    data = prepared(**(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=4000)}))
    assert data.splits["validation"]["pairs"] == 1014
    assert data.splits["test"]["pairs"] == 1000
    assert 28_900 < data.splits["train"]["pairs"] <= 29_000
    original = (MULTI30K / "test_2016_flickr.de").read_bytes()
    assert (data.folder / "test.target.txt").read_bytes() == original


def script(settings, progress: str = "lambda *_: None") -> str:
    """Python code that prepares with these settings."""
    recipe = ", ".join(f"{name}={value!r}" for name, value in settings.items() if name != "folder")
    return (
        "from pathlib import Path, PosixPath\n"
        "from endeavour.data.corpus import CorpusConfig\n"
        "from endeavour.data.cleaning import CleaningConfig\n"
        "from endeavour.data.tokenizer_training import TokenizerConfig\n"
        "from endeavour.data.preparing import prepare_data\n"
        "from endeavour.data.recipe import DataRecipe\n"
        f"prepare_data(DataRecipe({recipe}), {settings['folder']!r}, {progress})\n"
    )
