"""What requests may hold: keys, types and bounds. Knows neither models nor HTTP; limits from the config come later."""

from codecs import BOM_UTF8
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import parse_qs

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from endeavour.errors import UserError

MOST_FIELDS = 10_000  # of a form

Text = Annotated[str, Field(min_length=1)]
LengthPenalty = Annotated[float, Field(ge=0, le=10)]


class Request(BaseModel):
    """Unknown keys are refused, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Target(Request):
    """A translation, as ids without BOS and EOS, or as text: one of the two."""

    ids: list[NonNegativeInt] | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.ids is None) == (self.text is None):
            raise ValueError("either ids or text")
        return self


class Prefix(Request):
    """How a translation must begin: ids, then text that may end within a word."""

    ids: list[NonNegativeInt] = []
    text: str = ""


class SentenceRequest(Request):
    """A source sentence and the system that is asked about it; null: the run that the server was started with."""

    system: Text | None = None
    text: Text


class SearchRequest(SentenceRequest):
    """`beam_size` and `length_penalty` are the system's own where they are null."""

    prefix: Prefix | None = None
    beam_size: PositiveInt | None = None
    length_penalty: LengthPenalty | None = None
    pruned: Annotated[int, Field(ge=0, le=10)] = 3
    reference: str | None = None


class Pair(SentenceRequest):
    """A sentence and a translation of it."""

    target: Target


class AnalysisRequest(Pair):
    """`alternatives`: how many other pieces are listed at every position; `length_penalty` as for a search."""

    alternatives: Annotated[int, Field(ge=0, le=20)] = 10
    length_penalty: LengthPenalty | None = None


class LearnRequest(Pair):
    """One attention head of the Learn view; layers and heads count from 0."""

    kind: Literal["encoder", "decoder", "cross"]
    layer: NonNegativeInt
    head: NonNegativeInt


class TranslateRequest(BaseModel):
    """LibreTranslate's. Values are converted: a form knows text only. `api_key` is ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    q: str | list[str]
    source: str = "auto"
    target: str
    format: Literal["text"] = "text"
    alternatives: NonNegativeInt = 0
    api_key: Any = None


R = TypeVar("R", bound=BaseModel)


def parse(kind: type[R], body: bytes) -> R:
    """A body of JSON, with or without a byte order mark, as a request. Raises `UserError`, naming the key."""
    try:
        return kind.model_validate_json(body.removeprefix(BOM_UTF8))
    except ValidationError as error:
        raise UserError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    """What is wrong and where, without what was sent: `beam_size: input should be greater than or equal to 1`."""
    first = error.errors(include_url=False, include_input=False)[0]
    # Which of the types of `q` did not fit is no part of its name.
    key = ".".join(str(part) for part in first["loc"] if part not in ("str", "list[str]"))[:100]
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"{key} is not a key of this request"
    if first["type"] == "missing":
        return f"{key} is missing"
    message = message[:1].lower() + message[1:]
    return f"{key}: {message}" if key else message


def parse_form(body: bytes) -> TranslateRequest:
    """A form's fields as a request; only `q` may be there several times. Raises `UserError` where it is none."""
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        values: dict[str, str | list[str]] = {}
        for key, given in fields.items():
            if len(given) > 1 and key != "q":
                raise UserError(f"{key[:100]} is there {len(given)} times")
            values[key] = given if len(given) > 1 else given[0]
        return TranslateRequest.model_validate(values)
    except ValidationError as error:
        raise UserError(_explain(error)) from error
    except UserError:
        raise
    except ValueError as error:
        raise UserError("the form is malformed, not UTF-8, or has too many fields") from error
