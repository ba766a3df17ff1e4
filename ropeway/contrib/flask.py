"""Flask."""

from __future__ import annotations

from typing import Unpack

from flask import Response, abort, request

from ..client.events import is_event_id
from ..client.queue import Queue
from ..client.sse import CANNOT_RESUME, HEADERS, MEDIA_TYPE, RESUMES_AT, StreamOptions, event_stream


def event_response(queue: Queue, **options: Unpack[StreamOptions]) -> Response:
    """The queue's events for an `EventSource`; it resumes where the browser was cut off. See `ropeway.event_stream`.

    Each open stream takes a thread of the server.
    """
    if resumed := request.headers.get(RESUMES_AT):
        if not is_event_id(resumed):
            abort(400, CANNOT_RESUME)
        options["after"] = resumed
    return Response(event_stream(queue.sync, **options), mimetype=MEDIA_TYPE, headers=dict(HEADERS))
