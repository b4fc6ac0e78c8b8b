"""The first sentences of the textbook's training split, made when a test wants them and not at import."""

from functools import cache
from itertools import islice

from endeavour.textbook import textbook_splits


@cache
def textbook_sides(count: int) -> tuple[list[str], list[str]]:
    """English and German."""
    english, german = zip(*islice(textbook_splits(1, count)["train"], count), strict=True)
    return list(english), list(german)
