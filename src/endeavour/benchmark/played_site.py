"""A playground that a benchmark has started: a process of its own, asked over HTTP as a browser or a program would.

Knows the addresses and what is answered; nothing of the server's insides.
"""

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from endeavour.errors import UserError
from endeavour.overrides import typed

TIMEOUT = 120.0  # seconds, after which a request is lost
PIECES = 16  # that a sentence should have, as nearly as there are any
CANDIDATES = 200  # sentences among which those of about that length are looked for

Event = tuple[str, Any]


@dataclass(frozen=True)
class PlayedRun:
    """What is served: a trained run, named as `run=…` takes it; None is the newest."""

    name: str | None
    output_folder: Path
    device: str


@dataclass(frozen=True)
class Site:
    """A server that runs."""

    port: int
    process: int

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

    def get(self, path: str) -> Any:
        with closing(self.connect()) as connection:
            return answer(connection, "GET", path)

    def memory(self) -> int | None:
        """Resident bytes of the server; None where the system does not tell."""
        status = Path(f"/proc/{self.process}/status")
        if status.is_file():
            (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status.read_text())
            return int(kilobytes) * 1024
        if shutil.which("ps") is None:
            return None
        command = ["ps", "-o", "rss=", "-p", str(self.process)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024


@contextmanager
def play(run: PlayedRun, *overrides: str) -> Generator[Site]:
    """Starts a server and stops it. Raises `UserError` where it does not start."""
    arguments = [f"output_folder={typed(str(run.output_folder))}", f"device={run.device}", "port=0"]
    arguments += [] if run.name is None else [f"run={run.name}"]
    command = [sys.executable, "-m", "endeavour", "play", *arguments, *overrides]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        address, said = None, list[str]()
        while address is None and (line := process.stdout.readline()):
            said.append(line.strip())
            address = re.search(r"http://\S+:(\d+)", line)
        if address is None:
            raise UserError("the playground did not start: " + "\n".join(said[-2:]))
        try:
            yield Site(int(address[1]), process.pid)
        finally:
            process.terminate()
            process.communicate()


def sentences(site: Site) -> list[str]:
    """Sources of the run's first evaluation of about `PIECES` pieces. To look for them warms the server up."""
    runs = site.get("/api/runs")
    run = next(run for run in runs["runs"] if run["name"] == runs["default"])
    if not run["evaluations"]:
        raise UserError(
            f"{run['name']} has no evaluation whose sentences could be asked for: run `endeavour evaluate`"
        )
    place = urlencode({"run": run["name"], "folder": run["evaluations"][0]["folder"]})
    rows = site.get(f"/api/evaluation?{place}")["rows"]
    texts = list(dict.fromkeys(row["source"] for row in rows if row["source"].strip()))[:CANDIDATES]
    with closing(site.connect()) as connection:
        lengths = {text: _pieces(connection, text) for text in texts}
    return sorted(texts, key=lambda text: abs(lengths[text] - PIECES))[: max(1, len(texts) // 2)]


def _pieces(connection: HTTPConnection, text: str) -> float:
    """Infinitely many where there are more than the page shows."""
    try:
        (start, *_) = list(search(connection, text, beam_size=1))
    except UserError:
        return math.inf
    return len(start[1]["source"])


def search(connection: HTTPConnection, text: str, *, beam_size: int) -> Iterator[Event]:
    """Raises `UserError` where it is refused."""
    name = ""
    for line in _response(connection, "POST", "/api/search", {"text": text, "beam_size": beam_size}):
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


def translate(connection: HTTPConnection, text: str, target: str) -> str:
    asked = {"q": text, "source": "auto", "target": target}
    return answer(connection, "POST", "/translate", asked)["translatedText"]


def answer(connection: HTTPConnection, method: str, path: str, content: object = None) -> Any:
    """Raises `UserError` for an answer that says that something went wrong."""
    return json.loads(_response(connection, method, path, content).read())


def _response(connection: HTTPConnection, method: str, path: str, content: object) -> HTTPResponse:
    if content is None:
        connection.request(method, path)
    else:
        connection.request(method, path, json.dumps(content), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        error = json.loads(response.read())["error"]
        raise UserError(f"the playground answered {path} with {response.status}: {error}")
    return response
