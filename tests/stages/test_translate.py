"""`translate` survives any line: one line out for each line in, whatever it holds and however long it is."""

import gzip
import io
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from endeavour.stages import translate as stage
from hypothesis import given, settings
from hypothesis import strategies as st

from endeavour.config import load_config
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import write_model

CONFIG = load_config(
    [
        "tokenizer.vocabulary_size=300",
        "model.width=8",
        "model.num_heads=2",
        "model.feed_forward=8",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "decoding.beam_size=2",
        "decoding.num_hypotheses=2",
        "decoding.max_length_ratio=0",
        "decoding.max_length_offset=3",
        "name=run",
        "device=cpu",
    ]
)
TOKENIZER = Tokenizer.train([f"Satz {i} hat Worte wie {i * 7}. Ja!" for i in range(300)], CONFIG.tokenizer)
torch.manual_seed(0)
MODEL = Transformer(
    CONFIG.model,
    source_vocabulary=TOKENIZER.vocabulary_size,
    target_vocabulary=TOKENIZER.vocabulary_size,
).eval()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with an untrained model."""
    from endeavour.saved_config import save_config

    folder = tmp_path_factory.mktemp("outputs") / "run"
    folder.mkdir()
    save_config(CONFIG, folder / "config.yaml")
    with atomic_folder(folder / "model") as partial:
        write_model(partial, MODEL, (TOKENIZER, TOKENIZER))
    return folder


def translated(run: Path, content: bytes, folder: Path, *, file: bool) -> bytes:
    """What the stage makes of some bytes, read from a file or from standard input."""
    (folder / "in").write_bytes(content)
    read = str(folder / "in") if file else None
    greedy = replace(CONFIG.decoding, beam_size=1, num_hypotheses=1)
    config = replace(
        CONFIG, output_folder=str(run.parent), input=read, output=str(folder / "out"), decoding=greedy
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["endeavour", "name=run", "decoding=greedy"])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
        stage.translate(config)
    return (folder / "out").read_bytes()


@settings(max_examples=25)
@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_come_in_and_as_many_lines_go_out(
    run: Path, tmp_path_factory: pytest.TempPathFactory, content: bytes, file: bool
) -> None:
    out = translated(run, content, tmp_path_factory.mktemp("bytes"), file=file)
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert out.count(b"\n") == lines
    assert out == b"" or out.endswith(b"\n")


def test_a_line_of_100_000_characters_is_translated_in_parts(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = b"Ja.\n" + b"Worte wie diese " * 6_250 + b"\n" + b"\xff" * 2_000 + b"\nJa.\n"
    out = translated(run, content, tmp_path, file=True).decode().splitlines()
    assert len(out) == 4
    assert out[0] == out[3]
    assert "note: 2 lines of more than 512 tokens translated in parts" in capsys.readouterr().err


def test_what_is_no_utf8_is_noted_once(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = "A character of its own: \ufffd.\n".encode()
    replaced = translated(run, there + "Ja.\nS\ufffdtze\nS\ufffdtze\n".encode(), tmp_path, file=True)
    assert "note" not in capsys.readouterr().err
    broken = there + "Ja.\nSätze\nSätze\n".encode("latin-1")
    assert translated(run, broken, tmp_path, file=True) == replaced
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]
    assert notes == ["note: line 3 is no valid UTF-8 (read as \ufffd); others are not noted"]
    translated(run, "Ja.\nSätze\n".encode(), tmp_path, file=True)
    assert "note" not in capsys.readouterr().err


def test_a_gzip_file_is_decompressed_and_a_damaged_one_named(run: Path, tmp_path: Path) -> None:
    content = b"Ja.\nSatz 7 hat Worte.\n" * 20
    plain = translated(run, content, tmp_path, file=True)
    packed = tmp_path / "in.gz"
    config = replace(CONFIG, output_folder=str(run.parent), input=str(packed), output=str(tmp_path / "out"))
    config.decoding = replace(CONFIG.decoding, beam_size=1, num_hypotheses=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["endeavour", "name=run", "decoding=greedy"])
        packed.write_bytes(gzip.compress(content))
        stage.translate(config)
        assert (tmp_path / "out").read_bytes() == plain
        for damaged in (gzip.compress(content)[:-12], content):
            packed.write_bytes(damaged)
            with pytest.raises(UserError, match=r"in\.gz: damaged gzip"):
                stage.translate(config)


def test_a_home_folder_is_one_in_the_names_of_input_and_output(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["endeavour", "name=run"])
    (tmp_path / "in").write_text("Ja.\n", "utf-8")
    config = replace(CONFIG, output_folder=str(run.parent), input="~/in", output="~/out")
    stage.translate(config)
    assert (tmp_path / "out").read_text("utf-8").count("\n") > 0
    with pytest.raises(UserError, match="is the input itself"):
        stage.translate(replace(config, output="~/in"))


def test_what_a_line_holds_beyond_the_limit_is_left_out(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "LONGEST_LINE", 10)
    content = b"Ja.\n" + b"Satz hat 7" + b" Worte" * 9 + b"\n0123456789\nJa.\n" + b"Satz hat 7 "
    out = translated(run, content, tmp_path, file=True).decode().splitlines()
    assert len(out) == 5
    assert out[1] == out[4]
    assert out[0] == out[3]
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]
    assert notes == [f"note: line {number} is cut after 10 characters" for number in (2, 5)]


def test_neither_the_input_nor_an_earlier_output_is_lost_to_a_mistake(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.write_text("Ja!\n", "utf-8")
    (tmp_path / "link").symlink_to(text)
    mistakes = {
        "is the input itself": {"output": str(tmp_path / "link"), "input": str(text)},
        "no ensemble|holds no trained model": {"output": str(text), "text": "Ja!", "ensemble": "other"},
        "decoding.engine=ctranslate2 needs": {
            "output": str(text),
            "text": "Ja!",
            "decoding": replace(CONFIG.decoding, engine="ctranslate2"),
        },
    }
    monkeypatch.setattr(sys, "argv", ["endeavour", "name=run", "decoding=beam"])
    for message, changes in mistakes.items():
        with pytest.raises(UserError, match=message):
            stage.translate(replace(CONFIG, output_folder=str(run.parent), **changes))
        assert text.read_text("utf-8") == "Ja!\n"
    piped = replace(CONFIG, output_folder=str(run.parent), output=str(tmp_path / "link"))
    with text.open(encoding="utf-8") as opened, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", opened)
        with pytest.raises(UserError, match="is the input itself"):
            stage.translate(piped)
    assert text.read_text("utf-8") == "Ja!\n"


@pytest.mark.parametrize(
    ("typed_in", "to_screen", "bar"),
    [(True, True, False), (True, False, False), (False, True, False), (False, False, True)],
)
def test_no_bar_stands_where_text_is_typed_or_translations_appear(
    typed_in: bool, to_screen: bool, bar: bool, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Typed(io.TextIOWrapper):
        def isatty(self) -> bool:
            return typed_in

    errors, output = Screen(), Screen() if to_screen else io.StringIO()
    monkeypatch.setattr(sys, "argv", ["endeavour", "name=run", "decoding=greedy"])
    monkeypatch.setattr(sys, "stdin", Typed(io.BytesIO(b"Ja!\nJa!\n"), encoding="ascii"))
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    stage.translate(replace(CONFIG, output_folder=str(run.parent)))
    assert output.getvalue().count("\n") == 4  # two hypotheses of each
    assert ("translating" in errors.getvalue()) == bar
    assert ("\x1b" in errors.getvalue()) == bar


def test_the_export_that_is_missing_is_made_by_the_command_that_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = [f"output_folder={run.parent}", "data_folder=my data", "name=run", "decoding.engine=ctranslate2"]
    monkeypatch.setattr(sys, "argv", ["endeavour", *typed])
    decoding = replace(CONFIG.decoding, engine="ctranslate2")
    with pytest.raises(UserError) as caught:
        stage.translate(replace(CONFIG, output_folder=str(run.parent), text="Ja!", decoding=decoding))
    command = shlex.split(str(caught.value).split("`")[1])
    assert command[:2] == ["endeavour", "export"]
    assert {*typed[:3]} <= set(command)
