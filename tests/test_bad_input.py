"""What a user can do wrong, one row a case, each with the whole message; and what strange text comes out as.

In a message `{folder}` stands for the test's folder. Every row is exit code 2 and nothing on standard output.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from endeavour.stages import translate as translate_stage

from commands import endeavour, write_splits
from endeavour.__main__ import unexpected
from endeavour.data.prepared import PreparedData
from endeavour.storage import file_digest

GOOD = {"train": 30, "validation": 3, "test": 2}
TINY = [
    "tokenizer=bpe2k",
    "tokenizer.vocabulary_size=300",
    "model.width=16",
    "model.feed_forward=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.num_heads=2",
    "training=smoke",
    "training.max_updates=2",
    "training.validate_every=1",
    "decoding.max_length_ratio=0.5",
    "decoding.max_length_offset=5",
    "evaluation.bootstrap_samples=40",
    "tracking=none",
    "device=cpu",
]


def pairs(split: str) -> list[tuple[str, str]]:
    return [(f"{split} dog number {i}", f"{split} Hund Nummer {i}") for i in range(GOOD[split])]


def corpus(folder: Path) -> list[str]:
    """Writes three good splits; the settings of a `prepare` or `train` on them."""
    folder.mkdir(exist_ok=True)
    write_splits(folder, {split: pairs(split) for split in GOOD})
    splits = [f"corpus.splits.{split}=[{split}.en,{split}.de]" for split in GOOD]
    return ["corpus=files", f"corpus.path={folder}", *splits]


def settings(folder: Path) -> list[str]:
    return [*corpus(folder), *TINY, f"data_folder={folder}/data", f"output_folder={folder}/outputs"]


# One split's files as bytes → the message. `train` names them.
FILES: dict[str, tuple[dict[str, bytes], list[str], str]] = {
    "fewer lines on one side": (
        {"a.en": b"1\n2\n3\n4\n", "a.de": b"1\n2\n"},
        [],
        "{folder}/a.en:3: {folder}/a.de ends at line 2 and {folder}/a.en has 4 lines; "
        "line-aligned files must have the same number of lines",
    ),
    "one side empty": (
        {"a.en": b"1\n", "a.de": b""},
        [],
        "{folder}/a.en:1: {folder}/a.de ends at line 0 and {folder}/a.en has 1 lines; "
        "line-aligned files must have the same number of lines",
    ),
    "both sides empty": (
        {"a.en": b"", "a.de": b""},
        [],
        "the split train is empty; check corpus.splits.train",
    ),
    "only empty lines": (
        {"a.en": b"\n\n", "a.de": b"\n\n"},
        [],
        "cleaning dropped all 2 training pairs (empty 2); check the settings under cleaning",
    ),
    "only white space": (
        {"a.en": " \t\n\u2003\n".encode(), "a.de": b"x\ny\n"},
        [],
        "cleaning dropped all 2 training pairs (empty 2); check the settings under cleaning",
    ),
    "only a NUL and zero-width characters": (
        {"a.en": "\x00\n\u200b\u200e\n".encode(), "a.de": b"x\ny\n"},
        [],
        "cleaning dropped all 2 training pairs (empty 2); check the settings under cleaning",
    ),
    "lines of 100,000 characters alone": (
        {"a.en": b"x" * 100_000 + b"\n", "a.de": b"y" * 100_000 + b"\n"},
        ["tokenizer.vocabulary_size=262"],
        "no text for the tokenizer to learn from: it leaves out lines of more than 4,192 bytes",
    ),
    "invalid UTF-8": (
        {"a.en": b"1\n2\n", "a.de": b"eins\nf\xfcr\n"},
        [],
        "{folder}/a.de:2: invalid UTF-8 (byte 2 of the line); convert the file",
    ),
    "UTF-16": (
        {"a.en": "A dog\n".encode("utf-16"), "a.de": b"Ein Hund\n"},
        [],
        "{folder}/a.en:1: invalid UTF-8 (byte 1 of the line); convert the file",
    ),
    "a lone surrogate in bytes": (
        {"a.en": b"a\xed\xa0\x80\n", "a.de": b"b\n"},
        [],
        "{folder}/a.en:1: invalid UTF-8 (byte 2 of the line); convert the file",
    ),
    "a lone surrogate in JSON": (
        {"a.jsonl": b'{"en": "a", "de": "\\ud800"}\n'},
        [],
        "{folder}/a.jsonl:1: column 'de' holds a lone surrogate, which is not valid Unicode; "
        "correct or delete the line",
    ),
    "TSV with a missing column": (
        {"a.tsv": b"en\tde\n1\t2\n3\n"},
        [],
        "{folder}/a.tsv:3: column 2 is missing, the line has 1; "
        "fields are separated by tabs, and a sentence must not hold one",
    ),
    "TSV with too many columns": (
        {"a.tsv": b"en\tde\n1\t2\n3\tx\t4\n"},
        [],
        "{folder}/a.tsv:3: the line has 3 columns and the header 2; "
        "fields are separated by tabs, and a sentence must not hold one",
    ),
    "TSV without the column": (
        {"a.tsv": b"english\tgerman\n1\t2\n"},
        [],
        "{folder}/a.tsv:1: no column 'en' in the header ['english', 'german']; set corpus.english_column and "
        "corpus.german_column, to 1 and 2 for a file without a header",
    ),
    "an empty TSV": (
        {"a.tsv": b""},
        [],
        "{folder}/a.tsv:1: no column 'en' in the header ['']; set corpus.english_column and "
        "corpus.german_column, to 1 and 2 for a file without a header",
    ),
    "JSON lines with a missing key": (
        {"a.jsonl": b'{"en": "1", "de": "2"}\n{"en": "1"}\n'},
        [],
        "{folder}/a.jsonl:2: no column 'de' (found: ['en']); "
        "set corpus.english_column and corpus.german_column",
    ),
    "JSON with a number for a text": (
        {"a.jsonl": b'{"en": "1", "de": 2}\n'},
        [],
        "{folder}/a.jsonl:1: column 'de' holds 2, not text; correct or delete the line",
    ),
    "JSON with null for a text": (
        {"a.jsonl": b'{"en": null, "de": "2"}\n'},
        [],
        "{folder}/a.jsonl:1: column 'en' holds None, not text; correct or delete the line",
    ),
    "a JSON list for an object": (
        {"a.jsonl": b'["1", "2"]\n'},
        [],
        "{folder}/a.jsonl:1: no column 'en' (found: list); set corpus.english_column and corpus.german_column",
    ),
    "half a JSON line": (
        {"a.jsonl": b'{"en": "1", "de"\n'},
        [],
        "{folder}/a.jsonl:1: not a JSON object (Expecting ':' delimiter); correct or delete the line",
    ),
    "an empty JSON line": (
        {"a.jsonl": b'{"en": "1", "de": "2"}\n\n'},
        [],
        "{folder}/a.jsonl:2: not a JSON object (Expecting value); correct or delete the line",
    ),
    "JSON nested without end": (
        {"a.jsonl": b"[" * 200_000 + b"\n"},
        [],
        "{folder}/a.jsonl:1: not a JSON object (nested too deeply); correct or delete the line",
    ),
    "a truncated gzip": (
        {"a.tsv.gz": gzip.compress(b"en\tde\n" + b"1\t2\n" * 9, mtime=0)[:-9]},
        [],
        "{folder}/a.tsv.gz:2: damaged gzip (Compressed file ended before the end-of-stream marker was "
        "reached); download or copy it again",
    ),
    "no gzip at all": (
        {"a.tsv.gz": b"en\tde\n1\t2\n"},
        [],
        "{folder}/a.tsv.gz:1: damaged gzip (Not a gzipped file (b'en')); download or copy it again",
    ),
    "a missing file": (
        {"a.en": b"1\n"},
        ["corpus.splits.train=[a.en,a.de]"],
        "{folder}/a.de: no such file",
    ),
    "a folder for a file": (
        {"a.en": b"1\n"},
        ["corpus.splits.train=[a.en,data]"],
        "{folder}/data: a folder, not a file",
    ),
    "German before English": (
        {"a.de": b"1\n", "a.en": b"1\n"},
        ["corpus.splits.train=[a.de,a.en]"],
        "{folder}/a.de, {folder}/a.en: the English file comes first, then the German one",
    ),
    "three files of lines": (
        {"a.en": b"1\n", "a.de": b"1\n", "b.de": b"1\n"},
        ["corpus.splits.train=[a.en,a.de,b.de]"],
        "{folder}/a.en, {folder}/a.de, {folder}/b.de: a split is pairs of line-aligned text files, English first, "
        "and any number of .tsv, .jsonl and .parquet files",
    ),
    "a corpus.path that is not there": (
        {},
        ["corpus.path={folder}/nowhere"],
        "corpus.path={folder}/nowhere: no such folder",
    ),
    "too large a vocabulary": (
        {},
        ["tokenizer.vocabulary_size=5000"],
        "tokenizer.vocabulary_size=5000: this corpus allows at most 382; "
        "choose a smaller vocabulary or more text",
    ),
    "too small a vocabulary": (
        {},
        ["tokenizer.vocabulary_size=100"],
        "tokenizer.vocabulary_size=100: the characters of this corpus need at least 285",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_corpus_that_is_wrong(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, changes, message = FILES[case]
    arguments = settings(tmp_path)
    (tmp_path / "data").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    named = [f"corpus.splits.train=[{','.join(files)}]"] if files else []
    changes = [change.format(folder=tmp_path) for change in changes]
    code = endeavour("prepare", *arguments, *named, *changes)
    captured = capsys.readouterr()
    said = [line for line in captured.err.splitlines() if line.startswith("endeavour")]
    assert (code, captured.out) == (2, "")
    assert said == [f"endeavour prepare: {message.format(folder=tmp_path)}"]
    assert captured.err.endswith(said[0] + "\n"), "something follows the message"


def test_a_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = settings(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "train.de")  # root may read all
    assert endeavour("prepare", *arguments) == 2
    said = f"endeavour prepare: {tmp_path}/train.de: its permissions forbid reading it; chmod u+r allows it\n"
    assert capsys.readouterr().err.endswith(said)


STRANGE = {
    "CRLF": (b"A dog\r\n", "A dog"),
    "a BOM": (b"\xef\xbb\xbfA dog\n", "A dog"),
    "a NUL": (b"A \x00dog\n", "A dog"),
    "bidirectional marks": ("A \u202edog\u2069\n".encode(), "A dog"),
    "zero-width characters": ("A\u200b dog\ufeff\n".encode(), "A dog"),
    "odd spaces": ("\u00a0A\u2003 dog\t\n".encode(), "A dog"),
    "decomposed letters": ("u\u0308ber\n".encode(), "über"),
    "a line separator": ("A\u2028dog\n".encode(), "A dog"),
    "no line end at the end": (b"A dog", "A dog"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_text_that_is_strange_and_not_wrong(case: str, tmp_path: Path) -> None:
    """What it is trained on; a test reference with the same line stays as it came."""
    line, normal = STRANGE[case]
    arguments = settings(tmp_path)
    train = (tmp_path / "train.en").read_bytes()
    (tmp_path / "train.en").write_bytes(line if line.endswith(b"\n") else line + b"\n")
    with (tmp_path / "train.en").open("ab") as file:
        file.write(b"".join(train.splitlines(keepends=True)[1:]))
    (tmp_path / "test.en").write_bytes(b"x\n" + line)
    assert endeavour("prepare", *arguments, "cleaning.drop_overlap=false") == 0
    (folder,) = (tmp_path / "data" / "prepared").glob("files-*")
    data = PreparedData.open(folder)
    tokenizer, _ = data.load_tokenizers()
    from endeavour.data.dataset import ParallelDataset

    rows = ParallelDataset.open(folder, "train").source
    assert tokenizer.decode([rows[0].tolist()]) == [normal]
    kept = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
    assert data.lines("test", "source")[1] == kept


def test_a_users_own_splits_win_over_the_names_that_a_corpus_has_under_a_path(tmp_path: Path) -> None:
    from endeavour.config import load_config
    from endeavour.data.corpus import local_files

    corpus(tmp_path)
    own = load_config(["corpus=multi30k", f"corpus.path={tmp_path}", "corpus.splits.train=[my.en,my.de]"])
    files = local_files(own.corpus)
    assert [path.name for path in files["train"]] == ["my.en", "my.de"]
    assert [path.name for path in files["validation"]] == ["val.en", "val.de"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, `outputs/run`, and its data."""
    folder = tmp_path_factory.mktemp("trained")
    assert endeavour("train", *settings(folder), "name=run") == 0
    return folder


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged, as if the run had not come to its end."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    (tmp_path / "outputs" / "run" / "summary.json").unlink()
    return tmp_path


