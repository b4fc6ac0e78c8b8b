"""Keys and tokens stay out of what is written and shown. Knows what they look like and which variables hold them.

Knows no files and no config: `__main__` refuses command lines that hold a secret and cleans every message,
`config` refuses values that hold one, so that nothing which is saved from either can.
"""

import os
import re

HIDDEN = "[hidden]"

_SECRET_NAME = re.compile(r"(^|[._-])(api)?(key|token|secret|password|passwd)$", re.IGNORECASE)
# Tokens of the hub and of W&B, and the password in a URL.
_SHAPES = re.compile(r"\bhf_[A-Za-z0-9]{20,}|\bwandb_v\d_\w{20,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
# Below these keys users give the names: a split may be called token.
NAMED_BY_USERS = ("corpus.splits.", "corpus.parts.", "evaluation.files.", "evaluation.labels.")
_SHORTEST = 16  # a variable's value below this length might be an ordinary word


def redact(text: str) -> str:
    """`text` without the secrets of the environment, and without what looks like one."""
    for value in _of_environment():
        text = text.replace(value, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)


def secret_in(text: str) -> str | None:
    """What secret a text holds, in words that do not give it away; None if there is none."""
    for value, name in _of_environment().items():
        if value in text:
            return f"the value of {name}"
    return "what looks like a key or a password" if _SHAPES.search(text) else None


def names_secret(key: str) -> bool:
    """Whether a config key or variable of this name would hold a secret: `tracking.api_key`, `HF_TOKEN` …"""
    return _SECRET_NAME.search(key) is not None


def _of_environment() -> dict[str, str]:
    """Value → name of every variable that holds a secret."""
    return {
        value: name for name, value in os.environ.items() if names_secret(name) and len(value) >= _SHORTEST
    }
