"""Settings as they are typed, `key=value`: which values Hydra's grammar takes as they are, and how others are quoted.

Knows neither Hydra nor what a key means.
"""

import re

from endeavour.settings import config_folder

# Their values are text, file names or names of runs, never Hydra's grammar.
LITERAL_KEYS = (
    "text",
    "translation",
    "input",
    "output",
    "run",
    "runs",
    "systems",
    "pretrained",
    "teachers",
    "corpus_path",
    "host",
    "decoding.backward",
)
# Characters of file names that Hydra's grammar has none of, except in quotes.
UNKNOWN_TO_HYDRA = re.compile(r"[^ -~]|[~!#&;<>^`]")
# What it does not take for the name of an option.
NO_NAME_TO_HYDRA = re.compile(r"null|true|false|[\d.]+", re.IGNORECASE)
# A value that it takes as it stands for text; to its grammar other words may be numbers, lists, or nothing at all.
PLAIN_TEXT = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_/][\w./-]*", re.ASCII | re.IGNORECASE)


def is_group(key: str) -> bool:
    """Whether options are chosen by a key, as it is typed: `model`, `decoding@validation_decoding`."""
    return (config_folder() / key.lstrip("+").partition("@")[0]).is_dir()


def quote_literal(override: str) -> str:
    """Text and file names as Hydra takes them literally: its grammar gives commas, brackets and quotes a meaning."""
    key, equals, value = override.partition("=")
    if key not in LITERAL_KEYS:
        return quote_words(override)
    if not equals or value == "null":
        return override
    return f"{key}={literal(value)}"


def quote_words(override: str) -> str:
    """Words that Hydra's grammar would not take as such in quotes: with umlauts, or null as the name of an option."""
    if override == "experiment=null":  # of no other group may no option be chosen
        return "experiment=[]"
    key, equals, value = override.partition("=")
    if NO_NAME_TO_HYDRA.fullmatch(value) and is_group(key):
        return f"{key}={in_quotes(value)}"
    if not set(value) & set("'\"\\(){}$"):
        value = re.sub(r"[^\[\],]+", _quote_unknown, value)
    return f"{key}{equals}{value}"


def _quote_unknown(word: re.Match[str]) -> str:
    return f"'{word[0].strip()}'" if UNKNOWN_TO_HYDRA.search(word[0]) else word[0]


def in_quotes(value: str) -> str:
    """`value` as one word of Hydra's grammar, in which ${…} is still resolved."""
    # A backslash counts only before the quote mark, or at the end of the value.
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"'{escaped}'"


def literal(value: str) -> str:
    """`value` as one word of Hydra's grammar, in which nothing has a meaning."""
    # OmegaConf would resolve ${…}: a backslash before it escapes it, and existing ones are doubled.
    return in_quotes(re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + "\\${", value))


def typed(value: str) -> str:
    """The same with quotes only where they are needed, as one would type it."""
    return value if PLAIN_TEXT.fullmatch(value) else literal(value)
