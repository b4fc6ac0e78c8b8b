"""Answers in JSON, and which answer becomes of which error."""

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from endeavour.errors import UserError
from endeavour.playground.event_stream import ClientGone, to_json
from endeavour.playground.safety import Refused
from endeavour.playground.systems import NotFound
from endeavour.playground.worker import Busy, Cancelled

RETRY_SECONDS = "1"
DEFECT = 500


def answer(content: object) -> Response:
    return Response(to_json(content), media_type="application/json")


# Each of these is answered by `failed`; of an `Exception` that is none of the others the terminal is told besides.
FAILURES = (HTTPException, ClientDisconnect, ClientGone, UserError, Refused, Busy, Exception)


async def failed(request: Request, error: Exception) -> Response:
    status, message = status_and_message(error)
    return Response(to_json({"error": message}), status, _headers(status, error), "application/json")


def _headers(status: int, error: Exception) -> dict[str, str]:
    own = error.headers if isinstance(error, HTTPException) else None
    # RFC 9110 demands them of a 405; of files Starlette names none.
    usual = {503: {"Retry-After": RETRY_SECONDS}, 405: {"Allow": "GET, HEAD"}}
    return {**usual.get(status, {}), **(own or {})}


def status_and_message(error: BaseException) -> tuple[int, str]:
    """The code of an answer to a request that ended with `error`, and what is said: one or two lines."""
    match error:
        case Refused():
            return error.status, str(error)
        case HTTPException():
            return error.status_code, error.detail
        case NotFound():
            return 404, str(error)
        case UserError():
            return 400, str(error)
        case Busy():
            return 503, "too many requests are waiting; try again in a moment"
        case ClientGone() | ClientDisconnect() | Cancelled():
            return 499, "the client has gone away"  # which nobody reads
        case _:
            return DEFECT, f"{type(error).__name__}: this is a defect of endeavour; the terminal says where"
