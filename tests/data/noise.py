"""Makes a clean corpus noisy, in seven ways that crawled text is.

Every third pair gives its place to a noisy one, so that to the clean ones half as many are added; each kind has a
seventh of them. What is wrong is made from the pair that it replaces, which is so in the corpus no more, but a
near-duplicate from a pair before it. Text that is in no corpus is made here. Knows no cleaning.
"""

import random
import string
from collections.abc import Callable, Iterable, Sequence

from endeavour.data.cleaning import TextCleaner
from endeavour.data.files import Pair

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


def cleaned(cleaner: TextCleaner, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that stay, in normal form and in order."""
    return cleaner.settle(cleaner.judge(pairs))


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
