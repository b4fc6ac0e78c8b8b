"""A small stand-in for the hub on 127.0.0.1 that takes new repositories and commits."""

import base64
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from local_server import LocalServer


class WritableHub(LocalServer):
    """Keeps what it is sent.

    Attributes:
        status: of every answer from now on, where it is not 200.
        created: the requests for new repositories.
        files: path → content, of the commits.
        tokens: all that came with the requests.
    """

    def __init__(self) -> None:
        self.status = 200
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.tokens: set[str | None] = set()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hub.tokens.add(self.headers["Authorization"])
                answer = json.dumps(hub.answer(self.path, body)).encode() if hub.status == 200 else b"{}"
                self.send_response(hub.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(Handler)

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        if path == "/api/repos/create":
            asked = json.loads(body)
            self.created.append(asked)
            return {"url": f"{self.url}/{asked['organization']}/{asked['name']}"}
        if path == "/api/validate-yaml":  # what stands between the lines --- of README.md
            return {"errors": [], "warnings": []}
        repository, _, action = path.removeprefix("/api/models/").rpartition("/main")[0].rpartition("/")
        if action == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            return {
                "files": [
                    {"path": name, "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                    for name in names
                ]
            }
        assert action == "commit", path
        for line in body.decode().splitlines():
            item = json.loads(line)
            if item["key"] == "file":
                assert item["value"]["encoding"] == "base64"
                self.files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
        return {"commitUrl": f"{self.url}/{repository}/commit/0123", "commitOid": "0123"}
