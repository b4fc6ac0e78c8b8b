"""The roots of all commands."""

from importlib import import_module
from typing import Any, get_type_hints

from endeavour.__main__ import COMMANDS, LONG_NAMES


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
