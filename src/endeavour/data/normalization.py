"""The one normal form of a sentence, shared by training, evaluation and translation.

Text in normal form is NFC, holds no control characters and none of the common invisible ones, and has single spaces
between words and none at its ends. Nothing else is altered: not case, not quotes, not compatibility characters such
as "½" or "…" (which NFKC would rewrite). Only what a lowercasing vocabulary reads is `lowercased`. Knows nothing of
corpora and tokenizers; references never pass through it to be scored.
"""

import re
import unicodedata

# Inside a class of a regular expression: control characters other than whitespace, soft hyphens, zero-width spaces,
# word joiners, byte order marks and direction marks. The zero-width joiner and the variation selectors stay: emoji are
# made of them.
CONTROL = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_CONTROL = re.compile(f"[{CONTROL}\ud800-\udfff]")  # and lone surrogates, which no UTF-8 text can hold
# SentencePiece writes a space as U+2581, so a literal one would come back as a space anyway.
SPACE_MARK = "\u2581"


def remove_control_characters(text: str) -> str:
    """`text` without control and common invisible characters; line breaks and tabs stay whitespace."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", text)


def normalize(text: str) -> str:
    """The normal form of `text`. Idempotent; every string has one."""
    if _is_plain(text):
        return text
    text = unicodedata.normalize("NFC", remove_control_characters(text))
    return " ".join(text.replace(SPACE_MARK, " ").split())


def lowercased(text: str) -> str:
    """In small letters, each by itself: a sigma at the end of a word is one as elsewhere."""
    return "σ".join(part.lower() for part in text.split("Σ"))


def _is_plain(text: str) -> bool:
    """Whether `text` is seen to be in normal form, as nearly all is, in a third of the time of bringing it there."""
    return (
        text.isprintable()  # so that spaces are the only whitespace
        and "  " not in text
        and text == text.strip(" ")
        and SPACE_MARK not in text
        and unicodedata.is_normalized("NFC", text)
    )
