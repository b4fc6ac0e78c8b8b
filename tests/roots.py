"""The roots of all commands, with their groups and keys."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from endeavour.commands import COMMANDS, LONG_NAMES
from endeavour.settings import config_folder


def _kinds() -> dict[str, type[Any]]:
    kinds: dict[str, type[Any]] = {}
    for command, root in COMMANDS.items():
        if command != "sweep":
            name = LONG_NAMES.get(command, command)
            function = getattr(import_module(f"endeavour.commands.{name}"), name)
            kinds[root] = get_type_hints(function)["config"]
    return kinds


# Root in conf/ → the dataclass that its command takes.
KINDS = _kinds()


@cache
def groups_of(root: str) -> list[str]:
    """As one chooses from them: `model`, `decoding@validation_decoding` …"""
    entries: list[Any] = yaml.safe_load((config_folder() / f"{root}.yaml").read_text("utf-8"))["defaults"]
    return [next(iter(entry)) for entry in entries if isinstance(entry, dict)]


def keys_of(kind: type[Any], before: str = "") -> Iterator[str]:
    """As they are typed: `training`, `training.max_updates` …; with `*` for names that users choose."""
    for name, hint in get_type_hints(kind).items():
        yield before + name
        inside = f"{before}{name}."
        if any(get_origin(one) in (dict, Mapping) for one in (hint, *get_args(hint))):
            inside += "*."
            yield f"{before}{name}.*"
        for inner in (hint, *get_args(hint)):
            if is_dataclass(inner):
                yield from keys_of(inner, inside)  # type: ignore[arg-type]
