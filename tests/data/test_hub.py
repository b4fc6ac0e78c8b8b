"""The real hub client against a server on 127.0.0.1: verified downloads, quick and clear failures."""

import json
import socket
import time
from pathlib import Path

import pytest
from hub_server import REVISION, HubServer

from endeavour.data.hub import fetch
from endeavour.errors import UserError

REPOSITORY = "someone/pairs"
CONTENT = "".join(json.dumps({"en": f"Line {i}.", "de": f"Zeile {i}."}) + "\n" for i in range(200)).encode()


@pytest.fixture(autouse=True)
def online(monkeypatch):
    # Read once, when the package is imported: after that the variable of this name says nothing.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


@pytest.fixture
def hub(monkeypatch):
    with HubServer(REPOSITORY, {"train.jsonl": CONTENT}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def get(cache: Path, name: str = "train.jsonl") -> bytes:
    (path,) = fetch(REPOSITORY, REVISION, [name], corpus="pairs", cache=cache)
    return path.read_bytes()


def test_a_file_arrives_once_and_is_cached(hub, tmp_path):
    assert get(tmp_path) == CONTENT
    asked = dict(hub.requests)
    assert get(tmp_path) == CONTENT
    assert dict(hub.requests) == asked


def test_a_cached_file_needs_no_network(hub, tmp_path, monkeypatch):
    get(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    assert get(tmp_path) == CONTENT


def test_a_large_file_is_verified_by_its_sha256(tmp_path, monkeypatch):
    with HubServer(REPOSITORY, {"train.jsonl": CONTENT}, large=True) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.faults["train.jsonl"] = ["garbled"]
        assert get(tmp_path) == CONTENT
        assert hub.requests["GET", "train.jsonl"] == 2


def test_404_is_not_tried_again(hub, tmp_path):
    with pytest.raises(UserError, match=r"corpus pairs.*missing\.jsonl of someone/pairs.*HTTP 404"):
        get(tmp_path, "missing.jsonl")
    assert hub.requests["HEAD", "missing.jsonl"] == 1


def test_503_and_then_success(hub, tmp_path, no_waiting):
    hub.statuses = [503, 503]
    assert get(tmp_path) == CONTENT


def test_503_for_good_ends_after_three_attempts(hub, tmp_path, no_waiting):
    hub.statuses = [503] * 100
    with pytest.raises(UserError, match=r"corpus pairs.*503.*corpus=textbook.*corpus=files"):
        get(tmp_path)
    assert hub.requests["HEAD", "train.jsonl"] == 3


@pytest.mark.parametrize("fault", ["short", "cut", "garbled"])
def test_a_damaged_file_is_fetched_again(hub, tmp_path, no_waiting, fault):
    hub.faults["train.jsonl"] = [fault]
    assert get(tmp_path) == CONTENT


@pytest.mark.parametrize("fault", ["short", "garbled"])
def test_a_file_that_stays_damaged_is_reported_and_not_kept(hub, tmp_path, no_waiting, fault):
    hub.faults["train.jsonl"] = [fault] * 100
    with pytest.raises(UserError, match=r"corpus pairs.*train\.jsonl.*(damaged|Consistency)"):
        get(tmp_path)
    hub.faults.clear()
    assert get(tmp_path) == CONTENT


def test_a_file_that_is_always_cut_short_is_reported(hub, tmp_path, no_waiting):
    hub.faults["train.jsonl"] = ["cut"] * 1000
    with pytest.raises(UserError, match="corpus pairs"):
        get(tmp_path)


def test_a_refused_connection_fails_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    start = time.monotonic()
    with pytest.raises(UserError, match=r"corpus pairs.*http://127.*corpus=textbook and corpus=files"):
        get(tmp_path)
    assert time.monotonic() - start < 10


def test_an_unknown_host_is_asked_for_a_few_times_and_named(tmp_path, monkeypatch, no_waiting):
    asked = []

    def unknown(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with pytest.raises(UserError, match=r"http://hub\.invalid"):
        get(tmp_path)
    assert 1 <= len(asked) <= 10


def test_offline_mode_asks_nobody(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="HF_HUB_OFFLINE"):
        get(tmp_path)
    assert not hub.requests


def test_offline_mode_serves_from_the_cache(hub, tmp_path, monkeypatch):
    get(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert get(tmp_path) == CONTENT


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
