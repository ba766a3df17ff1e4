"""The events of a queue, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from ...client.events import is_event_id
from ...client.sse import CANNOT_RESUME, HEADERS, MEDIA_TYPE, RESUMES_AT, event_stream
from ..problems import Refused
from ..routes import Call, Route


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    snapshot: bool = False
    """Begins with how the queue stands, or with `job` that job."""
    after: str = "now"
    """"now", "start", or the id of an event; the header `Last-Event-ID` goes first."""
    job: str | None = None
    """Only events of this job."""
    names: list[str] = []
    """Only events of these names, and of those in `published`."""
    published: list[str] = []
    """Only events that an application publishes under these names, and of those in `names`."""


async def events(call: Call) -> Response:
    asked: EventsQuery = call.query
    if call.scope["method"] == "HEAD":
        return Response(media_type=MEDIA_TYPE, headers=dict(HEADERS))
    stream = event_stream(
        call.queue,
        snapshot=asked.snapshot,
        after=_start(call, asked),
        job=asked.job,
        names=asked.names or None,
        published=asked.published or None,
    )
    call.broker.admission.check_waiting()
    return StreamingResponse(_while_serving(call, stream), media_type=MEDIA_TYPE, headers=dict(HEADERS))


def _start(call: Call, asked: EventsQuery) -> str:
    resumed = call.headers.get(RESUMES_AT.lower().encode(), b"").decode("latin-1")
    if resumed and not is_event_id(resumed):
        raise Refused(400, "invalid-header", CANNOT_RESUME)
    return resumed or asked.after


async def _while_serving(call: Call, stream: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The messages until the client goes, the server ends, or the token is not valid any more."""
    ending: asyncio.Future[Any] = asyncio.ensure_future(call.broker.closing.wait())
    invalid: asyncio.Future[Any] = asyncio.ensure_future(call.broker.authenticator.until_invalid(call.principal))
    message: asyncio.Future[Any] = asyncio.ensure_future(anext(stream))
    try:
        with call.broker.admission.stream():
            while True:
                await asyncio.wait([message, ending, invalid], return_when=asyncio.FIRST_COMPLETED)
                if invalid.done() or not message.done():
                    return
                yield message.result()
                message = asyncio.ensure_future(anext(stream))
    finally:
        ending.cancel()
        invalid.cancel()
        # It closes the stream: not waited for, because starlette cancels whatever a cancelled response waits for.
        if not message.cancel():
            await stream.aclose()


ROUTES: Final = (
    Route(
        "GET",
        "/v1/queues/{queue}/events",
        events,
        ("follow",),
        "What happens in a queue, as server-sent events.",
        query=EventsQuery,
        answer=str,
        media=MEDIA_TYPE,
        tag="queues",
    ),
)
