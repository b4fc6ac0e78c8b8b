"""`translate` survives any line: one line out for each line in, whatever it holds and however long it is."""

import gzip
import io
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from endeavour.config import load_config
from endeavour.data.tokenizer import Tokenizer
from endeavour.decoding.beam_search import Hypothesis
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.stages import translate as stage
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


def translator(**changes: int) -> Translator:
    return Translator(PyTorchEngine(MODEL, CONFIG.decoding), (TOKENIZER, TOKENIZER), **changes)


LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.text(st.characters(), max_size=10),  # lone surrogates too
        st.text("\x00\u202e\u200b\ufeff\r\x0b\u2028\u0308 ", max_size=8),
        st.integers(1, 60).map(lambda count: "Worte wie diese. " * count),
    ),
    max_size=6,
)


@settings(max_examples=50)
@given(LINES, st.integers(1, 4), st.integers(2, 40))
def test_one_line_for_each_line(lines: list[str], window: int, longest: int) -> None:
    found = list(translator(window=window, longest=longest).translate(lines))
    assert len(found) == len(lines)
    assert all(len((text + "x").splitlines()) == 1 for text in found)


@settings(max_examples=30)
@given(st.integers(2, 30), st.lists(st.sampled_from(["Satz", "hat", "Ja!", "x" * 50, "7."]), max_size=60))
def test_parts_are_the_whole_and_none_is_too_long(longest: int, words: list[str]) -> None:
    (ids,) = TOKENIZER.encode([" ".join(words)])
    parts = translator(longest=longest)._parts(ids)
    assert [number for part in parts for number in part] == ids
    assert all(len(part) < longest for part in parts)


def test_a_long_line_is_cut_after_sentences_and_all_of_it_translated() -> None:
    one = translator(longest=20)
    sentence = "Satz 7 hat Worte wie 49."
    (ids,) = TOKENIZER.encode([sentence])
    assert len(ids) < 20
    long = " ".join([sentence] * 9)
    whole = next(iter(one.translate_n_best([long])))
    assert one.in_parts == 1
    apart = next(iter(translator().translate_n_best([sentence])))
    assert [TOKENIZER.decode([part])[0][-1] for part in one._parts(TOKENIZER.encode([long])[0])] == ["."] * 9
    assert whole[0].text == " ".join([apart[0].text] * 9).strip()
    assert whole[0].score == pytest.approx(apart[0].score, rel=1e-4)
    assert len(whole) == 2


class Repeating:
    """An engine that finds the same for every source."""

    longest: int | None = None

    def __init__(self, found: dict[str, float]) -> None:
        self.sources = 0
        self.found = [
            Hypothesis(ids, value, value)
            for ids, value in zip(TOKENIZER.encode(list(found)), found.values(), strict=True)
        ]

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        self.sources += len(sources)
        return [self.found for _ in sources]


PROBABLE, LIKE = "Nein, das ist anders.", "Satz 7 hat Worte wie 49."
FOUND = {PROBABLE: -1.0, LIKE: -1.1, "Satz 7 hat Worte wie 4.": -1.2, "Satz 7 hatte Worte wie 49.": -1.2}


@pytest.mark.parametrize("utility", ["bleu", "chrf"])
def test_with_a_utility_the_line_most_like_the_others_comes_first(utility: str) -> None:
    def lines(**changes: object) -> list[str]:
        decoding = replace(CONFIG.decoding, **changes)
        chooser = Translator(Repeating(FOUND), (TOKENIZER, TOKENIZER), decoding=decoding, longest=20)
        return list(chooser.translate(["Ja!", "", " ".join(["Satz 7 hat Worte wie 49."] * 2)]))

    assert lines() == [PROBABLE, "", f"{PROBABLE} {PROBABLE}"]
    assert lines(utility=utility) == [LIKE, "", f"{LIKE} {LIKE}"]


def test_candidates_count_by_their_scores() -> None:
    for found, best in ((FOUND, LIKE), ({**FOUND, PROBABLE: -0.01, LIKE: -9.0}, PROBABLE)):
        decoding = replace(CONFIG.decoding, utility="chrf")
        chooser = Translator(Repeating(found), (TOKENIZER, TOKENIZER), decoding=decoding)
        (ranked,) = chooser.translate_n_best(["Ja!"])
        assert ranked[0].text == best
        assert len(ranked) == 4
        assert all(0 < translation.score <= 100 for translation in ranked)


def test_what_was_drawn_counts_as_often_as_it_was_drawn_whatever_its_score() -> None:
    found = {**FOUND, PROBABLE: -0.01, LIKE: -9.0}  # searched for, the probable one wins
    decoding = load_config(["decoding=sample", "decoding.num_hypotheses=4", "decoding.utility=chrf"]).decoding
    chooser = Translator(Repeating(found), (TOKENIZER, TOKENIZER), decoding=decoding)
    (ranked,) = chooser.translate_n_best(["Ja!"])
    assert ranked[0].text == LIKE


def test_with_a_utility_fewer_lines_are_searched_before_the_first_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from endeavour.decoding import translator as module

    monkeypatch.setattr(module, "CANDIDATES_WINDOW", 2)
    for utility, searched in ((None, 5), ("chrf", 2)):
        engine = Repeating(FOUND)
        decoding = replace(CONFIG.decoding, utility=utility)
        next(Translator(engine, (TOKENIZER, TOKENIZER), window=5, decoding=decoding).translate(["Ja!"] * 9))
        assert engine.sources == searched


def test_a_batch_that_does_not_fit_into_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(PyTorchEngine, "_search_batch", full)
    with pytest.raises(UserError, match=r"decoding 1 sentences of \d+ tokens: lower decoding\.tokens_per_b"):
        list(translator().translate(["Worte wie diese."]))


def test_a_line_longer_than_the_engine_takes_is_cut_to_fit() -> None:
    engine = Repeating(FOUND)
    engine.longest = 20
    one = Translator(engine, (TOKENIZER, TOKENIZER))
    sentence = "Satz 7 hat Worte wie 49."
    assert list(one.translate([" ".join([sentence] * 3)])) == [" ".join([PROBABLE] * 3)]
    assert engine.sources == 3
    assert one.whole(sentence, sentence)
    assert not one.whole(sentence, " ".join([sentence] * 3))


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
