"""A playground that is served in this process, and a client that knows HTTP and nothing else."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from configs import run_config
from endeavour.commands.play import PlayRoot, open_playground
from endeavour.config import load_config
from endeavour.playground.server import Playground
from endeavour.playground.serving import Server, listen
from endeavour.runs.run import Run
from endeavour.storage import write_json
from untrained import TINIEST, small_tokenizers, untrained_run
from waiting import TIMEOUT

SMALL = [*TINIEST, "model.encoder_layers=2", "model.decoder_layers=2"]
SMALL += ["decoding.beam_size=3", "decoding.max_length_ratio=1", "decoding.max_length_offset=4"]
JSON = "application/json"

# Of an evaluation.
LINES = {
    "sources": ["Satz 7.", "Ja!", "a b c d e f g h i", "Nein."],
    "references": ["Satz 7.", "Ja doch!", "eins zwei drei", "Nein."],
    "hypotheses": ["Satz 7.", "", "ja ja ja ja", "kurz \u2028 gut"],
}


@dataclass
class Answer:
    """Status, headers and body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A server and how to reach it."""

    playground: Playground
    port: int

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = self.connect()
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, content: object, **headers: str) -> Answer:
        return self.ask("POST", path, json.dumps(content), {"Content-Type": JSON, **headers})

    def stream(self, path: str, content: object) -> list[tuple[str, Any]]:
        """All events of a stream, by name and data."""
        with self.open(path, content) as response:
            assert response.status == 200, response.read()
            return list(events_of(response))

    @contextmanager
    def open(self, path: str, content: object) -> Iterator[HTTPResponse]:
        """A stream; at the end of the block the client goes away."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(content), {"Content-Type": JSON})
        response = connection.getresponse()
        try:
            yield response
        finally:
            response.close()
            connection.close()


def events_of(response: HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Server-sent events, as they come."""
    name = ""
    for line in response:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def small_run(root: Path, name: str, *overrides: str, seed: int = 0) -> Run:
    """A finished run whose model knows nothing."""
    config = run_config([*SMALL, *overrides, f"name={name}", f"output_folder={root}"])
    return untrained_run(config, small_tokenizers(config), seed=seed)


def evaluated(run: Run, folder: str = "test-beam") -> None:
    """An evaluation of four lines."""
    path = run.folder / "evaluation" / folder
    path.mkdir(parents=True, exist_ok=True)
    for column, lines in LINES.items():
        (path / f"{column}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    scores = {"bleu": {"name": "BLEU", "value": 12.3456, "low": 1.0, "high": 20.0, "signature": ""}}
    write_json(path / "scores.json", {"scores": scores, "decoding": {}, "model": {"test_set": "test"}})


@contextmanager
def served(root: Path, *overrides: str) -> Iterator[Served]:
    """The page of a run below `root`."""
    config = load_config("play", PlayRoot, [f"output_folder={root}", "device=cpu", *overrides])
    playground = open_playground(config)
    with listen("127.0.0.1", 0) as listening:
        server = Server(playground.app(["127.0.0.1", "translate.example"]))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(playground, listening.getsockname()[1])
        finally:
            server.stop()
            thread.join(TIMEOUT)
            playground.close()
    assert not thread.is_alive()
