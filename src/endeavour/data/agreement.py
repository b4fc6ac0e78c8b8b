"""Whether the numbers and symbols of an English and a German sentence agree, as tolerantly as translators write them.

Numbers may be set differently (1,000 and 1.000, 3.5 and 3,5, 5/3/2005 and 3.5.2005, 3 pm and 15 Uhr), stand in another
order, or be words on the other side; what is in words on both sides is not compared. A symbol may be named on the other
side. Knows nothing of pairs that are kept or dropped.
"""

import re

# Words for the numbers from 1 on, and others that stand for them: ordinals, months, fractions.
_ENGLISH = (
    "one first once single a an january|two second twice double both pair couple half february|"
    "three third triple march|four quarter april|five fifth may|six june|seven july|eight eighth august|"
    "nine ninth september|ten october|eleven november|twelve dozen twelfth december|thirteen|fourteen|fifteen|"
    "sixteen|seventeen|eighteen|nineteen"
)
_ENGLISH_TENS = "twent thirt fort fift sixt sevent eight ninet"
_GERMAN = (
    "ein erst januar jänner|zwei zwo beid doppel paar halb hälfte februar|drei dritt märz|vier april|fünf mai|"
    "sechs juni|sieb juli|acht august|neun september|zehn oktober|elf november|zwölf dutzend dezember|"
    "dreizehn|vierzehn|fünfzehn|sechzehn|siebzehn|achtzehn|neunzehn"
)
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI"

_DIGITS = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’](?=\d{3}(?!\d))")
_SPACED_THOUSANDS = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})+(?!\d)")
_ROMAN_NUMERAL = re.compile(r"\b[IVX]+\b")
_TWELVE_HOURS = re.compile(r"(?<![^\W\d])(?<!\bi )[ap]\.? ?m\b")  # but not "I am"
_MAGNITUDE = re.compile(
    r"hundred|hundert|thousand|tausend|tsd|mil+ion|mil+iard|billion|mio|mrd|\d ?(?:k|m|bn)\b"
)

_SYMBOL = re.compile("[%€$£¥°§©#@]")
_NAMES = {
    "%": r"per cent|percent|\w*prozent|v. ?h",
    "€": "euro?",
    "$": "dollar|usd|bucks",
    "£": "pound|pfund|gbp|sterling",
    "¥": "yen|yuan|jpy",
    "°": "degree|grad",
    "§": "section|sec|article|art|paragraph|para|absatz",
    "©": r"copyright|\(c\)|urheber",
    "#": "number|no|nummer|nr|hashtag",
    "@": "at",
}
_NAMED = {symbol: re.compile(rf"(?<!\w)(?:{names})") for symbol, names in _NAMES.items()}


def numbers_agree(english: str, german: str) -> bool:
    """Whether each number in digits is on the other side too, in digits or in words."""
    left, right = _figures(english), _figures(german)
    if left == right:
        return True
    left_words = _ENGLISH_NUMBERS.values(english) | _roman(english)
    right_words = _GERMAN_NUMBERS.values(german) | _roman(german)
    if _TWELVE_HOURS.search(english.casefold()):  # German "am" is a word
        left, right, left_words, right_words = (
            {_hour(figure) for figure in figures} - {"0"}
            for figures in (left, right, left_words, right_words)
        )
    if _MAGNITUDE.search(f"{english}\n{german}".casefold()):
        if sorted("".join(left).replace("0", "")) == sorted("".join(right).replace("0", "")):
            return True
        left, right, left_words, right_words = (
            {figure.rstrip("0") for figure in figures}
            for figures in (left, right, left_words | {"1"}, right_words | {"1"})  # hundert is 100
        )
    return left - right <= right_words and right - left <= left_words


def symbols_agree(english: str, german: str) -> bool:
    """Whether each symbol that has a name, such as %, € and §, is on the other side too, or is named there."""
    left, right = set(_SYMBOL.findall(english)), set(_SYMBOL.findall(german))
    return all(
        _NAMED[symbol].search(other.casefold())
        for missing, other in ((left - right, german), (right - left, english))
        for symbol in missing
    )


class _NumberWords:
    """Finds the numbers that the words of a language stand for.

    Args:
        ones, tens: stems for 1 to 19 and for 20 to 90; those of one number with spaces between.
        pattern: of a word, with the places {tens} and {ones} for them.
    """

    def __init__(self, ones: str, tens: str, pattern: str) -> None:
        self._ones = {
            stem: number for number, stems in enumerate(ones.split("|"), 1) for stem in stems.split()
        }
        self._tens = {stem: 10 * number for number, stem in enumerate(tens.split(), 2)}
        longest_first = (sorted(stems, key=len, reverse=True) for stems in (self._tens, self._ones))
        tens_stems, ones_stems = ("|".join(stems) for stems in longest_first)
        self._word = re.compile(pattern.format(tens=f"({tens_stems})", ones=f"({ones_stems})"))

    def values(self, text: str) -> set[str]:
        """All that may be meant: 20, 1 and 21 for twenty-one."""
        words: list[tuple[str, str]] = self._word.findall(text.casefold())
        ones = {self._ones[stem] for _, stem in words if stem}
        tens = {self._tens[stem] for stem, _ in words if stem}
        return {str(number) for number in (*ones, *tens, *(ten + one for ten in tens for one in ones))}


_ENGLISH_NUMBERS = _NumberWords(_ENGLISH, _ENGLISH_TENS, r"\b(?:{tens}(?:y|ies|ieth)|{ones}(?:s|th|ths)?)\b")
# German stems begin a word (dreijährig) or follow another number in it; ß is casefolded.
_GERMAN_NUMBERS = _NumberWords(
    _GERMAN, _GERMAN_TENS.replace("ß", "ss"), r"(?:\b|und|hundert|tausend)(?:{tens}|{ones})"
)
_ROMAN_VALUES = {numeral: str(number) for number, numeral in enumerate(_ROMAN.split(), 1)}


def _figures(text: str) -> set[str]:
    """The numbers in digits: parts of dates, times and decimal fractions each for itself, and without zeros."""
    if not _DIGITS.search(text):
        return set()
    text = _SPACED_THOUSANDS.sub(lambda number: number[0].replace(" ", ""), _THOUSANDS.sub("", text))
    return {figure for digits in _DIGITS.findall(text) if (figure := digits.lstrip("0"))}


def _hour(figure: str) -> str:
    """On a clock of twelve hours."""
    return str(int(figure) % 12) if len(figure) <= 2 and 12 <= int(figure) <= 24 else figure


def _roman(text: str) -> set[str]:
    return {_ROMAN_VALUES[numeral] for numeral in _ROMAN_NUMERAL.findall(text) if numeral in _ROMAN_VALUES}
