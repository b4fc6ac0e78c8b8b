"""`translate` survives any line: one line out for each line in, whatever it holds and however long it is."""

import gzip
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import endeavour
from configs import run_config
from endeavour.commands import translate as module
from endeavour.commands.translate import TranslateRoot, translate
from endeavour.config import load_config
from endeavour.errors import UserError
from endeavour.runs.run import Run
from untrained import TINIEST, small_tokenizers, untrained_run

SHORT = ["decoding=greedy", "decoding.max_length_ratio=0", "decoding.max_length_offset=3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("outputs")
    config = run_config([*TINIEST, *SHORT, "name=run", f"output_folder={folder}"])
    return untrained_run(config, small_tokenizers(config))


def asked(run: Run, *more: object) -> TranslateRoot:
    overrides = ["run=run", f"output_folder={run.root}", "device=cpu", *map(str, more)]
    return load_config("translate", TranslateRoot, overrides)


@contextmanager
def standard_input(content: bytes) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
        yield


def translated(run: Run, content: bytes, folder: Path, *, name: str = "in", file: bool = True) -> bytes:
    """What becomes of some bytes, read from a file or from standard input."""
    (folder / name).write_bytes(content)
    read = [f"input={folder / name}"] if file else []
    with standard_input(content):
        translate(asked(run, *read, f"output={folder / 'out'}"))
    return (folder / "out").read_bytes()


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]


@settings(max_examples=25)
@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_come_in_and_as_many_lines_go_out(
    run: Run, tmp_path_factory: pytest.TempPathFactory, content: bytes, file: bool
) -> None:
    out = translated(run, content, tmp_path_factory.mktemp("bytes"), file=file)
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert out.count(b"\n") == lines
    assert out == b"" or out.endswith(b"\n")


