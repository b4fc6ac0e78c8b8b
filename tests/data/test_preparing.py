"""Prepared data: a function of config and inputs, faithful to the text, whole or not there."""

import errno
import gc
import json
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import datasets
import pytest
from omegaconf import OmegaConf

from endeavour.data import file_hashes, part, preparing, tables
from endeavour.data.cleaning import CleaningConfig, PairJudge
from endeavour.data.corpus import CorpusConfig
from endeavour.data.crawled import CrawledConfig
from endeavour.data.dataset import RaggedArray
from endeavour.data.duplicates import SeenHashes
from endeavour.data.encoding import TrainingEncoder
from endeavour.data.normalization import normalize
from endeavour.data.prepared import MANIFEST, PreparedData, find_prepared
from endeavour.data.preparing import prepare_data
from endeavour.data.recipe import DataRecipe
from endeavour.data.tokenizer import Tokenizer, TokenizerConfig
from endeavour.errors import UserError
from endeavour.progress import Report
from endeavour.special import EOS
from endeavour.storage import DIGESTS
from multi30k import MULTI30K, needs_multi30k

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


CLEANING = CleaningConfig(
    drop_duplicates=True,
    drop_overlap=True,
    crawled=None,
    min_tokens=1,
    max_tokens=100,
    max_ratio=3.0,
    ratio_from_tokens=12,
)
TOKENIZER = TokenizerConfig(
    name="toy",
    algorithm="bpe",
    vocabulary_size=340,
    joint=True,
    lowercase=False,
    character_coverage=1.0,
    max_sentences=1000,
    placeholders=0,
)


def write(folder: Path, **changes: list[tuple[str, str]]) -> CorpusConfig:
    """The corpus of the three splits above, except for `changes`."""
    folder.mkdir(exist_ok=True)
    splits = {"train": TRAIN, "validation": VALIDATION, "test": TEST} | changes
    for name, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (folder / f"{name}.{language}").write_bytes(text.encode())
    shipped = OmegaConf.to_container(OmegaConf.load(CONF / "corpus" / "files.yaml"))
    own = {"path": str(folder), "splits": {name: [f"{name}.en", f"{name}.de"] for name in splits}}
    return CorpusConfig(**(shipped | own))


def settings_in(folder: Path) -> dict[str, Any]:
    return {
        "corpus": write(folder / "raw"),
        "cleaning": CLEANING,
        "tokenizer": TOKENIZER,
        "direction": "en-de",
        "folder": folder / "data",
    }


@pytest.fixture
def settings(tmp_path):
    return settings_in(tmp_path)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> PreparedData:
    """What `settings` give, not to be altered."""
    return prepared(**settings_in(tmp_path_factory.mktemp("shared")))


def prepared(*, folder: Path, progress: Report = lambda *_: None, **recipe: Any) -> PreparedData:
    return prepare_data(DataRecipe(**recipe), folder, progress)


def rows(data: PreparedData, split: str, side: str) -> list[list[int]]:
    found = RaggedArray(data.folder / f"{split}.{side}")
    return [row.tolist() for row in found]


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
    assert data.test_splits == ["test"]


