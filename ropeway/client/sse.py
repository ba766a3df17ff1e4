"""Server-sent events: a queue's event stream as the bytes that a browser's `EventSource` reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, overload

import msgspec

from ..errors import InvalidOption
from ..job.choices import yes_or_no
from ..job.durations import Duration, milliseconds
from ..job.events import Event
from ..job.names import job_id
from ..showing import shown
from .blocking_iteration import iterate
from .event_hub import Wanted
from .events import position, read_events
from .publishing import own_event, streamed_event
from .sync_queue import SyncQueue

if TYPE_CHECKING:
    from .queue import Queue

MEDIA_TYPE: Final = "text/event-stream"
HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""For the response: neither caches nor proxies may hold events back."""
RESUMES_AT: Final = "Last-Event-ID"
"""The header by which a browser says what it has seen, when it connects again."""
CANNOT_RESUME: Final = f"{RESUMES_AT} is not the id of an event"
"""The error, with status 400, for a client whose header is no event id."""

RECONNECT_AFTER: Final = 2_000
"""Milliseconds after which a browser that was cut off connects again."""
PING_EVERY: Final = 15
ACTIVE_SHOWN: Final = 100
"""Most running jobs that a snapshot lists."""

_PING: Final = b": ping\n\n"


class StreamOptions(TypedDict, total=False):
    """What a stream of server-sent events consists of."""

    snapshot: bool
    """Begins with a message of type `snapshot` that says how the queue stands, or with `job` that job.

    It is sent again after a gap, and not when a stream is resumed without one.
    """
    after: str
    """As that of `Queue.events`. Given the browser's `Last-Event-ID`, the stream resumes there."""
    job: str | None
    """Only events of this job."""
    names: Collection[str] | None
    """Only events of these names, such as `"completed"`, and those in `published`."""
    published: Collection[str] | None
    """Only events that the application publishes under these names, and those in `names`."""
    ping: Duration
    """How long nothing is sent before a comment keeps the connection alive; 15 seconds by default."""


@overload
def event_stream(queue: Queue, **options: Unpack[StreamOptions]) -> AsyncGenerator[bytes, None]: ...
@overload
def event_stream(queue: SyncQueue, **options: Unpack[StreamOptions]) -> Generator[bytes, None, None]: ...
def event_stream(queue: Queue | SyncQueue, **options: Unpack[StreamOptions]) -> Any:
    """The queue's events as server-sent events, for any framework that can send an iterator of bytes.

    Each message has the event's id, its name as the type, and the event as JSON. All streams of a queue share one
    reader of the store. A reader that does not keep up gets a `gap` event instead of what it missed. Close it, or
    cancel the task that reads it: then nothing is left behind. Given `queue.sync`, the iterator is a plain one.
    """
    make = _checked(**options)
    if isinstance(queue, SyncQueue):
        return iterate(lambda: make(queue.awaited), "async for message in event_stream(queue)")
    return make(queue)


def _checked(
    *,
    snapshot: bool = False,
    after: str = "now",
    job: str | None = None,
    names: Collection[str] | None = None,
    published: Collection[str] | None = None,
    ping: Duration = PING_EVERY,
) -> Callable[[Queue], AsyncGenerator[bytes, None]]:
    start, first = position(after), yes_or_no("snapshot", snapshot)
    wanted = _filter(None if job is None else job_id(job), _wanted_names(names, published))
    idle = milliseconds(ping, "ping") / 1000
    if not idle:
        raise InvalidOption("ping", "cannot be 0: it is how long the stream may be silent")
    return lambda queue: _stream(queue, first, start, job, wanted, idle)


async def _stream(
    queue: Queue, snapshot: bool, after: str, job: str | None, wanted: Wanted, idle: float
) -> AsyncGenerator[bytes, None]:
    live = await queue.hub.subscribe(wanted)
    try:
        yield b"retry: %d\n\n" % RECONNECT_AFTER
        replayed: set[str] = set()
        if after == "now":
            if snapshot:
                yield await _snapshot(queue, job, live.start)
        else:
            async with aclosing(read_events(queue.store, queue.name, after, follow=False)) as kept:
                async for event in kept:
                    replayed.add(event.id)
                    if wanted(event):
                        yield _encoded(event)
                    if event.name == "gap" and snapshot:
                        yield await _snapshot(queue, job, event.id)
        while True:
            next_one = await live.next(idle)
            if next_one is None:
                yield _PING
            elif next_one.id not in replayed or next_one.name == "gap":
                # The subscription began before the replay, so only its first events can be in both.
                replayed.clear()
                yield _encoded(next_one)
                if next_one.name == "gap" and snapshot:
                    yield await _snapshot(queue, job, next_one.id)
    finally:
        await queue.hub.unsubscribe(live)


def _wanted_names(names: Collection[str] | None, published: Collection[str] | None) -> set[str] | None:
    """None if events of all names are."""
    for option, given in {"names": names, "published": published}.items():
        if isinstance(given, str):
            raise InvalidOption(option, f"cannot be {shown(given)}: give a list of names")
    if names is None and published is None:
        return None
    return {*(streamed_event("names", name) for name in names or ()), *map(own_event, published or ())}


def _filter(job: str | None, names: Collection[str] | None) -> Wanted:
    return lambda event: (
        event.name == "gap" or ((job is None or event.job_id == job) and (names is None or event.name in names))
    )


def _encoded(event: Event) -> bytes:
    return _message(event.id, event.name, event)


def _message(id: str, name: str, data: Any) -> bytes:
    # JSON has no line breaks of its own, and names have no control characters, so that nothing can end the message.
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (id.encode(), name.encode(), msgspec.json.encode(data))


async def _snapshot(queue: Queue, job: str | None, id: str) -> bytes:
    if job is not None:
        found = await queue.get(job)
        return _message(id, "snapshot", {"queue": queue.name, "job": found and found.snapshot.as_dict()})
    settings = await queue.settings()
    active = await queue.find("active", limit=ACTIVE_SHOWN)
    return _message(
        id,
        "snapshot",
        {
            "queue": queue.name,
            "counts": await queue.counts(),
            "paused": settings.paused,
            "paused_names": settings.paused_names,
            "active": [
                {
                    "id": each.id,
                    "name": each.name,
                    "progress": each.snapshot.progress,
                    "started_at": each.snapshot.started_at,
                }
                for each in active
            ],
        },
    )
