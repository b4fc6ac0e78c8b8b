"""An engine that translates nothing, over letters as pieces: what a translator does around a search is seen."""

from collections.abc import Sequence

from configs import run_config
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.translator import Translator
from endeavour.special import EOS

WORD_START = "\u2581"
BEAM = run_config(["decoding=beam"]).decoding


class Letters:
    """A `Tokenizer` whose every letter is a piece; a space is part of the letter after it."""

    tag: Sequence[int] = ()
    placeholders = 0

    def __init__(self, first: int = 10) -> None:
        self.first = first

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        return [[self.first + ord(letter) for letter in self._marked(text)] for text in sentences]

    encode_normal = encode

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(self.pieces(row)).replace(WORD_START, " ").strip() for row in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        letters = [chr(number - self.first) if number >= self.first else "" for number in ids]
        return [WORD_START + letter.lower() if letter.isupper() else letter for letter in letters]

    def _marked(self, text: str) -> str:
        """Small letters; the first of each word as a capital."""
        return "".join(word[:1].upper() + word[1:].lower() for word in text.split())


class Echo:
    """An engine that gives back each source `count` times, the score of the first -1, of the second -2 …"""

    def __init__(self, count: int = 1, longest: int | None = None) -> None:
        self.count, self.longest = count, longest
        self.calls: list[list[list[int]]] = []

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        self.calls.append([list(source) for source in sources])
        assert all(source[-1] == EOS and EOS not in source[:-1] for source in sources)
        return [
            [
                Hypothesis(list(source[:-1]), -float(number), -2.0 * number)
                for number in range(1, self.count + 1)
            ]
            for source in sources
        ]


def translator(engine: Echo, **changes: object) -> Translator:
    return Translator(engine, (Letters(), Letters()), **({"decoding": BEAM} | changes))  # type: ignore[arg-type]
