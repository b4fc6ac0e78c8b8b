"""Makes a clean corpus noisy, in seven ways that crawled text is, and measures what the cleaning steps find of it.

    python tests/data/noise.py make FOLDER ENGLISH GERMAN    writes FOLDER/noisy.en, noisy.de and kinds.txt
    python tests/data/noise.py steps FOLDER                  what each step without a model finds, alone and together
    python tests/data/noise.py kept FOLDER PAIRS             what is left in a TSV file, or in a prepared folder

Every third pair gives its place to a noisy one, so that to the clean ones half as many are added; each kind has a
seventh of them. What is wrong is made from the pair that it replaces, which is so in the corpus no more, but a
near-duplicate from a pair before it. Text that is in no corpus is made here.
"""

import math
import random
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from endeavour.config import load_config
from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, TextCleaner
from endeavour.data.files import Pair
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer
from endeavour.runs.config import RunConfig

CLEAN = "clean"
# Subjects, predicates and places that go together freely.
FOREIGN = {
    "French": (
        "Un homme|Une femme|Le vieux pêcheur|Ma petite sœur|Notre voisin|La jeune fille",
        "attend|dort|travaille beaucoup|lit un livre|mange une pomme|parle avec un ami",
        "devant la gare|dans le jardin|au bord de la rivière|près de l'école|sous un grand arbre|à la maison",
    ),
    "Dutch": (
        "Een man|Een vrouw|De oude visser|Mijn kleine zusje|Onze buurman|Het jonge meisje",
        "wacht|slaapt|werkt hard|leest een boek|eet een appel|praat met een vriend",
        "voor het station|in de tuin|aan de oever|naast de school|onder een grote boom|bij ons thuis",
    ),
    "Spanish": (
        "Un hombre|Una mujer|El viejo pescador|Mi hermana pequeña|Nuestro vecino|La chica joven",
        "espera|duerme|trabaja mucho|lee un libro|come una manzana|habla con un amigo",
        "delante de la estación|en el jardín|junto al río|cerca de la escuela|bajo un árbol grande|en casa",
    ),
    "Polish": (
        "Mężczyzna|Kobieta|Stary rybak|Moja młodsza siostra|Nasz sąsiad|Młoda dziewczyna",
        "czeka|śpi|ciężko pracuje|czyta książkę|je jabłko|rozmawia z przyjacielem",
        "przed dworcem|w ogrodzie|nad rzeką|obok szkoły|pod dużym drzewem|w domu",
    ),
}
NAMES = ("Ada Hohlfeld", "Ben Carver", "Cleo Winter", "Dorian Marsh", "Edda Lindner", "Finn Archer")
SITES = ("example.org", "shop.example.com", "blog.example.net")
BOILERPLATE = (
    ("Click here to read more.", "Klicken Sie hier, um mehr zu lesen."),
    ("All rights reserved. © {year} {name}", "Alle Rechte vorbehalten. © {year} {name}"),
    ("This website uses cookies. By visiting it you accept our privacy policy.",
     "Diese Website verwendet Cookies. Mit Ihrem Besuch akzeptieren Sie unsere Datenschutzerklärung."),
    ("Posted by {name} on {n}/5/{year} | {n} comments", "Geschrieben von {name} am {n}.5.{year} | {n} Kommentare"),
    ("Home | News | Products | Contact | Imprint", "Start | Neues | Produkte | Kontakt | Impressum"),
    ('<a href="https://www.{site}/page{n}">Back to top</a>', '<a href="https://www.{site}/page{n}">Nach oben</a>'),
    ("Showing {n} of {year} results", "Zeige {n} von {year} Ergebnissen"),
    ("Download brochure_{n}.pdf (PDF, {n} kB)", "Prospekt brochure_{n}.pdf herunterladen (PDF, {n} kB)"),
    ("Sign in to your account to write a review.", "Melden Sie sich an, um eine Bewertung zu schreiben."),
    ("Only {n} left in stock – order now!", "Nur noch {n} auf Lager – jetzt bestellen!"),
    ("Share this page: Facebook » Twitter » e-mail", "Diese Seite teilen: Facebook » Twitter » E-Mail"),
    ("Visit {name} at www.{site}", "Besuchen Sie {name} auf www.{site}"),
    ("Page {n} of {year}", "Seite {n} von {year}"),
    ("Please enable JavaScript to use all functions of this site.",
     "Bitte aktivieren Sie JavaScript, um alle Funktionen dieser Seite zu nutzen."),
    ("Last updated {year} by {name}", "Zuletzt aktualisiert {year} von {name}"),
    ("Your search returned no results.", "Ihre Suche ergab keine Treffer."),
)  # fmt: skip


