"""A port to listen at, and the server that runs there until a signal ends it. Knows an ASGI application only."""

import errno
import os
import socket
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from endeavour.errors import UserError
from endeavour.training.signals import StopSignal

PORTS = range(8600, 8701)  # tried one after the other where none is asked for
BACKLOG = 128
GRACE = 30  # seconds that requests in flight have to finish, or a client that sends half of one would keep us for ever


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens at `port`, 0 being any free one, or at the first free one of `PORTS`.

    Raises:
        UserError: no such address here, or no port is free.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # the latter for a name that is too long
        raise UserError(f"host={host}: not an address of this machine ({error})") from error
    for number in PORTS if port is None else (port,):
        # Named, because asyncio turns off Nagle's algorithm for TCP by name only; answers would wait 40 ms with it.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # elsewhere this would share the port with another server
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((address[0], number, *address[2:]))
            opened.listen(BACKLOG)
        except OSError as error:
            opened.close()
            if error.errno == errno.EADDRINUSE:
                continue
            key = f"port={number}" if error.errno == errno.EACCES else f"host={host}"
            raise UserError(f"{key}: cannot listen there ({error.strerror}); choose another") from error
        return opened
    taken = f"all from {PORTS[0]} to {PORTS[-1]} are" if port is None else "it is"
    raise UserError(f"port={'null' if port is None else port}: {taken} taken; choose another")


def url_of(listening: socket.socket) -> str:
    """The address of the page for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Serves until a signal of `StopSignal`; requests in flight are then finished. A second has its usual effect."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
            )
        )

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """In place of uvicorn's, which ends with the signal's usual effect."""
        with StopSignal(self.stop):
            yield

    def stop(self) -> None:
        """No further connections; returns at once."""
        self.should_exit = True


def open_browser(url: str) -> bool:
    """Opens a page where there is a browser with a window; one in a terminal would take the terminal from us."""
    has_windows = (
        sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    )
    return has_windows and webbrowser.open(url)
