"""The routes: what is asked and answered, and what becomes of errors. Work with models is done by the worker.

/, /static      the page                    /translate, /languages, /health, /openapi.json   for programs
/api/…          what the page asks for

docs/playground.md and openapi.yaml describe those for programs.
"""

import asyncio
import mimetypes
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from endeavour.decoding.translator import Translation
from endeavour.directions import Direction
from endeavour.errors import UserError, named_memory_error
from endeavour.playground import libretranslate, pair_views, records, schemas
from endeavour.playground.answers import DEFECT, FAILURES, answer, failed, status_and_message
from endeavour.playground.event_stream import EventStream, event, to_json, while_connected
from endeavour.playground.limits import Limits
from endeavour.playground.log_reader import read_log
from endeavour.playground.openapi import describe_interface
from endeavour.playground.safety import Guard, Refused, media_type, read_body
from endeavour.playground.search_view import show_search
from endeavour.playground.systems import System, Systems
from endeavour.playground.worker import Job, Lines, Worker

P = TypeVar("P", bound=schemas.Pair)
R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")

STATIC = Path(__file__).parent / "static"
_NO_MEMORY = "this sentence", "try a shorter one"


class Playground:
    """The state of a server, and an endpoint for each route."""

    def __init__(self, systems: Systems, settings: Limits) -> None:
        self.systems = systems
        self.settings = settings
        self.worker = Worker(
            self._translate_lines, waiting=settings.waiting, joined_lines=settings.joined_lines
        )
        self.direction: Direction = systems.default.config.direction
        self._language = systems.default.source_language if systems.decoding.split_sentences else None

    def app(self, names: Collection[str]) -> ASGIApp:
        """`names` are those by which the server is reached."""
        mimetypes.add_type("text/javascript", ".js")  # which some systems call something else
        handlers: Any = dict.fromkeys(FAILURES, failed)
        app = Starlette(routes=self.routes(), exception_handlers=handlers)
        app.router.redirect_slashes = False
        return Guard(app, names)

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", self._page),
            Route("/api/runs", self._runs),
            Route("/api/evaluation", self._evaluation),
            Route("/api/log", self._log),
            Route("/api/search", self._search, methods=["POST"]),
            *(
                Route(f"/api/{name}", partial(self._show, kind, show), methods=["POST"])
                for name, (kind, show) in pair_views.VIEWS.items()
            ),
            Route("/translate", self._translate, methods=["POST"]),
            Route("/languages", self._languages),
            Route("/health", self._health),
            Route("/openapi.json", self._openapi),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def close(self) -> None:
        """Waits for all work that was accepted."""
        self.worker.close()

    # The page

    async def _page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def _runs(self, request: Request) -> Response:
        return answer(await run_in_threadpool(self._describe_runs))

    def _describe_runs(self) -> dict[str, Any]:
        default = self.systems.default
        runs, damaged = records.describe_runs(default.root)
        for entry in runs:
            if entry["name"] == default.name:
                entry["decoding"] = records.describe_decoding(self.systems.decoding)
        return {"default": default.name, "runs": runs, "damaged": damaged}

    async def _evaluation(self, request: Request) -> Response:
        run, folder = _parameters(request, "run", "folder")

        def describe() -> dict[str, Any]:
            return records.describe_evaluation(records.known_run(self.systems.default.root, run), folder)

        return answer(await run_in_threadpool(describe))

    async def _log(self, request: Request) -> Response:
        run, after = _parameters(request, "run", "after")

        def read() -> dict[str, Any]:
            return read_log(records.known_run(self.systems.default.root, run), after)

        return answer(await run_in_threadpool(read))

    async def _search(self, request: Request) -> Response:
        asked = await self._asked(request, schemas.SearchRequest)
        if asked.beam_size is not None and asked.beam_size > self.settings.beam_size:
            raise UserError(f"beam_size={asked.beam_size}: at most {self.settings.beam_size}")
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[str | BaseException | None] = asyncio.Queue()

        def put(item: str | BaseException | None) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(events.put_nowait, item)

        def work(check: Callable[[], None]) -> None:
            system = self.systems.get(asked.system)
            with named_memory_error(*_NO_MEMORY):
                show_search(
                    system, asked, self.settings.pieces, lambda name, data: put(event(name, data)), check
                )

        job = Job(work)
        job.result.add_done_callback(lambda done: put(None if done.cancelled() else done.exception()))
        self.worker.submit(job)
        try:
            first = await while_connected(request.receive, events.get())
        except BaseException:
            job.cancel()
            raise
        if isinstance(first, BaseException):  # nothing was sent yet: this can still be an answer with a code
            raise first
        return EventStream(_events(first, events), job.cancel)

    async def _show(
        self, kind: type[P], show: Callable[[System, P, int], dict[str, Any]], request: Request
    ) -> Response:
        asked = await self._asked(request, kind)

        def work(check: Callable[[], None]) -> str:
            system = self.systems.get(asked.system)
            with named_memory_error(*_NO_MEMORY):
                return to_json(show(system, asked, self.settings.pieces))

        job = Job(work)
        return Response(await self._result(request, job), media_type="application/json")

    # For programs

    async def _translate(self, request: Request) -> Response:
        asked = await self._asked_to_translate(request)
        libretranslate.check_translate(asked, self.direction, self.settings)
        # What takes long for a long text is done beside the loop, which serves others.
        texts = await run_in_threadpool(libretranslate.lines_of_all, asked, self._language)
        sentences = [sentence for lines in texts for line in lines for sentence, _ in line]
        translated: list[list[Translation]] = []
        if sentences:
            translated = await self._result(request, Lines(asked.alternatives + 1, sentences))
        drawn = self.systems.decoding.drawn
        return answer(
            await run_in_threadpool(
                libretranslate.answer, asked, self.direction, texts, translated, drawn=drawn
            )
        )

    def _translate_lines(self, count: int, lines: Sequence[str]) -> list[list[Translation]]:
        return list(self.systems.get(None).translator(count).hypotheses(lines))

    async def _languages(self, request: Request) -> Response:
        return answer(libretranslate.languages(self.direction))

    async def _openapi(self, request: Request) -> Response:
        return answer(describe_interface(self.settings))

    async def _health(self, request: Request) -> Response:
        return answer({"status": "ok"})

    # What they share

    async def _result(self, request: Request, work: Job[T] | Lines[Any]) -> Any:
        """The result of some work; it is cancelled if the client goes away."""
        self.worker.submit(work)
        try:
            return await while_connected(request.receive, asyncio.wrap_future(work.result))
        finally:
            work.cancel()

    async def _asked(self, request: Request, kind: type[R]) -> R:
        if media_type(request) != "application/json":
            raise Refused(415, "Content-Type must be application/json")
        return schemas.parse(kind, await read_body(request, self.settings.body))

    async def _asked_to_translate(self, request: Request) -> schemas.TranslateRequest:
        if media_type(request) == "application/json":
            return await self._asked(request, schemas.TranslateRequest)
        if media_type(request) != "application/x-www-form-urlencoded":
            raise Refused(415, "Content-Type must be application/json or application/x-www-form-urlencoded")
        body = await read_body(request, self.settings.body)
        return schemas.parse_form(body)


async def _events(
    first: str | None, events: "asyncio.Queue[str | BaseException | None]"
) -> AsyncIterator[str]:
    item: str | BaseException | None = first
    while isinstance(item, str):
        yield item
        item = await events.get()
    if item is not None:
        status, message = status_and_message(item)
        if status == DEFECT:
            traceback.print_exception(item, file=sys.stderr)
        yield event("error", {"error": message})


def _parameters(request: Request, *names: str) -> list[str]:
    """Those of the address, each exactly once. Raises `UserError` otherwise."""
    given = request.query_params.multi_items()
    for name, _ in given:
        if name not in names:
            raise UserError(f"{name[:100]!r} is not a parameter of this address")
    for name in names:
        if len(request.query_params.getlist(name)) != 1:
            raise UserError(f"{name}=… is needed once")
    return [request.query_params[name] for name in names]