def sign(folder: Path) -> None:
    """Makes a folder's digests fit what it holds now, as somebody would who put it together by hand."""
    files = [path for path in sorted(folder.iterdir()) if path.name != "digests.json"]
    (folder / "digests.json").write_text(json.dumps({path.name: file_digest(path) for path in files}))


def other_size(folder: Path) -> None:
    for path in (folder / "outputs" / "run" / "checkpoints").iterdir():
        from safetensors.torch import load_file, save_file

        tensors = load_file(path / "weights.safetensors")
        for name, tensor in tensors.items():
            tensors[name] = tensor.repeat(2) if tensor.ndim == 1 else tensor
        save_file(tensors, path / "weights.safetensors")
        sign(path)


def other_tokenizer(folder: Path) -> None:
    from endeavour.config import load_config
    from endeavour.data.tokenizer import Tokenizer

    config = load_config(["tokenizer.vocabulary_size=300"]).tokenizer
    model = folder / "outputs" / "run" / "model"
    Tokenizer.train([f"ganz anderer Text von anderswo {i}" for i in range(99)], config).save(
        model / "source.model"
    )
    sign(model)


def flipped(name: str) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        path = folder / "outputs" / "run" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    return flip


def written(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "outputs" / "run" / name).write_text(content)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "outputs" / "run" / name).unlink()


