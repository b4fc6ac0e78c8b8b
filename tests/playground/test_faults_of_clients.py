"""Clients that go away, runs that change underneath, taken ports, signals: the server lives, and says what is wrong."""

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from commands import endeavour
from endeavour.errors import UserError
from endeavour.playground import server as module
from endeavour.playground import serving
from endeavour.playground.serving import listen, open_browser, url_of
from endeavour.playground.worker import Cancelled, Job
from endeavour.runs.run import Run
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import write_model
from served import JSON, Served, events_of, served, small_run
from untrained import untrained_model
from waiting import TIMEOUT, until


def test_a_search_ends_when_its_client_goes_away(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def endless(
        system: object, asked: object, longest: int, emit: Callable[..., None], check: Callable[[], None]
    ) -> None:
        emit("start", {})
        try:
            while True:
                check()
        except Cancelled:
            ended.set()
            raise

    monkeypatch.setattr(module, "show_search", endless)
    with site.open("/api/search", {"text": "Ja!"}) as response:
        assert next(events_of(response)) == ("start", {})
    assert ended.wait(TIMEOUT)
    assert site.get("/health").status == 200


@pytest.mark.parametrize("path", ["/api/search", "/api/analyse", "/translate"])
def test_what_waits_for_a_client_that_went_away_is_not_done(site: Served, path: str) -> None:
    gate = threading.Event()
    worker = site.playground.worker
    worker.submit(Job(lambda _: gate.wait(TIMEOUT)))
    asked = {"text": "Ja!", "target": {"text": "Ja!"}}
    bodies = {
        "/api/search": {"text": "Ja!"},
        "/api/analyse": asked,
        "/translate": {"q": "Ja!", "target": "de"},
    }
    connection = site.connect()
    connection.request("POST", path, json.dumps(bodies[path]), {"Content-Type": JSON})
    until(lambda: worker.waiting > 0)
    connection.close()
    until(lambda: worker.waiting == 0)
    gate.set()
    assert site.post(path, bodies[path]).status == 200


@pytest.mark.parametrize("path", ["/api/search", "/translate"])
def test_who_goes_away_in_the_middle_of_a_request_leaves_no_trace(
    site: Served, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: 99\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", site.port), TIMEOUT) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**16):
            pass
    assert site.get("/health").status == 200
    assert capfd.readouterr().err == ""


def test_an_error_in_the_middle_of_a_search_is_an_event(
    site: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(error: Exception, *arguments: object) -> None:
        arguments[3]("start", {})  # type: ignore[operator]
        raise error

    errors = {
        "too bad": UserError("too bad"),
        "out of memory on this sentence\ntry a shorter one": MemoryError(),
        "ZeroDivisionError": ZeroDivisionError("0"),
    }
    for said, error in errors.items():
        monkeypatch.setattr(module, "show_search", lambda *arguments, error=error: broken(error, *arguments))
        (start, _), (name, data) = site.stream("/api/search", {"text": "Ja!"})
        assert (start, name) == ("start", "error")
        assert said in data["error"]
    assert "Traceback" in capfd.readouterr().err  # for who runs the server, not for who asks


def test_a_defect_is_answered_without_a_traceback(
    site: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site.playground.systems, "get", lambda _: 1 // 0)
    for path, asked in (("/translate", {"q": "Ja!", "target": "de"}), ("/api/search", {"text": "Ja!"})):
        answer = site.post(path, asked)
        assert answer.status == 500
        assert "Traceback" not in answer.body.decode()
        assert "ZeroDivisionError" in answer.json["error"]
    monkeypatch.undo()
    assert "Traceback" in capfd.readouterr().err
    assert site.post("/translate", {"q": "Ja!", "target": "de"}).status == 200


@pytest.fixture
def own(tmp_path: Path) -> Run:
    return small_run(tmp_path, "own")


def retrain(run: Run, seed: int, folder: Path | None = None) -> None:
    """Writes other weights in the place of the run's."""
    with atomic_folder(folder or run.model_folder) as partial:
        write_model(partial, untrained_model(run.config, run.load_tokenizers(), seed), run.load_tokenizers())


def test_a_run_that_was_trained_anew_translates_anew_and_a_deleted_one_is_named(own: Run) -> None:
    asked = {"q": "Satz 7 hat Worte.", "target": "de"}
    other = {"text": "Satz 7 hat Worte.", "system": "own", "target": {"text": "Ja!"}}
    with served(own.root) as site:
        before, scored = site.post("/translate", asked).json, site.post("/api/analyse", other).json
        retrain(own, seed=1)
        assert site.post("/translate", asked).json != before
        assert site.post("/api/analyse", other).json["log_probability"] != scored["log_probability"]
        aside = own.folder.rename(own.root / ".aside")
        for path, body in (("/translate", asked), ("/api/analyse", other), ("/api/search", {"text": "Ja!"})):
            answer = site.post(path, body)
            assert answer.status == 404
            assert "own" in answer.json["error"]
        assert site.get("/api/runs").json["runs"] == []
        aside.rename(own.folder)
        assert site.post("/translate", asked).status == 200
        weights = own.model_folder / "weights.safetensors"
        retrain(own, seed=0)
        weights.write_bytes(weights.read_bytes()[:-1])
        answer = site.post("/translate", asked)
        assert answer.status == 400
        assert "weights.safetensors" in answer.json["error"]
        retrain(own, seed=0)
        assert site.post("/translate", asked).json == before


def test_checkpoints_are_systems_and_only_a_few_stay_in_memory(own: Run) -> None:
    for update in (5, 20):
        retrain(own, seed=update, folder=own.checkpoint_folder / f"update-{update:08d}")
    asked = {"text": "Satz 7 hat Worte.", "target": {"text": "Ja!"}}
    with served(own.root, "limits.systems=2") as site:
        found = {
            name: site.post("/api/analyse", {**asked, "system": name}).json["log_probability"]
            for name in ("own", "own@5", "own@20", "own@0020")
        }
        assert found["own@20"] == found["own@0020"]
        assert len(set(found.values())) == 3
        assert len(site.playground.systems._systems) == 2
        assert site.post("/api/analyse", {**asked, "system": "own@7"}).status == 404
        (entry,) = site.get("/api/runs").json["runs"]
        assert entry["checkpoints"] == [5, 20]
        shutil.rmtree(own.checkpoint_folder)
        assert site.post("/api/analyse", {**asked, "system": "own@20"}).status == 404


def test_the_next_free_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0) as first:
        assert first.proto == socket.IPPROTO_TCP, "asyncio sends small answers at once on these alone"
        port = first.getsockname()[1]
        with listen("127.0.0.1", 0) as other:
            free = other.getsockname()[1]
        monkeypatch.setattr(serving, "PORTS", (port, free))
        with listen("127.0.0.1", None) as second:
            assert second.getsockname()[1] == free
        monkeypatch.setattr(serving, "PORTS", range(port, port + 1))
        with pytest.raises(UserError, match=f"port=null: all from {port} to {port} are taken"):
            listen("127.0.0.1", None)


def test_a_port_that_is_asked_for_is_taken_or_refused() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UserError, match=f"port={port}: it is taken"):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", port) as second:
        assert second.getsockname()[1] == port


def test_an_address_that_is_not_ours_is_refused_by_its_key() -> None:
    for host in ("no such host", "192.0.2.1", "host.invalid", "a" * 300):
        with pytest.raises(UserError, match="host="):
            listen(host, 0)


def test_the_address_that_is_printed_is_one_that_a_browser_can_open() -> None:
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1")):
        with listen(host, 0) as listening:
            url = url_of(listening)
            assert re.fullmatch(rf"http://({shown}|\[::1\]):\d+", url)
            parts = urlsplit(url)
            socket.create_connection((parts.hostname, parts.port), TIMEOUT).close()


def test_a_browser_is_opened_only_where_there_is_a_window_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(serving.webbrowser, "open", lambda url: opened.append(url) or True)
    monkeypatch.setattr(serving.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not open_browser("http://127.0.0.1:1")
    monkeypatch.setenv("DISPLAY", ":0")
    assert open_browser("http://127.0.0.1:1")
    assert opened == ["http://127.0.0.1:1"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outputs")
    small_run(root, "run")
    return root


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_requests_in_flight_are_finished(stopped: Path, number: int) -> None:
    """One of which half the body is there is in flight."""
    command = [sys.executable, "-m", "endeavour", "play", f"output_folder={stopped}", "device=cpu", "port=0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    with process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address
        port = int(address[1])
        body = json.dumps({"q": "Ja!", "source": "en", "target": "de"}).encode()
        connection, idle = (HTTPConnection("127.0.0.1", port) for _ in range(2))
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        connection.putrequest("POST", "/translate")
        connection.putheader("Content-Type", JSON)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:5])
        idle.request("GET", "/health")  # by the time that it is answered, the other one has arrived
        assert idle.getresponse().read()
        process.send_signal(number)
        refused = False
        while not refused:  # no more connections are accepted
            try:
                socket.create_connection(("127.0.0.1", port), TIMEOUT).close()
            except OSError:
                refused = True
        connection.send(body[5:])
        response = connection.getresponse()
        assert response.status == 200
        assert json.loads(response.read())["translatedText"]
        for one in (connection, idle):
            one.close()
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, "this is how a server ends"
    assert "Traceback" not in errors


def test_the_command_says_what_is_wrong(own: Run, capsys: pytest.CaptureFixture[str]) -> None:
    small_run(own.root, "second")
    for wrong, named in (
        (["run=own second"], "run=…"),
        (["host=192.0.2.1"], "host=192.0.2.1"),
        (["decoding.engine=ctranslate2"], "ctranslate2"),
    ):
        assert endeavour("play", f"output_folder={own.root}", "device=cpu", *wrong) == 2
        assert named in capsys.readouterr().err
    (own.model_folder / "weights.safetensors").unlink()
    assert endeavour("play", f"output_folder={own.root}", "device=cpu", "run=own") == 2
    assert "\nrestore it, or train the run anew" in capsys.readouterr().err


def test_the_command_notes_a_host_that_all_can_reach_and_that_there_is_no_browser(
    own: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(serving, "open_browser", lambda _: False)
    assert endeavour("play", f"output_folder={own.root}", "device=cpu", "host=0.0.0.0", "open=true") == 0
    said = capsys.readouterr()
    assert "host=0.0.0.0" in said.err
    assert "open=true" in said.err
    assert re.search(r"http://127\.0\.0\.1:\d+", said.out)


def test_a_port_that_one_may_not_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Guarded(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket, "socket", Guarded)
    with pytest.raises(UserError, match=r"^port=80:"):
        listen("127.0.0.1", 80)


def test_without_the_extra_the_command_says_what_to_install(
    own: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert endeavour("play", f"output_folder={own.root}", "device=cpu") == 2
    assert "[play]" in capsys.readouterr().err
