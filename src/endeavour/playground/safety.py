"""Who may ask, and how much: hosts and origins, the size of bodies, headers of answers.

Another website that is open in the same browser must be able neither to read (its name might be made to lead here: DNS
rebinding) nor to ask for anything (cross-site request forgery). So the name in `Host` must be an address or one that is
known to be ours, and `Origin`, which browsers send whenever a page asks, must be the same as `Host`.
"""

import ipaddress
import re
import socket
import sys
import traceback
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
HOST = re.compile(r"(\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+))(:\d+)?", re.ASCII)


class Refused(Exception):
    """A request that is answered with `status` and the message, in JSON."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_ours(host: str, names: Collection[str]) -> bool:
    """Whether `host`, with or without a port, cannot be another website's: an address, or a name of ours.

    Args:
        names: by which the server is reached, besides `localhost` and the name of the machine.
    """
    match = HOST.fullmatch(host)
    if match is None:
        return False
    name = (match["address"] or match["name"]).lower().rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {known.lower() for known in ("localhost", socket.gethostname(), *names)}
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Refuses requests of other websites, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                # A browser asks each time whether a file has changed.
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        reason = self._refusal(Headers(scope=scope))
        app = self._app if reason is None else JSONResponse({"error": reason}, 403)
        try:
            await app(scope, receive, send_guarded)
        except Exception as error:  # a defect, which was answered if that was still possible
            traceback.print_exception(error, file=sys.stderr)

    def _refusal(self, headers: Headers) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_ours(host, self._names):
            return "Host is not an address or name of this server; names=[NAME] adds one"
        same = origin is None or origin.partition("://")[2] == host
        # Browsers say so; a page that is opened from a link in another one is what they call a navigation.
        site = headers.get("sec-fetch-site", "none")
        linked = headers.get("sec-fetch-mode") == "navigate"
        if not same or (site in ("cross-site", "same-site") and not linked):
            return "another website asks: only this server's own pages and programs may"
        return None


async def read_body(request: Request, limit: int) -> bytes:
    """The body, as long as it has at most `limit` bytes. Raises `Refused` for a longer one, as soon as it is."""
    too_large = Refused(413, f"the request has more than {limit:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def media_type(request: Request) -> str:
    """Of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
