"""Starlette and FastAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Unpack

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ..client.events import is_event_id
from ..client.queue import Queue
from ..client.sse import CANNOT_RESUME, HEADERS, MEDIA_TYPE, RESUMES_AT, StreamOptions, event_stream


def event_response(request: Request, queue: Queue, **options: Unpack[StreamOptions]) -> StreamingResponse:
    """The queue's events for an `EventSource`; it resumes where the browser was cut off. See `ropeway.event_stream`."""
    if resumed := request.headers.get(RESUMES_AT):
        if not is_event_id(resumed):
            raise HTTPException(400, CANNOT_RESUME)
        options["after"] = resumed
    return StreamingResponse(event_stream(queue, **options), media_type=MEDIA_TYPE, headers=HEADERS)


def lifespan(*parts: AbstractAsyncContextManager[Any]) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Runs queues, workers and brokers beside the requests: `FastAPI(lifespan=lifespan(queue, Worker(queue)))`.

    They are opened in this order when the application starts, and closed in the opposite order when it ends.
    """

    @asynccontextmanager
    async def run(_: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part)
            yield

    return run
