"""Draws any sentence: the constructions that a textbook teaches and how often each of them comes."""

from collections.abc import Callable

from endeavour.textbook import descriptions, joined, relatives, simple
from endeavour.textbook.draw import Draw
from endeavour.textbook.trees import Sentence

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
