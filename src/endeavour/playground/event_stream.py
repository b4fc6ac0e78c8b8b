"""Server-sent events, and work that ends when its client goes away. Knows neither models nor requests.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


class ClientGone(Exception):
    """Nobody is there to receive an answer."""


def to_json(content: object) -> str:
    """Compact, characters as they are; raises `ValueError` for NaN and infinities, which are no JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def event(name: str, data: object) -> str:
    """One event; the data is one line of JSON."""
    return f"event: {name}\ndata: {to_json(data)}\n\n"


class EventStream(StreamingResponse):
    """Sends events until there are no more or the client is gone; then calls `close`."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], close: Callable[[], None]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(ClientGone):
                await while_connected(receive, self.stream_response(send))
        finally:
            self._close()


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """What `work` returns. Raises `ClientGone`, and cancels it, as soon as the client is; its body must be read."""
    gone = asyncio.ensure_future(_disconnected(receive))
    done = asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise ClientGone
        return done.result()
    finally:
        for task in (gone, done):
            task.cancel()
        await asyncio.gather(gone, done, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
