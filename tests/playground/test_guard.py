"""Who may ask: hosts, origins, types and sizes; the headers of every answer; and no request that does harm."""

import json
import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endeavour.playground.safety import SECURITY_HEADERS, is_loopback, is_ours
from endeavour.playground.schemas import SearchRequest, TranslateRequest
from served import JSON, Served
from waiting import TIMEOUT

POSTS = ["/api/search", "/api/analyse", "/api/attention", "/api/saliency", "/api/learn", "/translate"]
FORM = "application/x-www-form-urlencoded"
PAIR = {"text": "Ja!", "target": {"text": "Ja!"}}


@pytest.mark.parametrize(
    "path", ["/", "/health", "/nothing", "/static/nothing.js", "/api/runs", "/translate"]
)
def test_every_answer_has_the_headers(site: Served, path: str) -> None:
    for answer in (site.get(path), site.get(path, Host="evil.example"), site.ask("DELETE", path)):
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name.lower()] == value
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8600", True),
        ("localhost", True),
        ("LOCALHOST.:9", True),
        ("[::1]:8600", True),
        ("10.1.2.3", True),
        ("translate.example", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[::1", False),
        ("[::1]evil:80:80", False),
    ],
)
def test_only_addresses_and_our_own_names_are_hosts(site: Served, host: str, ours: bool) -> None:
    answer = site.get("/health", Host=host)
    assert answer.status == (200 if ours else 403)
    assert ours or answer.json["error"]


def test_a_name_that_was_asked_for_is_ours() -> None:
    assert is_ours("Box.example:80", ["127.0.0.1", "box.example"])
    assert not is_ours("box.example", ["127.0.0.1"])
    assert is_ours(socket.gethostname(), ["0.0.0.0"])
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "10.1.2.3", "box")] == [False] * 3


@pytest.mark.parametrize("path", ["/translate", "/api/analyse"])
def test_other_websites_are_refused(site: Served, path: str) -> None:
    asked = {"q": "Ja!", "target": "de"} if path == "/translate" else PAIR
    host = f"127.0.0.1:{site.port}"
    assert site.post(path, asked).status == 200
    assert site.post(path, asked, Origin=f"http://{host}").status == 200
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        f"http://localhost:{site.port}",
        "http://[",
    ):
        assert site.post(path, asked, Origin=origin).status == 403
    proxied = {"Host": "translate.example", "Origin": "https://translate.example"}
    assert site.post(path, asked, **proxied).status == 200
    for website in ("cross-site", "same-site"):
        assert site.post(path, asked, **{"Sec-Fetch-Site": website}).status == 403
    assert site.post(path, asked, **{"Sec-Fetch-Site": "same-origin"}).status == 200
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert site.get("/health", **linked).status == 200
    assert site.get("/health", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status == 403


@pytest.mark.parametrize("path", POSTS)
def test_bodies_are_of_a_known_type_and_not_too_large(site: Served, path: str) -> None:
    body = json.dumps(PAIR)
    for kind in (
        None,
        "text/plain",
        "multipart/form-data; boundary=x",
        *([] if path == "/translate" else [FORM]),
    ):
        assert site.ask("POST", path, body, {} if kind is None else {"Content-Type": kind}).status == 415
    limit = site.playground.settings.body
    assert site.ask("POST", path, b" " * (limit + 1), {"Content-Type": JSON}).status == 413
    assert site.ask("POST", path, b" " * limit, {"Content-Type": JSON}).status == 400
    answer = site.get(path)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_files_are_not_written(site: Served) -> None:
    answer = site.post("/static/app.js", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_body_without_end_is_refused_as_soon_as_it_is_too_large(site: Served) -> None:
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.port), TIMEOUT) as connection:
        connection.sendall(head.encode())
        for _ in range(site.playground.settings.body // 2**16 + 1):
            connection.sendall(b"10000\r\n" + b" " * 2**16 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_no_file_outside_the_page_is_served(site: Served) -> None:
    for path in (
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "/etc/passwd",
        "..\\server.py",
        "%00",
        "%c3%a4",
    ):
        answer = site.get(f"/static/{path}")
        assert answer.status == 404
        assert answer.json["error"]


def test_addresses_take_their_own_parameters_only(site: Served) -> None:
    for query in (
        "",
        "?run=run&folder=a&more=b",
        "?run=run&run=run&folder=a",
        "?run=..&folder=a",
    ):
        answer = site.get(f"/api/evaluation{query}")
        assert answer.status == 400
        assert answer.json["error"]
    for name in ("../run", "/etc", "run/../run", ""):
        assert site.get(f"/api/log?run={name}&after=").status == 400
    for name in ("none", "%ff", "%00", "a" * 300, "%c3%a4"):
        assert site.get(f"/api/log?run={name}&after=").status == 404


# Anything that JSON can hold, and what has the right keys.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("system", "text", "prefix", "beam_size", "length_penalty", "pruned", "reference", "target"),
        *("alternatives", "kind", "layer", "head", "q", "source", "format", "api_key", "extra"),
    ]
)
VALUES = ANYTHING | st.sampled_from(
    [
        "Ja!",
        "en",
        "de",
        "run",
        "run@5",
        "cross",
        {"text": "Ja!"},
        {"ids": [5, 6]},
        {"ids": [-1]},
        {"ids": [1e9]},
        1,
        0,
    ]
)
BODIES = st.one_of(
    st.binary(max_size=60),
    ANYTHING.map(json.dumps).map(str.encode),
    st.dictionaries(KEYS, VALUES, max_size=6).map(json.dumps).map(str.encode),
    st.integers(1, 3000).map(lambda depth: b"[" * depth),
    st.just(json.dumps({"text": "\ud800", "q": "\ud800", "target": "de"}).encode()),
)


@settings(max_examples=300)
@given(st.sampled_from(POSTS), BODIES, st.sampled_from([JSON, JSON, JSON, FORM]))
def test_whatever_is_sent_is_answered_or_refused_in_json(
    site: Served, path: str, body: bytes, kind: str
) -> None:
    answer = site.ask("POST", path, body, {"Content-Type": kind})
    assert answer.status in (200, 400, 404, 415), answer.body
    if answer.status != 200:
        assert set(answer.json) == {"error"}
        assert 0 < len(answer.json["error"]) < 1000
        assert answer.json["error"].count("\n") <= 1


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text("GETPOS/ HTTP1.\r\n:abc{}0", max_size=200).map(str.encode))
def test_what_is_not_http_does_no_harm(site: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", site.port), TIMEOUT) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**16):
            pass
    assert site.get("/health").status == 200


@settings(max_examples=200)
@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_what_the_schemas_refuse_the_server_refuses(site: Served, asked: dict[str, Any]) -> None:
    """And nothing else decides about keys and types, so that the OpenAPI document tells the truth."""
    for path, kind in (("/api/search", SearchRequest), ("/translate", TranslateRequest)):
        try:
            kind.model_validate_json(json.dumps(asked))
        except ValueError:
            assert site.post(path, asked).status == 400
