"""What Hydra and OmegaConf refuse, said in a line or two: what is wrong, where, and what to type instead.

Reads their messages; composes nothing.
"""

import re
from argparse import Action, ArgumentParser
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from endeavour.errors import UserError

KEY_VALUE = 'settings are key=value, without dashes, and a value with spaces stands in quotes: text="A dog"'
# What no key has to Hydra, in which a group's / follows no dot.
NO_KEY_TO_HYDRA = re.compile(r"[^A-Za-z0-9_.+~@/-]|\..*/")
# How lines of Hydra's messages begin that say neither what is wrong nor where.
NOISE = (
    "full_key:",
    "object_type",
    "reference_type",
    "To append",
    "Config search path",
    "provider=",
    "See https:",
    "Error parsing override",
)
# What Hydra says of an override, and what is said in its place.
REWORDED = (
    (
        r"Multiple values for (\S+)\.|An item is already at '(.+?)'",
        r"\1\2 has a value already: the + before it is for new names",
    ),
    (
        r"Ambiguous value for argument '(.+?)=(.*)'",
        r"\1=\2: a list is written \1=[\2], and other values with a comma stand in quotes; "
        "several values, each for a run of its own, are for `endeavour sweep`",
    ),
)


def one_line(error: Exception) -> str:
    """Those of Hydra's and OmegaConf's lines that say what is wrong and where, or what is said in their place."""
    for hydras, ours in REWORDED:
        if found := re.search(hydras, str(error)):
            return found.expand(ours)
    cause = error.__cause__ or error.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if cause is not None:
        lines += [line.strip() for line in str(cause).splitlines()[:1]]
    kept = [line.rstrip(";") for line in lines if not line.startswith(NOISE)]
    # What another line says too; but an option stays whose name begins another's.
    kept = [line for line in kept if " " not in line or not any(line in one and line != one for one in kept)]
    text = "; ".join(dict.fromkeys(kept)).replace(":; ", ": ")
    if override := getattr(error, "override", None):  # one that is not in Hydra's grammar
        return _ungrammatical(override, text)
    key = getattr(error, "full_key", None) or getattr(cause, "full_key", None)
    return text if not key or key in text else f"{key}: {text}"


def _ungrammatical(override: str, text: str) -> str:
    """What is wrong with an override that Hydra cannot read, of which it says `text`."""
    key, equals, _ = override.partition("=")
    if not equals or key.startswith("-"):
        return f"{override}: {KEY_VALUE}"
    if NO_KEY_TO_HYDRA.search(key):
        return f"{override}: a name in a key has letters from a to z, digits, _ and - alone"
    # Quotes do not help a function, such as range(…), that is given what it cannot take.
    if "while evaluating" in text:
        return f"{override}: {text}"
    return f"{override}: put quotes around the value or the names in it: {key}='…' or {key}=['…','…']"


@contextmanager
def hydras_options() -> Generator[None]:
    """Has errors in Hydra's options raised, as `UserError`, and lets it add them in Python 3.14.

    There argparse checks the help of each at once; that of one is only made when it is shown (Hydra issue 3121).
    """

    def unchecked(parser: ArgumentParser, action: Action) -> None:
        pass

    def refused(self: ArgumentParser, message: str) -> NoReturn:
        raise UserError(f"{message}; {KEY_VALUE}")

    usual = ArgumentParser.error
    # The first is inherited, or not there.
    setattr(ArgumentParser, "_check_help", unchecked)  # noqa: B010 -- private
    ArgumentParser.error = refused
    try:
        yield
    finally:
        delattr(ArgumentParser, "_check_help")
        ArgumentParser.error = usual
