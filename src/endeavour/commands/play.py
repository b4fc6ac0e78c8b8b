"""`endeavour play`: a page in which a trained run is watched, questioned and steered, and translations for programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from endeavour.commands.opened import TranslatingRoot
from endeavour.native import functions as native
from endeavour.optional import require
from endeavour.playground.limits import Limits
from endeavour.runs.choice import select_run
from endeavour.settings import STRICT
from endeavour.training.device import choose_device

if TYPE_CHECKING:
    from endeavour.playground.server import Playground


@dataclass(kw_only=True, config=STRICT)
class PlayRoot(TranslatingRoot):
    """Values and their meaning: conf/play.yaml."""

    takes_begun_runs = True  # not a key: a run that is still being trained can be watched

    host: str
    names: list[str]
    port: Annotated[int, Field(ge=0, le=65535)] | None
    open: bool
    limits: Limits


def play(config: PlayRoot) -> None:
    """Serves until Ctrl-C or SIGTERM, after which the requests in flight are finished; prints the address.

    Raises:
        UserError: no such run, or it is damaged; no such address, or no free port.
    """
    for package in ("starlette", "uvicorn"):
        require(package, extra="play")
    from endeavour.playground.safety import is_loopback
    from endeavour.playground.serving import Server, listen, open_browser, url_of

    playground = open_playground(config)
    with listen(config.host, config.port) as listening:
        if not is_loopback(config.host):
            _note(
                f"warning: host={config.host} lets whoever reaches this machine use the page; it asks no password"
            )
        server = Server(playground.app([config.host, *config.names]))
        url = url_of(listening)
        print(f"playground: {url} ({playground.systems.default.name}); Ctrl-C ends it", flush=True)
        if config.open and not open_browser(url):
            _note("open=true: there is no browser here; open the address above in yours")
        server.run(sockets=[listening])
    playground.close()


def open_playground(config: PlayRoot) -> "Playground":
    """With the model that it begins with loaded, and kernels compiled, before anybody waits for them."""
    from endeavour.playground.server import Playground
    from endeavour.playground.systems import NotFound, Systems

    run = select_run(
        config.run,
        Path(config.output_folder),
        "the page begins with one run and offers all others",
        begun=True,
    )
    device = choose_device(config.device)
    systems = Systems(run, config.decoding, device, config.limits.systems)
    if device.type == "cpu":
        native.why_not()
    try:
        systems.get(None).translator(1)
    except NotFound:
        _note(
            "no model yet: the view Runs shows the training, and the others work from the first checkpoint on"
        )
    return Playground(systems, config.limits)


def _note(text: str) -> None:
    print(text, file=sys.stderr)
