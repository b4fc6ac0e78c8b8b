"""Where config values are, and how config dataclasses are validated: types and bounds are in the dataclass, beside
the code that it configures.

Knows pydantic; neither sections nor values.
"""

from argparse import Action, ArgumentParser
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from endeavour.errors import UserError

# For `@pydantic.dataclasses.dataclass(kw_only=True, config=STRICT)`: a name such as `1` may be typed without quotes,
# no number may be NaN or infinite, and a key that nobody reads is refused.
STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)

Share = Annotated[float, Field(ge=0, le=1)]
ShareBelow1 = Annotated[float, Field(ge=0, lt=1)]  # of a dropout, an average or a smoothing

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
        raise UserError(_line(error, section)) from error


def unknown_key(key: str) -> str:
    """What is said of a key that nobody reads."""
    return f"{key} is not a key of this command, all of which `endeavour COMMAND --cfg job` shows"


def _line(error: ValidationError, section: str) -> str:
    """What is wrong and where: `training.patience=0: input should be greater than or equal to 1`."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in (section, *first["loc"]) if part)
    message = str(first["msg"])
    match first["type"]:
        case "missing":
            return f"{key} has no value: give it one, {key}=…"
        case "unexpected_keyword_argument" | "extra_forbidden":
            return unknown_key(key)
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


@contextmanager
def unchecked_help() -> Generator[None]:
    """Lets Hydra add its options in Python 3.14, where argparse checks the help of each at once.

    The help of one is only made when it is shown (Hydra issue 3121).
    """

    def unchecked(parser: ArgumentParser, action: Action) -> None:
        pass

    # It is inherited, or not there.
    setattr(ArgumentParser, "_check_help", unchecked)  # noqa: B010 -- private
    try:
        yield
    finally:
        delattr(ArgumentParser, "_check_help")
