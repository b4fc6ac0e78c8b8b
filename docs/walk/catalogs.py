"""Makes a parallel corpus of the message catalogs of programs: what their menus, messages and games say.

python docs/walk/catalogs.py FOLDER … --output FOLDER

Reads every `de/LC_MESSAGES/*.mo` below the folders and writes train, validation and test, each `.en` and `.de`. Needs
polib (pip install polib).
"""

import argparse
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import polib

Pair = tuple[str, str]
HELD_OUT = 1500  # pairs each of validation and test
FEWEST_WORDS = 4  # shorter messages are labels, whose translation depends on where they stand
# Before the letter that a menu underlines: _File, &Datei. Not the &lt; of markup, nor what is inside a name.
ACCELERATOR = re.compile(r"(?<!\w)[_&](?=\w)(?!\w+;)")


def messages(catalog: Path) -> Iterator[Pair]:
    """Each message with its translation, the plural as another one; paragraphs that correspond apart."""
    for entry in polib.mofile(str(catalog)):
        pairs = [(entry.msgid, entry.msgstr)]
        if entry.msgid_plural:
            pairs = [(entry.msgid, entry.msgstr_plural[0]), (entry.msgid_plural, entry.msgstr_plural[1])]
        for english, german in pairs:
            sides = [re.split(r"\n\s*\n", text.strip()) for text in (english, german)]
            if len(sides[0]) != len(sides[1]):
                sides = [[english], [german]]
            yield from (without_accelerators(*pair) for pair in zip(*sides, strict=True))


def without_accelerators(english: str, german: str) -> Pair:
    """Both sides on one line, and without the mark of the letter that opens them in a menu."""
    english, german = " ".join(english.split()), " ".join(german.split())
    for mark in "_&":
        if english.count(mark) == german.count(mark) == 1 and ACCELERATOR.search(english):
            english, german = english.replace(mark, ""), german.replace(mark, "")
    return english, german


def is_sentence(pair: Pair) -> bool:
    english, german = pair
    return bool(german) and len(re.findall(r"[A-Za-z]{2,}", english)) >= FEWEST_WORDS and len(english) <= 400


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    catalogs = sorted(path for folder in arguments.folders for path in folder.rglob("de/LC_MESSAGES/*.mo"))
    # One translation of each English message: the first. Their order no longer tells from which program they are.
    translations = dict(
        reversed([pair for catalog in catalogs for pair in messages(catalog) if is_sentence(pair)])
    )
    pairs = sorted(translations.items(), key=lambda pair: digest(pair[0]))
    arguments.output.mkdir(parents=True, exist_ok=True)
    splits = {
        "validation": pairs[:HELD_OUT],
        "test": pairs[HELD_OUT : 2 * HELD_OUT],
        "train": pairs[2 * HELD_OUT :],
    }
    for split, part in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (arguments.output / f"{split}.{language}").write_text(text, "utf-8", newline="\n")
        print(f"{split}: {len(part):,} pairs of {len(catalogs)} catalogs")


if __name__ == "__main__":
    main()
