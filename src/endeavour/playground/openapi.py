"""The description of the interface for programs: openapi.yaml, with the requests of schemas.py and the limits."""

from pathlib import Path
from typing import Any

import yaml

from endeavour.playground.limits import Limits
from endeavour.playground.schemas import (
    AnalysisRequest,
    LearnRequest,
    Pair,
    SearchRequest,
    TranslateRequest,
)

REQUESTS = (SearchRequest, AnalysisRequest, Pair, LearnRequest, TranslateRequest)
PLACE = "#/components/schemas/{model}"


def describe_interface(settings: Limits) -> dict[str, Any]:
    """An OpenAPI document, in JSON's types."""
    document = yaml.safe_load((Path(__file__).parent / "openapi.yaml").read_text("utf-8"))
    schemas: dict[str, Any] = document["components"]["schemas"]
    for kind in REQUESTS:
        schema = kind.model_json_schema(ref_template=PLACE)
        schemas |= schema.pop("$defs", {})
        schemas[kind.__name__] = schema
    translate = schemas["TranslateRequest"]["properties"]
    translate["alternatives"]["maximum"] = settings.alternatives
    translate["q"]["description"] = f"at most {settings.characters} characters altogether"
    beam_size, _null = schemas["SearchRequest"]["properties"]["beam_size"]["anyOf"]
    beam_size["maximum"] = settings.beam_size
    return document
