"""Django."""

from __future__ import annotations

from typing import Any, Unpack

from django.core.exceptions import BadRequest
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from ..client.events import is_event_id
from ..client.queue import Queue
from ..client.sse import CANNOT_RESUME, HEADERS, MEDIA_TYPE, RESUMES_AT, StreamOptions, event_stream


def event_response(request: HttpRequest, queue: Queue, **options: Unpack[StreamOptions]) -> StreamingHttpResponse:
    """The queue's events for an `EventSource`; it resumes where the browser was cut off. See `ropeway.event_stream`.

    Under WSGI each open stream takes a thread of the server.
    """
    if resumed := request.headers.get(RESUMES_AT):
        if not is_event_id(resumed):
            raise BadRequest(CANNOT_RESUME)
        options["after"] = resumed
    stream: Any = (
        event_stream(queue, **options) if isinstance(request, ASGIRequest) else event_stream(queue.sync, **options)
    )
    return StreamingHttpResponse(stream, content_type=MEDIA_TYPE, headers=dict(HEADERS))
