"""Measures what the cleaning steps find of the seven kinds of noise.

python tests/data/measure_noise.py make FOLDER [ENGLISH GERMAN]  writes FOLDER/noisy.en, noisy.de and kinds.txt, and
                                                                 the clean pairs alone; without files of the
                                                                 textbook, with validation and test
python tests/data/measure_noise.py steps FOLDER                  what each step without a model finds, alone and
                                                                 together
python tests/data/measure_noise.py kept FOLDER PAIRS …           what is left in TSV files, or in prepared folders
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from noise import CLEAN, KINDS, add_noise, cleaned

from endeavour.config import load_config
from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, TextCleaner
from endeavour.data.files import Pair
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.runs.config import RunConfig
from endeavour.textbook.generate import textbook_splits


def kept_by(config: CleaningConfig, noisy: Sequence[tuple[str, Pair]], tokenizer: Tokenizer) -> Counter[str]:
    """How many pairs of each kind the steps without a model leave."""
    lengths = LengthCleaner(config)
    pairs = cleaned(TextCleaner(config, HeldOut(), ("en", "de")), [pair for _, pair in noisy])
    sides = [[len(ids) for ids in tokenizer.encode(list(side))] for side in zip(*pairs, strict=True)]
    kept = [pair for pair, *counts in zip(pairs, *sides, strict=True) if lengths.keep(pair, *counts)]
    return kept_in(kept, noisy)


def single_steps(crawled: CleaningConfig) -> dict[str, CleaningConfig]:
    """For each step a config that has no other."""
    settings = crawled.crawled
    assert settings is not None
    switched_off = {
        key: False if isinstance(value, bool) else None
        for key, value in vars(settings).items()
        if key != "language_from_letters"
    }
    bare = replace(
        crawled, drop_duplicates=False, drop_overlap=False, crawled=None, max_tokens=10**9, max_ratio=math.inf
    )
    steps = {"drop_duplicates": replace(bare, drop_duplicates=True)}
    for key in switched_off:
        alone = replace(settings, **(switched_off | {key: getattr(settings, key)}))
        steps[key] = replace(bare, crawled=alone)
    return steps | {"max_ratio": replace(bare, max_ratio=crawled.max_ratio)}


def table(noisy: Sequence[tuple[str, Pair]], kept: dict[str, Counter[str]]) -> str:
    """Markdown: the share of each kind that is dropped, the precision of that, and how many clean pairs are lost."""
    all_of = Counter(kind for kind, _ in noisy)
    names = [kind.replace("_", " ") for kind in KINDS]
    lines = [
        f"| | {' | '.join(names)} | all noise | precision | clean |",
        f"| --- {'| ---: ' * (len(KINDS) + 3)}|",
    ]
    for name, left in kept.items():
        dropped = {kind: all_of[kind] - left[kind] for kind in (*KINDS, CLEAN)}
        wrong = sum(dropped[kind] for kind in KINDS)
        total = wrong + dropped[CLEAN]
        cells = [f"{dropped[kind] / all_of[kind]:.1%}" if dropped[kind] else "" for kind in KINDS]
        cells += [f"{wrong / (len(noisy) - all_of[CLEAN]):.1%}", f"{wrong / total:.1%}" if total else ""]
        cells += [f"{dropped[CLEAN] / all_of[CLEAN]:.2%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kept_in(pairs: Iterable[Pair], noisy: Sequence[tuple[str, Pair]]) -> Counter[str]:
    """How many of each kind are in `pairs`, which are in normal form; what occurs twice is the first of its kind."""
    left = Counter(pairs)
    kept = Counter[str]()
    for kind, (source, target) in noisy:
        pair = (normalize(source), normalize(target))
        if left[pair]:
            left[pair] -= 1
            kept[kind] += 1
    return kept


def make(folder: Path, files: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if files:
        pairs = list(zip(*(path.read_text("utf-8").split("\n")[:-1] for path in files), strict=True))
    else:
        splits = textbook_splits(seed=1, train_pairs=30_000)
        pairs = list(splits.pop("train"))
        for name, held_out in splits.items():
            write(folder / name, list(held_out))
    noisy = add_noise(pairs, seed=1)
    write(folder / "noisy", [pair for _, pair in noisy])
    write(folder / "clean", [pair for kind, pair in noisy if kind == CLEAN])
    (folder / "kinds.txt").write_text("".join(f"{kind}\n" for kind, _ in noisy))


def write(path: Path, pairs: Sequence[Pair]) -> None:
    for side, language in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        path.with_suffix(f".{language}").write_text(text, "utf-8", newline="\n")


def read(folder: Path) -> list[tuple[str, Pair]]:
    sides = ((folder / f"noisy.{language}").read_text("utf-8").split("\n")[:-1] for language in ("en", "de"))
    kinds = (folder / "kinds.txt").read_text("utf-8").split()
    return list(zip(kinds, zip(*sides, strict=True), strict=True))


def read_kept(path: Path) -> Iterable[Pair]:
    if path.is_dir():
        from endeavour.data.tables import read_tables

        return (pair for batch in read_tables(path / "text" / "train") for pair in batch)
    lines = path.read_text("utf-8").split("\n")[1:-1]
    return ((english, german) for english, german, *_ in (line.split("\t") for line in lines))


def main(command: str, folder: Path, *files: Path) -> None:
    if command == "make":
        make(folder, files)
        return
    noisy = read(folder)
    if command == "steps":
        default, crawled = (
            load_config("train", RunConfig, [f"cleaning={name}"]) for name in ("default", "crawled")
        )
        steps = single_steps(crawled.cleaning)
        steps |= {"cleaning=default": default.cleaning, "**cleaning=crawled**": crawled.cleaning}
        tokenizer = train_tokenizer((text for _, pair in noisy for text in pair), default.tokenizer)
        print(table(noisy, {name: kept_by(config, noisy, tokenizer) for name, config in steps.items()}))
    else:
        print(table(noisy, {file.name: kept_in(read_kept(file), noisy) for file in files}))


if __name__ == "__main__":
    main(sys.argv[1], *(Path(argument) for argument in sys.argv[2:]))
