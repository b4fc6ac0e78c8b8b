"""The OpenAPI document says what the server does: every route, what requests may hold, what answers hold."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest

from endeavour.playground.schemas import (
    AnalysisRequest,
    LearnRequest,
    Pair,
    SearchRequest,
    TranslateRequest,
)
from served import Served, evaluated, served, small_run

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
TEXT = "Satz 7 hat Worte."
PAIR = {"text": TEXT, "target": {"text": "Ja! Worte."}}
ASKED: dict[str, dict[str, Any]] = {
    "/translate": {"q": [TEXT], "source": "auto", "target": "de", "alternatives": 2},
    "/api/search": {"text": TEXT, "prefix": {"ids": [5], "text": "Ja"}, "reference": "Ja!"},
    "/api/analyse": {**PAIR, "alternatives": 2},
    "/api/attention": PAIR,
    "/api/saliency": PAIR,
    "/api/learn": {**PAIR, "kind": "encoder", "layer": 0, "head": 0},
}
KINDS = {
    "/translate": TranslateRequest,
    "/api/search": SearchRequest,
    "/api/analyse": AnalysisRequest,
    "/api/attention": Pair,
    "/api/saliency": Pair,
    "/api/learn": LearnRequest,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Of a run that was evaluated."""
    run = small_run(tmp_path_factory.mktemp("outputs"), "run")
    evaluated(run)
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
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "object" in kinds and isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", not known)
        return all(key in value for key in schema.get("required", ())) and all(
            fits(inner, known[key], document)
            if key in known
            else others is True or (isinstance(others, dict) and fits(inner, others, document))
            for key, inner in value.items()
        )
    if "array" in kinds and isinstance(value, list):
        return all(fits(inner, schema["items"], document) for inner in value)
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, TYPES[kind]) for kind in kinds if kind in TYPES)


def test_every_route_is_described_and_nothing_else(site: Served, document: dict[str, Any]) -> None:
    routes: set[tuple[str, str]] = set()
    for route in site.playground.routes():
        path = re.sub(r"^/static.*", "/static/{path}", route.path)
        methods = getattr(route, "methods", None) or {"GET"}
        routes |= {(path, method.lower()) for method in methods - {"HEAD"}}
    described = {
        (path, method): one for path, methods in document["paths"].items() for method, one in methods.items()
    }
    assert routes == described.keys()
    # Each may be refused: to pages of other websites, and where the server has a defect.
    assert all("default" in one["responses"] for one in described.values())


@pytest.mark.parametrize("path", KINDS)
def test_requests_are_described_as_they_are_checked(document: dict[str, Any], path: str) -> None:
    """Keys, and which are needed; `test_guard` tests that the server refuses what these schemas refuse."""
    content = document["paths"][path]["post"]["requestBody"]["content"]
    names = {one["schema"]["$ref"] for one in content.values()}
    assert names == {f"#/components/schemas/{KINDS[path].__name__}"}
    schema = document["components"]["schemas"][KINDS[path].__name__]
    fields = KINDS[path].model_fields
    assert schema["properties"].keys() == fields.keys()
    assert set(schema.get("required", ())) == {name for name, field in fields.items() if field.is_required()}
    assert schema["additionalProperties"] is False
    assert fits(ASKED[path], {"$ref": names.pop()}, document)
    assert not fits({**ASKED[path], "more": 1}, schema, document)


@pytest.mark.parametrize("path", [path for path in ASKED if path != "/api/search"])
def test_answers_are_as_described(site: Served, document: dict[str, Any], path: str) -> None:
    answer = site.post(path, ASKED[path])
    content = document["paths"][path]["post"]["responses"]["200"]["content"]
    assert answer.headers["content-type"] in content
    assert fits(answer.json, content["application/json"]["schema"], document)
    error = document["components"]["responses"]["Error"]["content"]["application/json"]["schema"]
    assert fits(site.post(path, {}).json, error, document)


@pytest.mark.parametrize(
    "path",
    ["/languages", "/health", "/api/runs", "/api/evaluation?run=run&folder=test-beam", "/openapi.json"],
)
def test_what_is_merely_read_is_as_described(site: Served, document: dict[str, Any], path: str) -> None:
    answer = site.get(path)
    content = document["paths"][path.partition("?")[0]]["get"]["responses"]["200"]["content"]
    assert answer.headers["content-type"] in content
    assert fits(answer.json, content["application/json"]["schema"], document)


def test_the_limits_of_this_server_are_in_the_document(site: Served, document: dict[str, Any]) -> None:
    limits, schemas = site.playground.settings, document["components"]["schemas"]
    assert schemas["TranslateRequest"]["properties"]["alternatives"]["maximum"] == limits.alternatives
    most, _ = schemas["SearchRequest"]["properties"]["beam_size"]["anyOf"]
    assert most["maximum"] == limits.beam_size


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
