"""How fast `endeavour play` answers: the page's requests one at a time, and translations for many clients at once."""

import math
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

from endeavour.benchmark.browser import open_pages
from endeavour.benchmark.played_site import PlayedRun, Site, answer, play, search, sentences, translate
from endeavour.benchmark.steps import Results, Steps
from endeavour.errors import UserError

BEAM = 5
JOINED_LINES = (64, 1)  # of several requests; with 1 each is translated alone


class Request(NamedTuple):
    """Of one of the clients that ask at the same time; `answered` is None where it failed."""

    seconds: float
    answered: str | None
    expected: str


def measure_page(run: PlayedRun, *, repeats: int, steps: Steps) -> Results:
    """Milliseconds until the page is ready, the first step of a search is there, all of it, and the attention.

    Returns:
        One row each: `what`, `count`, `median_milliseconds` and `percentile_95_milliseconds`; the page's row is left
        out where there is no browser.
    """
    done = steps(2 * repeats)
    with play(run) as site:
        texts = sentences(site)
        times: dict[str, list[float]] = {"first result": [], f"beam of {BEAM}": [], "attention": []}
        with closing(site.connect()) as connection:
            for turn in range(repeats):
                text = texts[turn % len(texts)]
                first, whole, best = _time_search(connection, text)
                started = time.perf_counter()
                answer(connection, "POST", "/api/attention", {"text": text, "target": {"ids": best}})
                taken = first, whole, time.perf_counter() - started
                for seconds, value in zip(times.values(), taken, strict=True):
                    seconds.append(value)
                done()
        pages = open_pages(f"http://127.0.0.1:{site.port}", repeats, done)
    return [_row(what, seconds) for what, seconds in ({"page ready": pages} | times).items() if seconds]


def _row(what: str, seconds: Sequence[float]) -> dict[str, Any]:
    return {"what": what, "count": len(seconds)} | _percentiles(seconds)


def _percentiles(seconds: Sequence[float]) -> dict[str, float | None]:
    if not seconds:
        return dict.fromkeys(("median_milliseconds", "percentile_95_milliseconds"))
    ordered = sorted(seconds)
    return {
        "median_milliseconds": 1000 * statistics.median(ordered),
        "percentile_95_milliseconds": 1000 * ordered[math.ceil(0.95 * len(ordered)) - 1],
    }


def _time_search(connection: HTTPConnection, text: str) -> tuple[float, float, list[int]]:
    """Seconds until the first step that says something, and until the result; the ids of the best hypothesis."""
    started = time.perf_counter()
    first, whole = 0.0, 0.0
    best: list[int] = []
    for name, data in search(connection, text, beam_size=BEAM):
        if name == "step" and data["step"] == 1:
            first = time.perf_counter() - started
        if name == "result":
            whole, best = time.perf_counter() - started, data["hypotheses"][0]["ids"]
    if not whole:
        raise UserError("a search of the playground ended without a result")
    return first, whole, best


def measure_serving(
    run: PlayedRun, *, clients: Sequence[int], seconds: float, joined_lines: Sequence[int], steps: Steps
) -> Results:
    """Translations a second for so many clients at a time, each of which asks again as soon as it is answered.

    Args:
        seconds: for which each number of clients asks.
        joined_lines: the server's limits.joined_lines, a server each.

    Returns:
        A row for each of both: `requests_per_second`, percentiles of the latency, `memory_before` and `memory_after`
        in bytes, `failed` requests, and `wrong` ones, answered otherwise than the same sentence when it was asked for
        alone.
    """
    done = steps(len(joined_lines) * len(clients))
    rows: Results = []
    for joined in joined_lines:
        with play(run, f"limits.joined_lines={joined}") as site:
            (target,) = (code for language in site.get("/languages") for code in language["targets"])
            with closing(site.connect()) as connection:
                alone = [(text, translate(connection, text, target)) for text in sentences(site)]
            for count in clients:
                before = site.memory()
                requests, elapsed = _ask_together(site, alone, target, count, seconds)
                answered = [one for one in requests if one.answered is not None]
                rows.append(
                    {
                        "joined_lines": joined,
                        "clients": count,
                        "requests_per_second": len(answered) / elapsed,
                        "memory_before": before,
                        "memory_after": site.memory(),
                        "failed": len(requests) - len(answered),
                        "wrong": sum(one.answered != one.expected for one in answered),
                    }
                    | _percentiles([one.seconds for one in answered])
                )
                done()
    return rows


def _ask_together(
    site: Site, alone: Sequence[tuple[str, str]], target: str, clients: int, seconds: float
) -> tuple[list[Request], float]:
    """All requests, and the seconds that passed until the last was answered."""
    started = time.perf_counter()
    until = started + seconds

    def ask(number: int) -> list[Request]:
        connection, seen = site.connect(), list[Request]()
        turn = number * len(alone) // clients  # each begins with another sentence
        while time.perf_counter() < until:
            text, expected = alone[turn % len(alone)]
            turn, sent = turn + 1, time.perf_counter()
            try:
                answered = translate(connection, text, target)
            except (OSError, HTTPException, UserError):
                answered = None
                connection.close()
            seen.append(Request(time.perf_counter() - sent, answered, expected))
        connection.close()
        return seen

    with ThreadPoolExecutor(clients) as pool:
        requests = [request for seen in pool.map(ask, range(clients)) for request in seen]
    return requests, time.perf_counter() - started