def tokenized_references(name: str) -> list[str]:
    return ["evaluation.tokenized_bleu=true", f"evaluation.tokenized_references={{folder}}/{name}"]


RUN: dict[str, tuple[str, Callable[[Path], object], list[str], str]] = {
    "a checkpoint of another model size": (
        "train",
        other_size,
        [],
        "{run}/checkpoints/update-00000002/weights.safetensors: not the weights of this model (Error(s) in "
        "loading state_dict for Transformer: size mismatch for {weight}: copying a param with shape "
        "torch.Size([96]) from checkpoint, the shape in current model is torch.Size([48])); "
        "was the folder copied from another run?",
    ),
    "another model size asked for": (
        "train",
        lambda folder: None,
        ["model.width=32"],
        "{run} holds a run with another config (model.width: 16 → 32)\n"
        "choose another name=…, or training.restart=true to throw that run away",
    ),
    "a tokenizer of another model": (
        "translate",
        other_tokenizer,
        ["text=a"],
        "{run}/model/source.model is not the tokenizer that this model was trained with",
    ),
    "a flipped byte in the weights": (
        "translate",
        flipped("model/weights.safetensors"),
        ["text=a"],
        "{run}/model/weights.safetensors: missing or altered since it was written (SHA-256 differs)",
    ),
    "a file of the model is missing": (
        "evaluate",
        without("model/target.model"),
        [],
        "{run}/model/target.model: missing or altered since it was written (SHA-256 differs)",
    ),
    "no digests": (
        "translate",
        written("model/digests.json", "{"),
        ["text=a"],
        "{run}/model: incomplete, digests.json cannot be read "
        "(Expecting property name enclosed in double quotes: line 1 column 2 (char 1))",
    ),
    "a damaged config": (
        "train",
        written("config.yaml", "name: [\n"),
        [],
        "{run}/config.yaml: not the config of a run (while parsing a flow node); restore it, or move {run} away",
    ),
    "a damaged run.json": (
        "train",
        written("run.json", "["),
        [],
        "{run}/run.json: damaged (Expecting value: line 1 column 2 (char 1)); delete it, no run depends on it",
    ),
    "altered data": (
        "train",
        lambda folder: next(folder.glob("data/prepared/*/train.source.ids.npy")).write_bytes(
            bytes(next(folder.glob("data/prepared/*/train.source.ids.npy")).stat().st_size)
        ),
        [],
        "{data}/train.source.ids.npy: missing or altered since it was written (SHA-256 differs); "
        "delete {data} and run `endeavour prepare` again",
    ),
    "an altered manifest": (
        "train",
        lambda folder: [
            path.write_text(path.read_text().replace('"pairs": 30', '"pairs": 31'))
            for path in folder.glob("data/prepared/*/prepared.json")
        ],
        [],
        "{data}/prepared.json: missing or altered since it was written (SHA-256 differs); "
        "delete {data} and run `endeavour prepare` again",
    ),
    "an output folder that is a file": (
        "train",
        lambda folder: (folder / "file").write_text(""),
        ["output_folder={folder}/file"],
        "{folder}/file/run cannot be written (File exists): choose another output_folder",
    ),
    "a data folder that is a file": (
        "prepare",
        lambda folder: (folder / "file").write_text(""),
        ["data_folder={folder}/file"],
        "{folder}/file: cannot be written (Not a directory); choose another data_folder=…",
    ),
    "an unknown device": (
        "train",
        lambda folder: None,
        ["device=tpu"],
        "device=tpu is not known: choose auto, cpu, cuda, cuda:1 … or mps",
    ),
    "a device that is not there": (
        "translate",
        lambda folder: None,
        ["device=cuda:99", "text=a"],
        "device=cuda:99: this machine (or this build of torch) has none; use device=auto or cpu",
    ),
    "no such run": (
        "translate",
        lambda folder: None,
        ["name=nowhere", "text=a"],
        "{folder}/outputs/nowhere holds no trained model (finished runs: run)\n"
        "train it with the same settings, or choose another with name=…",
    ),
    "no such input": (
        "translate",
        lambda folder: None,
        ["input={folder}/nowhere"],
        "input={folder}/nowhere cannot be read (No such file or directory)",
    ),
    "a folder as input": (
        "translate",
        lambda folder: None,
        ["input={folder}"],
        "input={folder} cannot be read (Is a directory)",
    ),
    "a folder as output": (
        "translate",
        lambda folder: None,
        ["text=a", "output={folder}"],
        "output={folder} cannot be written (Is a directory)",
    ),
    "two inputs": (
        "translate",
        lambda folder: None,
        ["text=a", "input={folder}/train.en"],
        "text=… and input=… are two inputs: give one of them",
    ),
    "tokenized references that are not there": (
        "train",
        lambda folder: None,
        tokenized_references("nowhere"),
        "{folder}/nowhere: no such file",
    ),
    "tokenized references of another length": (
        "evaluate",
        lambda folder: (folder / "one").write_text("test hund nummer 0\n"),
        tokenized_references("one"),
        "{folder}/one has 1 lines for 2 references; line n of each must belong to the same sentence",
    ),
    "references of another split, and not tokenized": (
        "evaluate",
        lambda folder: (folder / "other").write_text("Test Hund Nummer 0\nein Satz .\n"),
        tokenized_references("other"),
        "{folder}/other: only 0 of 2 lines are the references, lowercased and tokenized by Moses' rules for 'de': "
        "is it another test set's, or not tokenized?",
    ),
    "tokenized references of which split": (
        "evaluate",
        lambda folder: None,
        [*tokenized_references("one"), "evaluation.splits=[validation,test]"],
        "evaluation.tokenized_references={folder}/one are the references of one split, and evaluated are "
        "validation, test: choose one with evaluation.splits=[…], or one of evaluation.files",
    ),
    "tokenized references for no tokenized score": (
        "evaluate",
        lambda folder: None,
        tokenized_references("one")[1:],
        "evaluation.tokenized_references needs evaluation.tokenized_bleu=true",
    ),
    "an unknown key with a plus": (
        "train",
        lambda folder: None,
        ["+training.rate=1"],
        "training.rate is no key of the config: `endeavour train --cfg job` shows them all",
    ),
}


