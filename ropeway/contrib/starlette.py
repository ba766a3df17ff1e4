"""Starlette and FastAPI."""

from __future__ import annotations

from typing import Unpack

from starlette.requests import Request
from starlette.responses import StreamingResponse

from ..client.queue import Queue
from ..client.sse import HEADERS, MEDIA_TYPE, RESUMES_AT, StreamOptions, event_stream


def event_response(request: Request, queue: Queue, **options: Unpack[StreamOptions]) -> StreamingResponse:
    """The queue's events for an `EventSource`; it resumes where the browser was cut off. See `ropeway.event_stream`."""
    if resumed := request.headers.get(RESUMES_AT):
        options["after"] = resumed
    return StreamingResponse(event_stream(queue, **options), media_type=MEDIA_TYPE, headers=HEADERS)
