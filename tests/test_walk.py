"""The corpus of message catalogs: which messages become pairs, and that all splits are different and stable."""

import sys
from pathlib import Path

import polib
import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "walk"


@pytest.fixture
def catalogs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import catalogs as module

    yield module
    del sys.modules["catalogs"]


def catalog(path: Path, *entries: polib.POEntry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = polib.MOFile()
    file.metadata = {"Content-Type": "text/plain; charset=utf-8"}
    file.extend(entries)
    file.save(str(path))


def message(english: str, german: str) -> polib.POEntry:
    return polib.POEntry(msgid=english, msgstr=german)


def test_messages_become_pairs(tmp_path: Path, catalogs) -> None:
    path = tmp_path / "x.mo"
    plural = polib.POEntry(
        msgid="You have %d new message",
        msgid_plural="You have %d new messages",
        msgstr_plural={0: "Sie haben %d neue Nachricht", 1: "Sie haben %d neue Nachrichten"},
    )
    catalog(
        path,
        message("First paragraph,\nof two lines.\n\nSecond one.", "Erster Absatz.\n \nZweiter."),
        message("One paragraph.\n\nAnother.", "Nur einer."),
        plural,
    )
    assert set(catalogs.messages(path)) == {
        ("First paragraph, of two lines.", "Erster Absatz."),
        ("Second one.", "Zweiter."),
        ("One paragraph. Another.", "Nur einer."),
        ("You have %d new message", "Sie haben %d neue Nachricht"),
        ("You have %d new messages", "Sie haben %d neue Nachrichten"),
    }


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("Save the file _as", "Datei speichern _unter"), ("Save the file as", "Datei speichern unter")),
        (("&Open this file", "Datei ö&ffnen"), ("Open this file", "Datei öffnen")),
        (("Set the file_name here", "Den file_name setzen"), None),
        (("Set <b>&lt;x</b> here", "Hier <b>&lt;x</b>"), None),
        (("Copy _this and _that", "_Beides kopieren"), None),
    ],
)
def test_accelerators(pair: tuple[str, str], expected: tuple[str, str] | None, catalogs) -> None:
    assert catalogs.without_accelerators(*pair) == (expected or pair)


def test_splits(tmp_path: Path, catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "usr" / "locale" / "de" / "LC_MESSAGES"
    entries = [message(f"The file number {i} is missing", f"Die Datei {i} fehlt") for i in range(20)]
    catalog(folder / "a.mo", *entries, message("Too short", "Zu kurz"))
    catalog(folder / "b.mo", message("The file number 3 is missing", "Datei 3 ist weg"))
    monkeypatch.setattr(catalogs, "HELD_OUT", 4)
    monkeypatch.setattr(
        sys, "argv", ["catalogs.py", str(tmp_path / "usr"), "--output", str(tmp_path / "out")]
    )
    catalogs.main()

    def pairs(split: str) -> list[tuple[str, str]]:
        sides = (
            (tmp_path / "out" / f"{split}.{side}").read_text("utf-8").splitlines() for side in ("en", "de")
        )
        return list(zip(*sides, strict=True))

    assert [len(pairs(split)) for split in ("train", "validation", "test")] == [12, 4, 4]
    every = pairs("train") + pairs("validation") + pairs("test")
    assert sorted(every) == sorted(
        (entry.msgid, entry.msgstr) for entry in entries
    )  # of two translations the first
