"""Draws the splits of the textbook corpus: distinct pairs, disjoint splits, unseen combinations held out.

Knows of grammar only the constructions that a textbook teaches and how often each of them comes.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache

from endeavour.errors import UserError
from endeavour.textbook import descriptions, english, german, joined, relatives, simple
from endeavour.textbook.draw import Draw
from endeavour.textbook.entries import Adjective, Noun, Verb
from endeavour.textbook.reading import load_lexicon
from endeavour.textbook.trees import Sentence, words_of

EVALUATION_PAIRS = 1000
HELD_OUT_SHARE = 16  # one combination of noun, verb and adjective in so many never reaches the training pairs
MAX_FAILURES = 200_000  # draws in a row without a new pair, after which the grammar counts as exhausted

CONSTRUCTIONS: tuple[tuple[int, Callable[[Draw], Sentence]], ...] = (
    (30, simple.statement),
    (7, simple.yes_no_question),
    (9, simple.wh_question),
    (5, simple.command),
    (3, simple.existence),
    (3, simple.figures),
    (8, descriptions.description),
    (4, descriptions.identity),
    (2, descriptions.possession),
    (2, descriptions.superlative),
    (2, descriptions.sensation),
    (8, joined.because),
    (4, joined.condition),
    (2, joined.past_moment),
    (6, joined.with_complement),
    (5, joined.with_infinitive),
    (5, joined.joined_clauses),
    (8, relatives.with_relative),
)
TABLE = tuple(construct for weight, construct in CONSTRUCTIONS for _ in range(weight))


def draw_sentence(draw: Draw) -> Sentence:
    """One sentence of any construction; ihr and Sie come only where somebody is addressed by name."""
    dice = draw.random.random()
    draw.start("you" if dice < 0.9 else "you_formal" if dice < 0.96 else "you_all")
    return simple.addressed(draw) if draw.you != "you" else draw.pick(TABLE)(draw)


@lru_cache(maxsize=1 << 20)
def held_out(noun: str, verb: str, adjective: str) -> bool:
    """Whether the three words never stand in one training sentence; the same in every process and for every seed."""
    return zlib.crc32(f"{noun} {verb} {adjective}".encode()) % HELD_OUT_SHARE == 0


def holds_unseen(tree: Sentence) -> bool:
    """Whether a noun, a verb and an adjective of the sentence are held out together."""
    words = list(words_of(tree))
    nouns, verbs, adjectives = (
        {w.german for w in words if type(w) is kind} for kind in (Noun, Verb, Adjective)
    )
    return any(held_out(n, v, a) for a in adjectives for v in verbs for n in nouns)


def textbook_splits(seed: int, train_pairs: int) -> dict[str, Iterator[tuple[str, str]]]:
    """Pairs (English, German) by split: train, validation, test, test_unseen.

    No sentence of either language stands in two splits. Every pair of test_unseen holds a noun, a verb and an
    adjective (by their German lemma) that stand together in no pair of the other splits. The evaluation splits
    do not depend on `train_pairs`, and a shorter training split is the beginning of a longer one.

    Raises:
        UserError: train_pairs is larger than the number of sentences the grammar can find.
    """
    taken: set[int] = set()
    splits: dict[str, Iterator[tuple[str, str]]] = {}
    for number, (name, unseen) in enumerate((("validation", False), ("test", False), ("test_unseen", True))):
        pairs = list(_distinct(seed * 4 + number, EVALUATION_PAIRS, unseen, taken, set(taken)))
        splits[name] = iter(pairs)
    return {"train": _distinct(seed * 4 + 3, train_pairs, False, set(), taken), **splits}


def _distinct(
    seed: int, count: int, unseen: bool, taken: set[int], forbidden: set[int]
) -> Iterator[tuple[str, str]]:
    """`count` pairs with new English sentences, neither side in `forbidden`; both sides go into `taken`."""
    draw = Draw(load_lexicon(), seed)
    failures = 0
    while count:
        tree = draw_sentence(draw)
        if holds_unseen(tree) == unseen:
            source = english.sentence(tree)
            key = _key("en", source)
            if key not in taken and key not in forbidden:
                target = german.sentence(tree)
                target_key = _key("de", target)
                if target_key not in forbidden and not (unseen and target_key in taken):
                    taken.update((key, target_key))
                    count -= 1
                    failures = 0
                    yield source, target
                    continue
        failures += 1
        if failures > MAX_FAILURES:
            raise UserError(
                f"corpus textbook: the grammar found no new sentence in {MAX_FAILURES} draws; lower train_pairs"
            )


def _key(language: str, text: str) -> int:
    """A number that stands for a sentence and takes less memory than its text."""
    data = text.encode()
    return zlib.crc32(data) | len(data) << 32 | (language == "de") << 64
