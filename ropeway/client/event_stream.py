"""The stream of a queue's events: read, written to and trimmed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from ..job.codec import Json
from ..job.events import EVENTS_KEPT, Event
from ..job.numbers import whole
from .attached import Attached
from .events import newest_event, read_events
from .publishing import event_data, own_event
from .queue_part import queue_part


@queue_part
class EventStream(Attached):
    """The part of `Queue` that reads events, adds those of applications, and drops old ones."""

    def events(self, after: str = "now", *, follow: bool = True) -> AsyncGenerator[Event, None]:
        """The queue's events in order, for as long as you iterate; without `follow`, only past ones.

        `after` is "now" (when the iteration begins), "start" for the oldest kept event (about 10,000 are kept), the
        `id` of an event to resume from, or the result of `newest_event`.
        """
        return read_events(self.store, self.name, after, follow=follow)

    async def newest_event(self) -> str:
        """The current position in the event stream: an `after` with which `events` misses nothing from now on."""
        return await newest_event(self.store, self.name)

    async def publish(self, name: str, data: Mapping[str, Json] | None = None) -> None:
        """Writes an application-defined event into the queue's stream, in order with the events of its jobs.

        A call that raised `StoreUnavailable` may have written it: a repeat may write it twice.
        """
        await self.store.publish(self.name, own_event(name), event_data(data))

    async def trim_events(self, keep: int = 0) -> None:
        """Drops the oldest events: at most `keep` stay, but always the newest.

        Events of one move of a job, such as `added` and `waiting`, are dropped together.

        Without them, `result()` knows nothing of jobs that were removed.
        """
        await self.store.trim_events(self.name, keep=whole("keep", keep, 0, EVENTS_KEPT))
