"""Where config values are, and how config dataclasses are validated: types and bounds are in the dataclass, beside
the code that it configures.

Knows pydantic; neither sections nor values.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from endeavour.errors import UserError
from endeavour.nested import flatten

# For `@pydantic.dataclasses.dataclass(kw_only=True, config=STRICT)`: a name such as `1` may be typed without quotes,
# no number may be NaN or infinite, and a key that nobody reads is refused.
STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)

Share = Annotated[float, Field(ge=0, le=1)]
ShareBelow1 = Annotated[float, Field(ge=0, lt=1)]  # of a dropout, an average or a smoothing

UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")  # pydantic's names for a key that nobody reads
MOST_NEAR = 3  # keys that are offered in place of one that is not known; more would be no help

T = TypeVar("T")


def config_folder() -> Path:
    """Where the YAML files lie: in the package when installed from a wheel, beside `src` in a checkout."""
    packaged = Path(__file__).parent / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "conf"


def validated(kind: type[T], values: Mapping[str, Any], section: str = "") -> T:
    """`values` as the dataclass `kind`. Raises `UserError`, naming the key in `section`, for a refusal."""
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        prefix = f"{section}." if section else ""
        # A section's own name counts as one of them; a key that is refused does not.
        refused = {".".join(map(str, one["loc"])) for one in error.errors() if one["type"] in UNKNOWN}
        known = [*values, *flatten(values, prefix)]
        known = [key for key in known if key.removeprefix(prefix) not in refused]
        raise UserError(_line(error, section, known)) from error


def unknown_key(key: str, keys: Iterable[str]) -> str:
    """What is said of a key that nobody reads: which ones of `keys`, those that somebody does, may be meant."""
    near = " or ".join(f"{one}=…" for one in _near(key, set(keys) - {key}))
    all_keys = f"{key} is not a key of this command, all of which `endeavour COMMAND --help` shows"
    return f"{all_keys}; {near} is" if near else all_keys


def _near(key: str, keys: Iterable[str]) -> list[str]:
    """Keys with the same last word; or else, in the section that was typed, with one that begins or reads like it."""
    section, _, word = key.rpartition(".")
    words = {one: one.rpartition(".")[2] for one in sorted(keys)}
    inside = {one: last for one, last in words.items() if one.rpartition(".")[0] == section}
    near = [[one for one, last in words.items() if last == word]]
    for place in [inside] if section else [inside, words]:
        alike = get_close_matches(word, place.values(), 1, 0.8)
        near.append([one for one, last in place.items() if last.startswith(word)])
        near.append([one for one, last in place.items() if last in alike])
    return next((found for found in near if 1 <= len(found) <= MOST_NEAR), [])


def _line(error: ValidationError, section: str, keys: Iterable[str]) -> str:
    """What is wrong and where: `training.patience=0: input should be greater than or equal to 1`."""
    named = [(".".join(map(str, (*section.split(), *one["loc"]))), one) for one in error.errors()]
    # Where a key is misspelt another is missing, which says less.
    key, first = min(named, key=lambda one: one[1]["type"] not in UNKNOWN)
    message = str(first["msg"])
    match first["type"]:
        case "missing":
            return f"{key} has no value: give it one, {key}=…"
        case kind if kind in UNKNOWN:
            return unknown_key(key, [*keys, *(other for other, one in named if one["type"] == "missing")])
        case "list_type":
            written = first["input"] if isinstance(first["input"], str) else "…"
            return f"{key}={first['input']}: a list is needed, which is written {key}=[{written}]"
        case "value_error" if isinstance(first["input"], Mapping):  # a section's own validator names its keys
            return _with_section(key, message.removeprefix("Value error, "))
        case "value_error":
            return f"{key}={first['input']}: {message.removeprefix('Value error, ')}"
        case "int_from_float":
            return f"{key}={first['input']}: a whole number is needed; what a search draws is one by int(interval(…))"
        case _:
            return f"{key}={first['input']}: {message[:1].lower()}{message[1:]}"


def _with_section(key: str, message: str) -> str:
    """The validators of `decoding` also check `validation_decoding`, and name the keys of the former."""
    return message.replace("decoding.", f"{key}.") if key.endswith("_decoding") else message
