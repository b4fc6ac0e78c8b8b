"""How the trials of a sweep are named after what is swept."""

import re
from hashlib import sha256

LONGEST_END = 100  # characters of a name that tell what was swept; a folder's may have 255 bytes


def told_apart(*told: object) -> str:
    """The end of a trial's name, `-key_value` for each swept key, such as a folder can have.

    Args:
        told: a key, its value, another key, and so on.
    """
    return name_end("".join(f"-{key}_{value}" for key, value in zip(told[::2], told[1::2], strict=True)))


def name_end(text: str) -> str:
    """`text` as a folder's name may end; with a mark of all of it, where that is less."""
    plain = re.sub(r"[^\w.+-]+", "_", text)
    if plain == text and len(plain) <= LONGEST_END:
        return text
    return f"{plain[:LONGEST_END]}-{sha256(text.encode()).hexdigest()[:6]}"
