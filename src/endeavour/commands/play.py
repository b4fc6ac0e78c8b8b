"""`endeavour play`: a page in which a trained run is watched, questioned and steered, and translations for programs."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.playground.limits import Limits
from endeavour.runs.run import select_runs
from endeavour.settings import STRICT
from endeavour.training.device import choose_device


@dataclass(kw_only=True, config=STRICT)
class PlayRoot:
    """Values and their meaning: conf/play.yaml."""

    run: str | None
    host: str
    port: Annotated[int, Field(ge=0, le=65535)]
    open: bool
    device: str
    output_folder: str
    quantization: Literal["int8", "float32"]
    limits: Limits
    decoding: DecodingConfig


def play(config: PlayRoot) -> None:
    """Serves until it is stopped; prints the address.

    Raises:
        UserError: no such run, or it is damaged; no such address, or no free port.
        KeyboardInterrupt: stopped by Ctrl-C, after the requests in flight.
    """
    for package in ("starlette", "uvicorn"):
        require(package, extra="play")
    from endeavour.playground.safety import is_loopback
    from endeavour.playground.server import Playground
    from endeavour.playground.serving import Server, listen, open_browser, url_of
    from endeavour.playground.systems import Systems

    run, *others = select_runs(config.run, Path(config.output_folder))
    if others:
        raise UserError("the page begins with one run and offers all others: name one with run=…")
    device = choose_device(config.device)
    systems = Systems(run, config.decoding, device, config.quantization, config.limits.systems)
    systems.get(None).translator(1)  # loaded before anybody waits for it
    with listen(config.host, config.port) as listening:
        url = url_of(listening)
        port = listening.getsockname()[1]
        if port != config.port and config.port:
            print(f"port {config.port} is taken; this is {port}", file=sys.stderr)
        if not is_loopback(config.host):
            print(
                f"warning: host={config.host} lets everybody who reaches this machine use the page, without a password",
                file=sys.stderr,
            )
        playground = Playground(systems, config.limits)
        server = Server(playground.app(config.host), playground.stop)
        print(f"playground: {url}/ ({run.name}); Ctrl-C ends it", flush=True)
        if config.open and not open_browser(f"{url}/"):
            print("open=true: no browser was found; open the address above yourself", file=sys.stderr)
        server.run(sockets=[listening])
        playground.close()
    if server.signal == signal.SIGINT:
        raise KeyboardInterrupt