def test_a_line_of_100_000_characters_is_translated_in_parts(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = b"Ja.\n" + b"Worte wie diese " * 6_250 + b"\n" + b"\xff" * 2_000 + b"\nJa.\n"
    out = translated(run, content, tmp_path).decode().splitlines()
    assert len(out) == 4
    assert out[0] == out[3]
    assert any("2 lines" in note and "512" in note for note in notes(capsys))


@pytest.mark.parametrize("text", ["???", "${run}", "a, [b]: {c}"])
def test_any_text_is_text_on_the_command_line(
    text: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("translate", "run=run", f"output_folder={run.root}", "device=cpu", f"text={text}") == 0
    assert capsys.readouterr().out.encode() == translated(run, text.encode() + b"\n", tmp_path)


def test_text_that_is_not_utf8_is_noted_once(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = "A character of its own: \ufffd.\n".encode()
    replaced = translated(run, there + "Ja.\nS\ufffdtze\nS\ufffdtze\n".encode(), tmp_path)
    assert not notes(capsys)
    assert translated(run, there + "Ja.\nSätze\nSätze\n".encode("latin-1"), tmp_path) == replaced
    (note,) = notes(capsys)
    assert "line 3" in note


@pytest.mark.parametrize("space", ["\t", "\r", "\v", "\f", "\x85", "\u2028"], ids=ascii)
def test_what_stands_between_sentences_breaks_neither_lines_nor_columns(
    space: str, run: Run, tmp_path: Path
) -> None:
    plain = translated(run, b"Ja!  Satz 7 hat Worte.\n", tmp_path)
    assert b"  " in plain
    assert translated(run, f"Ja! {space}Satz 7 hat Worte.\n".encode(), tmp_path) == plain


def test_a_gzip_file_is_decompressed_and_a_damaged_one_named(run: Run, tmp_path: Path) -> None:
    content = b"Ja.\nSatz 7 hat Worte.\n" * 20
    plain = translated(run, content, tmp_path)
    assert translated(run, gzip.compress(content), tmp_path, name="in.gz") == plain
    for damaged in (gzip.compress(content)[:-12], content):
        with pytest.raises(UserError, match=r"in\.gz: damaged gzip"):
            translated(run, damaged, tmp_path, name="in.gz")


def test_what_a_line_holds_beyond_the_limit_is_left_out(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 10)
    content = b"Ja.\n" + b"Satz hat 7" + b" Worte" * 9 + b"\n0123456789\nJa.\n" + b"Satz hat 7 "
    out = translated(run, content, tmp_path).decode().splitlines()
    assert len(out) == 5
    assert out[1] == out[4]
    assert out[0] == out[3]
    assert [note.split()[2] for note in notes(capsys)] == ["2", "5"]


def test_a_home_folder_is_one_in_the_names_of_input_and_output(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in").write_text("Ja.\n", "utf-8")
    translate(asked(run, "input='~/in'", "output='~/out'"))
    assert (tmp_path / "out").read_text("utf-8").count("\n") == 1
    with pytest.raises(UserError, match="is the input itself"):
        translate(asked(run, "input='~/in'", "output='~/in'"))


def test_a_dash_is_standard_input_and_output(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with standard_input(b"Ja.\nNein.\n"):
        translate(asked(run, "input=-", "output=-"))
    assert capsys.readouterr().out.count("\n") == 2
    assert not [*tmp_path.iterdir()]


def test_neither_the_input_nor_an_earlier_output_is_lost_to_a_mistake(run: Run, tmp_path: Path) -> None:
    text, link = tmp_path / "text", tmp_path / "link"
    text.write_text("Ja!\n", "utf-8")
    link.symlink_to(text)
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(b"Ja!\n")
    mistakes = {
        "is the input itself": [f"output={link}", f"input={text}"],
        "two inputs": [f"output={text}", f"input={text}", "text=Ja"],
        "ctranslate2 needs": [f"output={text}", "text=Ja", "decoding.engine=ctranslate2"],
        "damaged gzip": [f"output={text}", f"input={damaged}"],
    }
    for message, overrides in mistakes.items():
        with pytest.raises(UserError, match=message):
            translate(asked(run, *overrides))
    with text.open(encoding="utf-8") as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", opened)
        with pytest.raises(UserError, match="is the input itself"):
            translate(asked(run, f"output={link}"))
    assert text.read_text("utf-8") == "Ja!\n"


@pytest.mark.parametrize(
    ("typed_in", "to_screen", "bar"),
    [(True, True, False), (True, False, False), (False, True, False), (False, False, True)],
)
def test_no_bar_stands_where_text_is_typed_or_translations_appear(
    typed_in: bool, to_screen: bool, bar: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Typed(io.TextIOWrapper):
        def isatty(self) -> bool:
            return typed_in

    errors, output = Screen(), Screen() if to_screen else io.StringIO()
    config = asked(run)
    monkeypatch.setattr(sys, "stdin", Typed(io.BytesIO(b"Ja!\nJa!\n"), encoding="ascii"))
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    translate(config)
    assert output.getvalue().count("\n") == 2
    assert ("translating" in errors.getvalue()) == bar
    assert ("\x1b" in errors.getvalue()) == bar


def test_samples_are_drawn_by_seed_and_the_n_best_are_numbered(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["translate", "run=run", f"output_folder={run.root}", "device=cpu", "text=Satz 7, 'hat' Worte"]

    def drawn(*more: str) -> list[str]:
        sample = ["decoding=sample", "decoding.num_hypotheses=5", "decoding.max_length_ratio=1"]
        assert endeavour(*command, *sample, *more) == 0
        return capsys.readouterr().out.splitlines()

    first = drawn()
    assert len({line.split("\t")[2] for line in first}) > 1
    assert {line.split("\t")[0] for line in first} == {"1"}
    assert drawn() == first
    assert drawn("decoding.seed=2") != first
    assert drawn("decoding.top_k=1") == [drawn("decoding.top_k=1")[0]] * 5
    assert len(drawn("decoding.utility=chrf")) == 1


def test_log_probabilities_and_alignments_are_columns(run: Run, tmp_path: Path) -> None:
    lines = "Satz 1 hat Worte.\n\n" + "Ja! " * 300 + "\n"
    (tmp_path / "in").write_text(lines, "utf-8")

    def columns(*more: str) -> list[list[str]]:
        output = tmp_path / "out"
        translate(asked(run, f"input={tmp_path / 'in'}", f"output={output}", *more))
        return [line.split("\t") for line in output.read_text("utf-8").splitlines()]

    texts = [row for (row,) in columns()]
    found = columns("log_probabilities=true", "alignments=true")
    assert [text for _, text, _ in found] == texts
    assert float(found[0][0]) < 0.0
    assert found[1] == ["0.0000", "", ""]
    for line, (_, text, alignment) in zip(lines.splitlines(), found, strict=True):
        pairs = [pair.split("-") for pair in alignment.split()]
        assert [int(word) for _, word in pairs] == list(range(len(text.split())))
        assert all(0 <= int(word) < len(line.split()) for word, _ in pairs)
    assert max(int(pair.split("-")[0]) for pair in found[2][2].split()) > 100, "the second part counts on"
    best = columns("decoding.beam_size=2", "decoding.num_hypotheses=2", "log_probabilities=true")
    assert [row[0] for row in best] == ["1", "1", "2", "3", "3"]
    assert all(len(row) == 4 for row in best)
    assert float(best[0][2]) >= float(best[1][2])


def test_the_garbage_collector_rests_while_torch_is_imported_and_no_longer() -> None:
    code = """
import gc, sys
from endeavour.commands import translate
before = "torch" in sys.modules
translate._import_torch()
print(before, "torch" in sys.modules, gc.isenabled(), gc.get_freeze_count() > 100_000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True True True\n"
