"""Prepared data: a function of config and inputs, faithful to the text, whole or not there."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import datasets
import numpy as np
import pytest

from endeavour.data import build, preparing, tables
from endeavour.data.arrays import RaggedWriter
from endeavour.data.cleaning import CleaningConfig, TextCleaner
from endeavour.data.corpus import CorpusConfig
from endeavour.data.normalization import normalize
from endeavour.data.prepared import MANIFEST, PreparedData
from endeavour.data.preparing import prepare_data
from endeavour.data.tokenizer import Tokenizer, TokenizerConfig
from endeavour.errors import UserError
from endeavour.special import EOS
from endeavour.storage import DIGESTS

MULTI30K = Path(__file__).parents[3] / "shared" / "data" / "multi30k"

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


def write(folder: Path, **splits: list[tuple[str, str]]) -> CorpusConfig:
    folder.mkdir(exist_ok=True)
    for name, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (folder / f"{name}.{language}").write_bytes(text.encode())
    return CorpusConfig(
        name="toy",
        kind="files",
        path=str(folder),
        repository=None,
        revision=None,
        splits={name: [f"{name}.en", f"{name}.de"] for name in splits},
        path_files=None,
        english_column="en",
        german_column="de",
        train_pairs=None,
        seed=None,
    )


CLEANING = CleaningConfig(
    drop_duplicates=True,
    drop_overlap=True,
    min_tokens=1,
    max_tokens=100,
    max_ratio=3.0,
    ratio_from_tokens=12,
)
TOKENIZER = TokenizerConfig(
    name="toy", algorithm="bpe", vocabulary_size=340, joint=True, character_coverage=1.0, max_sentences=1000
)


@pytest.fixture
def settings(tmp_path):
    return {
        "corpus": write(tmp_path / "raw", train=TRAIN, validation=VALIDATION, test=TEST),
        "cleaning": CLEANING,
        "tokenizer": TOKENIZER,
        "direction": "en-de",
        "folder": tmp_path / "data",
    }


def rows(data: PreparedData, split: str, side: str) -> list[list[int]]:
    ids = np.load(data.folder / f"{split}.{side}.ids.npy", mmap_mode="r")
    offsets = np.load(data.folder / f"{split}.{side}.offsets.npy", mmap_mode="r")
    assert (ids.dtype, offsets.dtype) == (np.uint16, np.int64)
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    return [ids[start:end].tolist() for start, end in pairwise(offsets)]


def test_rows_are_the_encoded_normal_form_and_end_in_eos(settings):
    data = prepare_data(**settings)
    source, target = data.load_tokenizers()
    for split, pairs in {"train": TRAIN, "validation": VALIDATION, "test": TEST}.items():
        for side, tokenizer, number in (("source", source, 0), ("target", target, 1)):
            found = rows(data, split, side)
            assert found == [[*ids, EOS] for ids in tokenizer.encode([pair[number] for pair in pairs])]
            assert [tokenizer.decode([row])[0] for row in found] == [
                normalize(pair[number]) for pair in pairs
            ]
            assert data.splits[split][f"{side}_tokens"] == sum(map(len, found))
        assert data.splits[split]["pairs"] == len(pairs)
    assert (data.validation_split, data.test_splits) == ("validation", ["test"])


def test_references_are_kept_byte_for_byte(settings, tmp_path):
    data = prepare_data(**settings)
    for split, pairs in {"validation": VALIDATION, "test": TEST}.items():
        for side, language, number in (("source", "en", 0), ("target", "de", 1)):
            kept = (data.folder / f"{split}.{side}.txt").read_bytes()
            assert kept == (tmp_path / "raw" / f"{split}.{language}").read_bytes()
            assert data.lines(split, side) == [pair[number] for pair in pairs]
    with pytest.raises(UserError, match="choose one of validation, test"):
        data.lines("train", "target")


def test_the_text_is_an_arrow_table_in_normal_form(settings):
    data = prepare_data(**settings)
    for split, pairs in {"train": TRAIN, "test": TEST}.items():
        table = datasets.load_from_disk(data.folder / "text" / split)
        assert table.column_names == ["source", "target"]
        assert list(table["target"]) == [normalize(target) for _, target in pairs]


def test_the_direction_swaps_the_sides(settings):
    forth, back = prepare_data(**settings), prepare_data(**(settings | {"direction": "de-en"}))
    assert forth.folder != back.folder
    assert (back.manifest["source_language"], back.manifest["target_language"]) == ("de", "en")
    assert back.lines("test", "source") == forth.lines("test", "target")
    assert back.splits["test"]["pairs"] == forth.splits["test"]["pairs"]
    text = back.load_tokenizers()[0].decode([rows(back, "train", "source")[0]])
    assert text == [TRAIN[0][1]]


def test_given_vocabularies_are_taken_as_they_are(settings, tmp_path):
    first = prepare_data(**settings)
    given = first.load_tokenizers()
    other = [(f"Another {source}", f"Anderes {target}") for source, target in TRAIN]
    settings["corpus"] = write(tmp_path / "raw", train=other, validation=VALIDATION, test=TEST)
    second = prepare_data(
        **(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=350)}), tokenizers=given
    )
    assert second.manifest["vocabularies"] == first.manifest["vocabularies"]
    assert rows(second, "train", "source") == [
        [*ids, EOS] for ids in given[0].encode([source for source, _ in other])
    ]
    # How they were learnt is no matter, which they are is.
    assert prepare_data(**settings, tokenizers=given).folder == second.folder
    assert prepare_data(**settings).folder != second.folder


def test_only_training_pairs_are_dropped_and_every_one_is_accounted_for(settings, tmp_path):
    long = " ".join(str(number) for number in range(101))
    dirty = [*TRAIN, TRAIN[0], ("A test.", "neu"), ("neu", TEST[0][1]), ("", "x"), (long, long)]
    settings["corpus"] = write(tmp_path / "raw", train=dirty, validation=VALIDATION, test=TEST)
    data = prepare_data(**settings)
    report = json.loads((data.folder / "report.json").read_text())
    assert (report["read"], report["kept"]) == (len(dirty), len(TRAIN))
    dropped = {step["name"]: step["dropped"] for step in report["steps"] if step["dropped"]}
    assert dropped == {
        "empty": 1,
        "duplicate": 1,
        "overlap with validation or test": 2,
        "more than 100 tokens": 1,
    }
    assert data.splits["test"]["pairs"] == len(TEST)
    assert "| overlap with validation or test | 0 | 2 |" in (data.folder / "report.md").read_text()


def test_the_tokenizer_learns_from_the_training_split_only(settings, tmp_path):
    first = prepare_data(**settings)
    other = [("Zyxwv qqq zzz.", "Zyxwv qqq zzz.")] * 500
    settings["corpus"] = write(tmp_path / "raw", train=TRAIN, validation=other, test=other)
    second = prepare_data(**settings)
    assert first.folder != second.folder
    assert first.manifest["vocabularies"] == second.manifest["vocabularies"]


def test_joint_and_separate_vocabularies(settings):
    source, target = prepare_data(**settings).load_tokenizers()
    assert source.digest == target.digest
    apart = prepare_data(**(settings | {"tokenizer": replace(TOKENIZER, joint=False, vocabulary_size=310)}))
    source, target = apart.load_tokenizers()
    assert source.digest != target.digest
    assert apart.manifest["vocabularies"]["target"]["size"] == 310


def test_batches_leave_no_trace(settings, tmp_path, monkeypatch):
    whole = prepare_data(**settings)
    for user in (build, tables):
        monkeypatch.setattr(user, "BATCH", 7)
    pieces = prepare_data(**(settings | {"folder": tmp_path / "other"}))
    assert whole.content_digest == pieces.content_digest


def test_a_sample_for_the_tokenizer_is_even_and_bounded(settings, monkeypatch):
    seen = []
    train = Tokenizer.train
    monkeypatch.setattr(
        Tokenizer, "train", lambda texts, config: train((seen.append(text) or text for text in texts), config)
    )
    few = prepare_data(
        **(settings | {"tokenizer": replace(TOKENIZER, max_sentences=40, vocabulary_size=320)})
    )
    assert few.splits["train"]["pairs"] == len(TRAIN)
    stride = -(-len(TRAIN) // 40)
    assert stride > 1
    assert seen == [normalize(text) for pair in TRAIN[::stride] for text in pair]


def test_a_second_prepare_does_nothing(settings, monkeypatch):
    first = prepare_data(**settings)
    monkeypatch.setattr(preparing, "_fill", lambda *_: pytest.fail("built again"))
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read again"))
    assert prepare_data(**settings) == first


def test_a_second_prepare_imports_nothing_heavy(settings):
    prepare_data(**settings)
    code = (
        script(settings)
        + "\nimport sys; assert not {'datasets', 'huggingface_hub', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_equal_settings_make_equal_files(settings, tmp_path):
    one, two = prepare_data(**settings), prepare_data(**(settings | {"folder": tmp_path / "other"}))
    assert one.folder.name == two.folder.name
    assert (one.manifest, one.content_digest) == (two.manifest, two.content_digest)


@pytest.mark.parametrize(
    "change",
    [
        {"cleaning": replace(CLEANING, max_tokens=99)},
        {"cleaning": replace(CLEANING, drop_overlap=False)},
        {"tokenizer": replace(TOKENIZER, vocabulary_size=341)},
        {"tokenizer": replace(TOKENIZER, algorithm="unigram", vocabulary_size=300)},
    ],
)
def test_a_changed_setting_makes_a_new_folder(settings, change):
    assert prepare_data(**settings).folder != prepare_data(**(settings | change)).folder


def test_a_changed_input_makes_a_new_folder_and_the_old_one_stays(settings, tmp_path):
    first = prepare_data(**settings)
    path = tmp_path / "raw" / "train.en"
    path.write_text(path.read_text().replace("number 0", "number 9"))
    second = prepare_data(**settings)
    assert first.folder != second.folder
    assert PreparedData.open(first.folder) == first


def test_an_input_that_changes_while_it_is_read_is_not_taken_for_the_one_before(settings, tmp_path):
    path = tmp_path / "raw" / "train.en"

    def change(what, *_):
        if what == "encode train":
            path.write_text(path.read_text().replace("number 0", "number 9"))

    with pytest.raises(UserError, match="changed while it was read"):
        prepare_data(**settings, progress=change)
    assert not list((settings["folder"] / "prepared").glob("[!.]*"))
    assert prepare_data(**settings).splits["train"]["pairs"] == len(TRAIN)


def test_finished_data_that_may_only_be_read_are_used(settings, monkeypatch):
    first = prepare_data(**settings)
    (settings["folder"] / "prepared" / ".hashes.json").unlink()

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", forbidden)
    monkeypatch.setattr("endeavour.data.preparing.FileLock", forbidden)
    assert prepare_data(**settings) == first
    with pytest.raises(UserError, match=r"cannot be written \(Permission denied\).*data_folder"):
        prepare_data(**(settings | {"direction": "de-en"}))


@pytest.mark.parametrize("name", [MANIFEST, DIGESTS])
def test_a_torn_manifest_says_what_to_delete(settings, name):
    folder = prepare_data(**settings).folder
    (folder / name).write_text('{"format":')
    with pytest.raises(UserError, match=f"delete {folder} and run"):
        prepare_data(**settings)


def test_a_build_that_the_user_must_change_leaves_nothing_behind(settings):
    with pytest.raises(UserError, match="vocabulary_size"):
        prepare_data(**(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=100_000)}))
    left = [path.name for path in (settings["folder"] / "prepared").iterdir()]
    assert all(name.startswith(".") and not name.endswith(("partial", "scratch")) for name in left)


class Stop(Exception):
    pass


# Of each kind that is dropped some pairs, early and late, and what is met a second time stood in another part.
DROPPED = [("", "leer"), TEST[0], ("A " + "cat " * 150, "Ein " + "Kater " * 150), TRAIN[100]]
DIRTY = [*TRAIN[:9], *DROPPED, *TRAIN[9:], *DROPPED[:3]]


def contents(data: PreparedData) -> list[object]:
    """All that is in the folder, except for when and how it was made."""
    reports = [(data.folder / name).read_text() for name in ("report.json", "report.md")]
    text = datasets.load_from_disk(str(data.folder / "text" / "train"))[:]
    return [data.manifest, data.content_digest, text, *reports]


@pytest.mark.parametrize("size", [7, 40, len(DIRTY)])  # the last leaves nothing for its second part
def test_the_parts_in_which_it_is_built_change_nothing(settings, tmp_path, monkeypatch, size):
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY, validation=VALIDATION, test=TEST)
    at_once = prepare_data(**(settings | {"folder": tmp_path / "at once"}))
    steps = json.loads((at_once.folder / "report.json").read_text())["steps"]
    dropped = {step["name"].split()[0]: step["dropped"] for step in steps if step["dropped"]}
    assert dropped == {"empty": 2, "duplicate": 3, "overlap": 1, "more": 1}
    monkeypatch.setattr(build, "SHARD_PAIRS", size)
    assert contents(prepare_data(**settings)) == contents(at_once)


@pytest.mark.parametrize("event", [0, 3, 5, 8, 9, 12, 15])
def test_a_stopped_build_goes_on_and_ends_as_an_undisturbed_one(settings, tmp_path, monkeypatch, event):
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY, validation=VALIDATION, test=TEST)
    whole = prepare_data(**(settings | {"folder": tmp_path / "whole"}))
    monkeypatch.setattr(build, "SHARD_PAIRS", 40)
    events = count()

    def stop_at(*_):
        if next(events) == event:
            raise Stop

    with pytest.raises(Stop):
        prepare_data(**settings, progress=stop_at)
    cleaned = []
    original = TextCleaner.clean
    monkeypatch.setattr(
        TextCleaner, "clean", lambda self, pairs: (cleaned.extend(pairs), original(self, pairs))[1]
    )
    trained, encoded = [], []
    train, encode = Tokenizer.train, build._encode
    monkeypatch.setattr(Tokenizer, "train", lambda *arguments: trained.append(1) or train(*arguments))
    monkeypatch.setattr(
        build, "_encode", lambda *arguments: encoded.append(arguments[1].name) or encode(*arguments)
    )
    resumed = prepare_data(**settings)
    assert len(trained) == (event < 9)
    shards = [name for name in encoded if name.startswith("encoded-")]
    assert len(shards) < 5 if event >= 12 else len(shards) == 5
    assert contents(resumed) == contents(whole)
    read = json.loads((whole.folder / "report.json").read_text())["read"]
    if event >= 5:  # some shard was finished by then
        assert len(cleaned) < read


def test_what_other_code_left_half_done_is_not_taken_up(settings, monkeypatch):
    monkeypatch.setattr(build, "SHARD_PAIRS", 40)

    def stop_late(what, done, total):
        if what == "encode train":
            raise Stop

    with pytest.raises(Stop):
        prepare_data(**settings, progress=stop_late)
    (scratch,) = (settings["folder"] / "prepared").glob(".*.scratch")
    code = json.loads((scratch / "code.json").read_text())
    (scratch / "code.json").write_text(json.dumps(code | {"versions": {}}))
    torn = scratch / "clean-00000.json"
    torn.write_text(json.dumps({"read": 40, "finished": True, "steps": []}))
    assert prepare_data(**settings).splits["train"]["pairs"] == len(TRAIN)
    assert not scratch.exists()


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
    data = prepare_data(**settings)
    assert [path for path in root.iterdir() if path.suffix in (".partial", ".scratch")] == []
    assert PreparedData.open(data.folder) == data


def test_of_two_processes_one_builds_and_the_other_waits(settings):
    code = "import os, time\n" + script(
        settings, progress="lambda what, *_: (print(what), time.sleep(0.3 * (what == 'train the tokenizer')))"
    )
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted("train the tokenizer" in output for output in outputs) == [False, True]


def test_an_unfinished_or_damaged_folder_is_refused(settings, tmp_path):
    data = prepare_data(**settings)
    with pytest.raises(UserError, match="endeavour prepare"):
        PreparedData.open(tmp_path)
    (data.folder / "train.source.ids.npy").unlink()
    with pytest.raises(UserError, match=r"train\.source\.ids\.npy.*endeavour prepare"):
        data.verify()


def test_progress_counts_up_to_the_total(settings):
    seen = []
    prepare_data(**settings, progress=lambda *event: seen.append(event))
    assert ("train the tokenizer", 0, None) in seen
    assert ("encode train", len(TRAIN), len(TRAIN)) in seen
    assert ("read and clean train", len(TRAIN), None) in seen


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": []}, "split train is empty"),
        ({"test": []}, "split test is empty"),
        ({"train": VALIDATION}, r"cleaning dropped all 3 training pairs \(empty 1, overlap"),
    ],
)
def test_nothing_to_learn_from_is_an_error(settings, tmp_path, changes, message):
    splits = {"train": TRAIN, "validation": VALIDATION, "test": TEST} | changes
    settings["corpus"] = write(tmp_path / "raw", **splits)
    with pytest.raises(UserError, match=message):
        prepare_data(**settings)


def test_a_line_break_inside_a_reference_is_an_error(settings, tmp_path):
    (tmp_path / "raw" / "t.jsonl").write_text(json.dumps({"en": "a", "de": "b\nc"}) + "\n")
    settings["corpus"].splits["test"] = ["t.jsonl"]
    with pytest.raises(UserError, match="split test, pair 1: a line break"):
        prepare_data(**settings)


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_every_id_of_a_vocabulary_fits_its_array(tmp_path, size, dtype):
    with RaggedWriter(tmp_path / "x.source", vocabulary_size=size) as writer:
        writer.append([[5], []], end=EOS)
        writer.append([], end=EOS)
        writer.append([[size - 1, 6]], end=EOS)
    ids = np.load(tmp_path / "x.source.ids.npy", mmap_mode="r")
    assert ids.dtype == dtype
    assert ids.tolist() == [5, EOS, EOS, size - 1, 6, EOS]
    assert np.load(tmp_path / "x.source.offsets.npy").tolist() == [0, 2, 3, 6]


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"Multi30k is not at {MULTI30K}")
def test_multi30k(settings):
    names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
    settings["corpus"] = replace(
        settings["corpus"],
        name="multi30k",
        path=str(MULTI30K),
        splits={split: [f"{name}.en", f"{name}.de"] for split, name in names.items()},
    )
    data = prepare_data(**(settings | {"tokenizer": replace(TOKENIZER, vocabulary_size=4000)}))
    assert data.splits["validation"]["pairs"] == 1014
    assert data.splits["test"]["pairs"] == 1000
    assert 28_900 < data.splits["train"]["pairs"] <= 29_000
    original = (MULTI30K / "test_2016_flickr.de").read_bytes()
    assert (data.folder / "test.target.txt").read_bytes() == original


def script(settings, progress: str = "lambda *_: None") -> str:
    """Python code that prepares with these settings."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return (
        "from pathlib import Path, PosixPath\n"
        "from endeavour.data.corpus import CorpusConfig\n"
        "from endeavour.data.cleaning import CleaningConfig\n"
        "from endeavour.data.tokenizer import TokenizerConfig\n"
        "from endeavour.data.preparing import prepare_data\n"
        f"prepare_data({arguments}, progress={progress})\n"
    )
