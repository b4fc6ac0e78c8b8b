"""The real hub client against a server on 127.0.0.1: verified downloads, quick and clear failures."""

import json
import socket
import time

import pytest
from hub_server import REVISION, HubServer

from endeavour.data.hub import fetch
from endeavour.errors import UserError
from local_server import silent_port

REPOSITORY = "someone/pairs"
CONTENT = "".join(json.dumps({"en": f"Line {i}.", "de": f"Zeile {i}."}) + "\n" for i in range(200)).encode()


@pytest.fixture(autouse=True)
def own_hub_cache(monkeypatch, tmp_path):
    # Read once, when the package is imported: after that the variable says nothing.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["small", "large"])
def hub(request, monkeypatch):
    """A server of files that are verified by their Git blob hash, and one of files that are by their SHA-256."""
    with HubServer(REPOSITORY, {"train.jsonl": CONTENT}, large=request.param == "large") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def get(name: str = "train.jsonl") -> bytes:
    return fetch(REPOSITORY, REVISION, name, corpus="pairs", progress=lambda *_: None).read_bytes()


def test_a_file_arrives_once_and_then_needs_no_network(hub, monkeypatch):
    assert get() == CONTENT
    asked = dict(hub.requests)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert get() == CONTENT
    assert dict(hub.requests) == asked


def test_404_is_not_tried_again(hub):
    with pytest.raises(UserError, match=r"corpus pairs.*missing\.jsonl of someone/pairs.*HTTP 404"):
        get("missing.jsonl")
    assert hub.requests["HEAD", "missing.jsonl"] == 1


def test_503_is_tried_twice_more(hub, no_waiting):
    hub.statuses = [503] * 5
    with pytest.raises(UserError, match=r"corpus pairs.*503.*corpus=textbook.*corpus=files"):
        get()
    assert hub.requests["HEAD", "train.jsonl"] == 3
    assert get() == CONTENT


@pytest.mark.parametrize("fault", ["short", "cut", "garbled"])
def test_a_damaged_file_is_fetched_again(hub, no_waiting, fault):
    hub.faults["train.jsonl"] = [fault]
    assert get() == CONTENT


@pytest.mark.parametrize("fault", ["short", "cut", "garbled"])
def test_a_file_that_stays_damaged_is_reported_and_not_kept(hub, no_waiting, fault):
    hub.faults["train.jsonl"] = [fault] * 1000
    with pytest.raises(UserError, match=r"corpus pairs.*train\.jsonl"):
        get()
    hub.faults.clear()
    assert get() == CONTENT


def test_a_refused_connection_fails_within_seconds(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    with silent_port() as port:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
        with pytest.raises(UserError, match=r"corpus pairs.*http://127.*corpus=textbook and corpus=files"):
            get()
    assert sum(waits) < 3


def test_an_unknown_host_is_asked_for_a_few_times_and_named(monkeypatch, no_waiting):
    asked = []

    def unknown(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with pytest.raises(UserError, match=r"http://hub\.invalid"):
        get()
    assert 1 <= len(asked) <= 10


def test_offline_mode_asks_nobody(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="HF_HUB_OFFLINE"):
        get()
    assert not hub.requests