@pytest.mark.parametrize("case", RUN)
def test_a_run_that_is_wrong(
    case: str, trained: Path, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, damage, changes, message = RUN[case]
    damage(copied)
    arguments = [argument for argument in settings(copied) if not argument.startswith("corpus.path")]
    arguments += [f"corpus.path={trained}", "name=run"]
    changes = [change.format(folder=copied) for change in changes]
    capsys.readouterr()
    code = endeavour(command, *arguments, *changes)
    captured = capsys.readouterr()
    (data,) = (copied / "data" / "prepared").glob("files-*")
    weight = captured.err.partition("size mismatch for ")[2].partition(":")[0]
    places = {"folder": copied, "run": copied / "outputs" / "run", "data": data, "weight": weight}
    said = captured.err[captured.err.index("endeavour ") :]
    assert said == f"endeavour {command}: {message.format(**places)}\n"
    assert (code, captured.out) == (2, "")


def test_what_was_not_foreseen_is_two_lines_and_exit_code_1(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("\n  the first line\nand many more")

    monkeypatch.setattr(translate_stage, "translate", broken)
    asked = ["translate", f"output_folder={trained}/outputs", "name=run", "text=a"]
    expected = (
        "endeavour translate: RuntimeError: the first line\n"
        "not foreseen; HYDRA_FULL_ERROR=1 before the same command shows where it happened\n"
    )
    assert endeavour(*asked) == 1
    assert capsys.readouterr().err == expected
    assert endeavour(*asked, "-v") == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith(expected)
    assert unexpected(ValueError()).startswith("ValueError: no message\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "endeavour: no stage 'fly'; choose one of prepare, train, evaluate,"),
        (["train", "device=tpu"], "endeavour train: device=tpu is not known: choose auto, cpu,"),
        (["train", "training.max_updates"], "endeavour train: Error parsing override 'training.max_updates'"),
    ],
)
def test_the_real_command_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "endeavour", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) <= 2