def test_references_are_kept_byte_for_byte(data):
    for split, pairs in {"validation": VALIDATION, "test": TEST}.items():
        for number, side in enumerate(("source", "target")):
            lines = [pair[number] for pair in pairs]
            kept = (data.folder / f"{split}.{side}.txt").read_bytes()
            assert kept.decode() == "".join(f"{line}\n" for line in lines)
            assert data.lines(split, side) == lines
    with pytest.raises(UserError, match="choose one of validation, test"):
        data.lines("train", "target")


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
    train = Tokenizer.train
    monkeypatch.setattr(
        Tokenizer,
        "train",
        lambda texts, *rest: train((seen.append(text) or text for text in texts), *rest),
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


class Stop(Exception):
    pass


# Of each kind that is dropped some pairs, early and late, and what is met a second time stood in another part.
DROPPED = [("", "leer"), TEST[0], ("A " + "cat " * 150, "Ein " + "Kater " * 150), TRAIN[100]]
DIRTY = [*TRAIN[:9], *DROPPED, *TRAIN[9:], *DROPPED[:3]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> PreparedData:
    """Of DIRTY, built at once and never stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return prepared(**settings_in(folder) | {"corpus": write(folder / "raw", train=DIRTY)})


def contents(data: PreparedData) -> list[object]:
    """All that is in the folder, except for when and how it was made."""
    reports = [(data.folder / name).read_text() for name in ("report.json", "report.md")]
    text = datasets.load_from_disk(str(data.folder / "text" / "train"))[:]
    return [data.manifest, data.content_digest, text, *reports]


def in_shards(monkeypatch, batch, shard=1):
    """Prepares batches of so many pairs, and so many batches in a shard."""
    monkeypatch.setattr(tables, "BATCH", batch)
    monkeypatch.setattr(part, "SHARD_BATCHES", shard)


@pytest.mark.parametrize("sizes", [(7, 100), (7, 1), (7, 3), (40, 1), (1, 1), (len(DIRTY), 1)])
def test_the_parts_in_which_it_is_built_change_nothing(settings, undisturbed, tmp_path, monkeypatch, sizes):
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY)
    in_shards(monkeypatch, *sizes)
    found = prepared(**settings)
    assert dropped(found) == {"empty": 2, "duplicate": 2, "overlap": 2, "more": 1}
    assert contents(found) == contents(undisturbed)


def stop_at(event, settings, monkeypatch):
    """Prepares shards of 40 pairs until so many things were reported."""
    in_shards(monkeypatch, 40)
    events = count()

    def progress(*_):
        if next(events) == event:
            raise Stop

    with pytest.raises(Stop):
        prepared(**settings, progress=progress)


@pytest.mark.parametrize(
    ("event", "left"),  # batches to be cleaned, tokenizers to be trained, batches to be encoded
    [
        (0, (5, 1, 5)),
        (3, (5, 1, 5)),
        (5, (3, 1, 5)),
        (8, (0, 1, 5)),
        (9, (0, 0, 5)),
        (12, (0, 0, 3)),
        (15, (0, 0, 2)),
    ],
)
def test_a_stopped_build_goes_on_and_ends_as_an_undisturbed_one(
    settings, undisturbed, tmp_path, monkeypatch, event, left
):
    settings["corpus"] = write(tmp_path / "raw", train=DIRTY)
    stop_at(event, settings, monkeypatch)
    cleaned, trained, encoded = [], [], []
    clean, train, encode = PairJudge.__call__, Tokenizer.train, TrainingEncoder.__call__
    monkeypatch.setattr(PairJudge, "__call__", lambda self, pairs: cleaned.append(1) or clean(self, pairs))
    monkeypatch.setattr(Tokenizer, "train", lambda *arguments: trained.append(1) or train(*arguments))
    monkeypatch.setattr(
        TrainingEncoder, "__call__", lambda self, pairs: encoded.append(1) or encode(self, pairs)
    )
    resumed = prepared(**settings)
    assert contents(resumed) == contents(undisturbed)
    assert (len(cleaned), len(trained), len(encoded)) == left


def of_the_web() -> dict[str, Any]:
    """The settings of crawled text."""
    crawled = OmegaConf.to_container(OmegaConf.load(CONF / "cleaning" / "crawled.yaml").crawled)
    cleaning = replace(CLEANING, crawled=CrawledConfig(**crawled))
    return {"cleaning": cleaning, "tokenizer": replace(TOKENIZER, vocabulary_size=310)}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory) -> PreparedData:
    """Of the corpus's pairs those with the same words, in another order or with another number, are near."""
    whole = prepared(**settings_in(tmp_path_factory.mktemp("crawled")) | of_the_web())
    assert dropped(whole)["near-duplicate"] >= len(TRAIN) - 8 * 9 // 2
    assert {"eldc", "rensa"} < whole.manifest["versions"].keys()
    return whole


@pytest.mark.parametrize("event", [3, 5, 7])
def test_a_stopped_build_of_crawled_text_still_knows_what_was_near(settings, crawled, monkeypatch, event):
    settings |= of_the_web()
    stop_at(event, settings, monkeypatch)
    assert contents(prepared(**settings)) == contents(crawled)


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
        "from endeavour.data.tokenizer import TokenizerConfig\n"
        "from endeavour.data.preparing import prepare_data\n"
        "from endeavour.data.recipe import DataRecipe\n"
        f"prepare_data(DataRecipe({recipe}), {settings['folder']!r}, {progress})\n"
    )