class Noise:
    """Draws pairs that are wrong. One method for each kind, which is given the pair that it replaces."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clean: list[Pair] = []  # that stay, so far

    def wrong_language(self, pair: Pair) -> Pair:
        if self.random.random() < 1 / 3:
            return pair[1], pair[0]
        parts = self.random.choice(list(FOREIGN.values()))
        line = " ".join(self.random.choice(part.split("|")) for part in parts) + "."
        return self._one_side(pair, lambda _: line)

    def misaligned(self, pair: Pair) -> Pair:
        """The target of the pair before, or of another."""
        near = self.random.random() < 0.5
        return pair[0], (self.clean[-1] if near else self.random.choice(self.clean))[1]

    def half_translated(self, pair: Pair) -> Pair:
        """One side goes over into the other one, or begins as it."""
        side = self.random.randrange(2)
        own, other = pair[side].split(), pair[1 - side].split()
        share = self.random.uniform(0.3, 0.7)
        if self.random.random() < 0.5:
            own, other = other, own
        mixed = " ".join([*own[: round(share * len(own))], *other[round(share * len(other)) :]])
        return (mixed, pair[1]) if side == 0 else (pair[0], mixed)

    def truncated(self, pair: Pair) -> Pair:
        return self._one_side(pair, self._beginning)

    def boilerplate(self, _: Pair) -> Pair:
        values = {
            "n": self.random.randint(1, 99),
            "year": self.random.randint(1990, 2025),
            "name": self.random.choice(NAMES),
            "site": self.random.choice(SITES),
        }
        english, german = self.random.choice(BOILERPLATE)
        return english.format(**values), german.format(**values)

    def machine_garbage(self, pair: Pair) -> Pair:
        garbled = self.random.choice((self._keys, self._bytes, self._loop, self._shuffled))
        return self._one_side(pair, garbled)

    def near_duplicates(self, _: Pair) -> Pair:
        english, german = self.random.choice(self.clean)
        match self.random.randrange(4):
            case 0:
                return english.upper(), german.upper()
            case 1:
                return f"- {english.rstrip('.')} !", f"• {german.rstrip('.')}!"
            case 2:
                number = self.random.randint(2, 99)
                return f"{number}. {english}", f"{number}. {german}"
            case _:
                return self._without_a_word(english), self._without_a_word(german)

    def _one_side(self, pair: Pair, change: Callable[[str], str]) -> Pair:
        return (change(pair[0]), pair[1]) if self.random.random() < 0.5 else (pair[0], change(pair[1]))

    def _beginning(self, text: str) -> str:
        words = text.split()
        return " ".join(words[: max(1, round(self.random.uniform(0.3, 0.7) * len(words)))])

    def _without_a_word(self, text: str) -> str:
        words = text.split()
        del words[self.random.randrange(len(words))]
        return " ".join(words) or text

    def _keys(self, text: str) -> str:
        """What falling on a keyboard gives."""
        letters = string.ascii_lowercase + string.digits
        return " ".join("".join(self.random.choices(letters, k=max(1, len(word)))) for word in text.split())

    def _bytes(self, text: str) -> str:
        """UTF-8 read as Windows-1252; in quotes, so that each line has some."""
        return f"„{text}“".encode().decode("cp1252", errors="replace")

    def _loop(self, text: str) -> str:
        """As of a model that does not find an end."""
        words = text.split()
        start = self.random.randrange(len(words))
        return " ".join(words[:start] + words[start : start + self.random.randint(1, 3)] * 8)

    def _shuffled(self, text: str) -> str:
        words = text.split()
        self.random.shuffle(words)
        return " ".join(words)


KINDS = [name for name in vars(Noise) if not name.startswith("_")]


def add_noise(pairs: Iterable[Pair], seed: int) -> list[tuple[str, Pair]]:
    """The pairs, each called clean, but every third replaced by a noisy one, which is called by its kind."""
    noise = Noise(seed)
    noisy: list[tuple[str, Pair]] = []
    for number, pair in enumerate(pairs):
        third, turn = divmod(number, 3)
        if turn == 2:
            kind = KINDS[third % len(KINDS)]
            noisy.append((kind, getattr(noise, kind)(pair)))
        else:
            noise.clean.append(pair)
            noisy.append((CLEAN, pair))
    return noisy


def kept_by(config: CleaningConfig, noisy: Sequence[tuple[str, Pair]], tokenizer: Tokenizer) -> Counter[str]:
    """How many pairs of each kind the steps without a model leave."""
    lengths = LengthCleaner(config)
    pairs = TextCleaner(config, HeldOut(), ("en", "de")).clean([pair for _, pair in noisy])
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
        pairs = list(zip(*(path.read_text("utf-8").split("\n")[:-1] for path in files), strict=True))
        folder.mkdir(parents=True, exist_ok=True)
        noisy = add_noise(pairs, seed=1)
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for _, pair in noisy)
            (folder / f"noisy.{language}").write_text(text, "utf-8", newline="\n")
        (folder / "kinds.txt").write_text("".join(f"{kind}\n" for kind, _ in noisy))
        return
    noisy = read(folder)
    if command == "steps":
        default, crawled = (
            load_config("train", RunConfig, [f"cleaning={name}"]) for name in ("default", "crawled")
        )
        steps = single_steps(crawled.cleaning)
        steps |= {"cleaning=default": default.cleaning, "**cleaning=crawled**": crawled.cleaning}
        tokenizer = Tokenizer.train((text for _, pair in noisy for text in pair), default.tokenizer)
        print(table(noisy, {name: kept_by(config, noisy, tokenizer) for name, config in steps.items()}))
    else:
        print(table(noisy, {file.name: kept_in(read_kept(file), noisy) for file in files}))


if __name__ == "__main__":
    main(sys.argv[1], *(Path(argument) for argument in sys.argv[2:]))
