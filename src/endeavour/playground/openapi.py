"""The description of the interface for programs: openapi.yaml, with the request of schemas.py and the limits."""

from pathlib import Path
from typing import Any

import yaml

from endeavour.playground.limits import Limits
from endeavour.playground.schemas import TranslateRequest


def describe_interface(settings: Limits) -> dict[str, Any]:
    """An OpenAPI document, in JSON's types."""
    document = yaml.safe_load((Path(__file__).parent / "openapi.yaml").read_text("utf-8"))
    request = TranslateRequest.model_json_schema()
    request["properties"]["alternatives"]["maximum"] = settings.alternatives
    request["properties"]["q"]["description"] = f"at most {settings.characters} characters altogether"
    document["components"]["schemas"]["TranslateRequest"] = request
    return document
