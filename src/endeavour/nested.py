"""Nested mappings as flat ones, for tables and comparisons. Knows no config."""

from collections.abc import Mapping
from typing import Any, cast


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"model": {"width": 1}}` as `{"model.width": 1}`, with keys as they are typed; empty mappings stay values."""
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            values |= flatten(cast(Mapping[str, Any], value), f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
