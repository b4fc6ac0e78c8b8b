"""English and German, and the two directions between them. Knows nothing else."""

from typing import Literal

Language = Literal["en", "de"]
Languages = tuple[Language, Language]  # of source and target
Direction = Literal["en-de", "de-en"]

NAMES: dict[Language, str] = {"en": "English", "de": "German"}


def languages_of(direction: Direction) -> Languages:
    """Of source and target."""
    return ("en", "de") if direction == "en-de" else ("de", "en")
