"""`pictures` draws a run's story of a sentence of its own, or of the user's."""

from pathlib import Path

import pytest

from commands import endeavour, write_lines
from endeavour.commands import pictures as module
from endeavour.commands.pictures import PicturesRoot, pictures
from endeavour.config import load_config
from endeavour.runs.run import Run
from endeavour.storage import write_json
from served import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = small_run(tmp_path_factory.mktemp("outputs"), "run")
    evaluated(run, "empty", ["", "", "", ""], ["", "", "", ""])  # before the other by name, and longer
    sources = ["Ja!", "", "Satz 7 hat Worte wie 49."]
    evaluated(run, "test", sources, ["Ja!", "Nein.", "Worte hat Satz 7 wie 49."])
    return run


def evaluated(run: Run, test_set: str, *columns: list[str]) -> None:
    folder = run.folder / "evaluation" / f"{test_set}-beam"
    folder.mkdir(parents=True)
    for name, lines in zip(("sources", "references"), columns, strict=True):
        write_lines(folder / f"{name}.txt", lines)
    write_json(folder / "scores.json", {"decoding": {}, "model": {"test_set": test_set}})


def asked(run: Run, *more: str) -> list[Path]:
    return pictures(load_config("pictures", PicturesRoot, [f"output_folder={run.root}", "run=run", *more]))


def test_the_pictures_lie_in_the_runs_folder(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = asked(run)
    assert len(drawn) > 8
    assert all(path.parent == run.folder / "pictures" and path.stat().st_size > 1000 for path in drawn)
    assert "Satz 7 hat Worte wie 49." in capsys.readouterr().err, "a sentence that is long enough"


def test_heads_are_measured_over_a_test_split_or_the_longest_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[list[tuple[str, str]]] = []
    monkeypatch.setattr(module, "draw_story", lambda *_, pairs: measured.append(pairs) or [])
    run = small_run(tmp_path, "run")
    # Of the textbook, whose test split is the last.
    for name, count in {
        "b": 2,
        "c": 5,
        "a": 2,
        "validation": 2,
        "test_unseen.typos": 9,
        "test_unseen": 1,
    }.items():
        evaluated(run, name, ["Satz 7"] * count, [name] * count)
        asked(run)
    assert [pairs[0][1] for pairs in measured] == ["b", "c", "c", "validation", "validation", "test_unseen"]


def test_of_ones_own_sentence_elsewhere(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = asked(run, "text='Satz 3'", "translation='Worte wie 3'", f"output={tmp_path / 'there'}")
    assert {path.parent for path in drawn} == {tmp_path / "there"}
    assert "“Satz 3” → “Worte wie 3”" in capsys.readouterr().err
    drawn = asked(run, "text='Satz 3'", "translation=''", f"output={tmp_path / 'empty'}")
    assert len(drawn) > 8
    assert "“Satz 3” → “”" in capsys.readouterr().err


def test_without_two_whole_words_there_is_no_picture_of_embeddings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.png").touch()
    earlier = asked(run, f"output={tmp_path}")
    drawn = asked(run, "text=a", "translation=7", f"output={tmp_path}")
    assert {path.stem for path in earlier} - {path.stem for path in drawn} == {"embedding"}
    assert {*tmp_path.iterdir()} == {*drawn, tmp_path / "mine.png"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run=run other"], "one run"),
        (["run=run", "translation=x"], "text="),
        (["run=run", "text="], "text=… is empty"),
        (["run=run", "text= ", "translation=x"], "text=… is empty"),
        (["run=run", f"text='{'Satz ' * 70}'"], "pieces a side"),
        (["run=other"], "evaluate"),
    ],
)
def test_what_cannot_be_drawn(
    run: Run, words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Run(run.root, "other").has_config:
        small_run(run.root, "other")
    assert endeavour("pictures", f"output_folder={run.root}", *words) == 2
    said = capsys.readouterr().err
    assert named in said
    assert "Learn" not in said
