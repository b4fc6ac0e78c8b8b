"""The OpenAPI document says what the server does: every route, what requests may hold, what answers hold."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest

from endeavour.playground.schemas import TranslateRequest
from served import Served, served, small_run

TYPES = {"string": str, "integer": int, "number": (int, float), "null": type(None)}
ASKED = {"q": ["Satz 7 hat Worte."], "source": "auto", "target": "de", "alternatives": 2}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    run = small_run(tmp_path_factory.mktemp("outputs"), "run")
    with served(run.root, "run=run") as site:
        yield site


@pytest.fixture(scope="module")
def document(site: Served) -> dict[str, Any]:
    return site.get("/openapi.json").json


def fits(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> bool:
    """Whether a value is what a schema describes; for those keywords of JSON Schema that the document uses."""
    if "$ref" in schema:
        inner: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            inner = inner[part]
        return fits(value, inner, document)
    if "anyOf" in schema:
        return any(fits(value, one, document) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    if schema["type"] == "object":
        known = schema.get("properties")
        if not isinstance(value, dict) or known is None:
            return isinstance(value, dict)
        needed = set(schema.get("required", ()))
        return needed <= value.keys() <= known.keys() and all(
            fits(inner, known[key], document) for key, inner in value.items()
        )
    if schema["type"] == "array":
        return isinstance(value, list) and all(fits(inner, schema["items"], document) for inner in value)
    return isinstance(value, TYPES[schema["type"]]) and not isinstance(value, bool)


def test_every_route_for_programs_is_described_and_nothing_else(
    site: Served, document: dict[str, Any]
) -> None:
    routes: set[tuple[str, str]] = set()
    for route in site.playground.routes():
        if route.path != "/" and not route.path.startswith(("/api/", "/static")):
            methods = getattr(route, "methods", None) or {"GET"}
            routes |= {(route.path, method.lower()) for method in methods - {"HEAD"}}
    described = {
        (path, method): one for path, methods in document["paths"].items() for method, one in methods.items()
    }
    assert routes == described.keys()
    # Each may be refused: to pages of other websites, and where the server has a defect.
    assert all("default" in one["responses"] for one in described.values())


def test_a_request_is_described_as_it_is_checked(document: dict[str, Any]) -> None:
    """Keys, and which are needed; `test_guard` tests that the server refuses what this schema refuses."""
    content = document["paths"]["/translate"]["post"]["requestBody"]["content"]
    (name,) = {one["schema"]["$ref"] for one in content.values()}
    fields = TranslateRequest.model_fields
    schema = document["components"]["schemas"]["TranslateRequest"]
    assert schema["properties"].keys() == fields.keys()
    assert set(schema["required"]) == {key for key, field in fields.items() if field.is_required()}
    assert schema["additionalProperties"] is False
    assert fits(ASKED, {"$ref": name}, document)
    assert not fits({**ASKED, "more": 1}, {"$ref": name}, document)
    assert not fits({**ASKED, "alternatives": True}, {"$ref": name}, document)


def test_a_translation_and_an_error_are_as_described(site: Served, document: dict[str, Any]) -> None:
    answer = site.post("/translate", ASKED)
    content = document["paths"]["/translate"]["post"]["responses"]["200"]["content"]
    assert answer.headers["content-type"] in content
    assert fits(answer.json, content["application/json"]["schema"], document)
    error = document["components"]["responses"]["Error"]["content"]["application/json"]["schema"]
    assert fits(site.post("/translate", {}).json, error, document)


@pytest.mark.parametrize("path", ["/languages", "/health", "/openapi.json"])
def test_what_is_merely_read_is_as_described(site: Served, document: dict[str, Any], path: str) -> None:
    answer = site.get(path)
    content = document["paths"][path]["get"]["responses"]["200"]["content"]
    assert answer.headers["content-type"] in content
    assert fits(answer.json, content["application/json"]["schema"], document)


def test_the_limit_of_this_server_is_in_the_document(site: Served, document: dict[str, Any]) -> None:
    request = document["components"]["schemas"]["TranslateRequest"]
    assert request["properties"]["alternatives"]["maximum"] == site.playground.settings.alternatives


def test_the_page_asks_at_once_for_every_script_that_it_and_its_first_view_need(site: Served) -> None:
    needed: set[str] = set()
    waiting = ["/static/app.js", "/static/look.js"]
    while waiting:
        path = waiting.pop()
        if path not in needed:
            needed.add(path)
            imported = re.findall(
                r'^(?:import|export|\}) .*?"(\.[^"]+)";$', site.get(path).body.decode(), re.MULTILINE
            )
            waiting += [urljoin(path, name) for name in imported]
    preloaded = re.findall(r'<link rel="modulepreload" href="([^"]+)">', site.get("/").body.decode())
    assert sorted(preloaded) == sorted(needed - {"/static/app.js"})
