"""A small stand-in for the hub on 127.0.0.1: files of dataset repositories, and faults on demand."""

import hashlib
from collections import Counter
from http.server import BaseHTTPRequestHandler

from local_server import LocalServer

REVISION = "0123456789abcdef0123456789abcdef01234567"


class HubServer(LocalServer):
    """Serves `files` (name → content) of one dataset repository at `REVISION`.

    Attributes:
        faults: name → faults to show, one for each GET: "short" (fewer bytes, consistently announced), "cut"
            (the connection ends early), "garbled" (right size, wrong bytes).
        statuses: HTTP statuses to answer the next requests with.
        requests: (method, name) → how many came.
    """

    def __init__(self, repository: str, files: dict[str, bytes], *, large: bool = False) -> None:
        self.repository = repository
        self.files = files
        self.large = large  # large files carry their SHA-256 as the tag, small ones their Git blob hash
        self.faults: dict[str, list[str]] = {}
        self.statuses: list[int] = []
        self.requests: Counter[tuple[str, str]] = Counter()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub.answer(self)

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(Handler)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        prefix = f"/datasets/{self.repository}/resolve/{REVISION}/"
        name = request.path.removeprefix(prefix)
        self.requests[request.command, name] += 1
        if self.statuses:
            self._refuse(request, self.statuses.pop(0))
            return
        if not request.path.startswith(prefix) or name not in self.files:
            self._refuse(request, 404, **{"X-Error-Code": "EntryNotFound"})
            return
        content = self.files[name]
        body, announced = content, len(content)
        faults = self.faults.get(name, [])
        fault = faults.pop(0) if request.command == "GET" and faults else ""
        if fault == "garbled":
            body = bytes(reversed(content))
        elif fault:
            body = content[: len(content) // 2]
            announced = len(body) if fault == "short" else len(content)
        request.send_response(200)
        request.send_header("Content-Length", str(announced))
        request.send_header("X-Repo-Commit", REVISION)
        request.send_header("ETag", f'"{self._tag(content)}"')
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body)
        request.close_connection = True

    def _tag(self, content: bytes) -> str:
        if self.large:
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    @staticmethod
    def _refuse(request: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "0")
        for key, value in headers.items():
            request.send_header(key, value)
        request.end_headers()
