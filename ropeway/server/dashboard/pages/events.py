"""Events: the newest first, and a live tail of them. What is shown is in the address."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from ....client.events import is_event_id
from ....client.past_events import Wanted, newest_events
from ....errors import InvalidOption
from ....job.events import EVENT_NAMES, LOCAL_EVENTS
from ....job.names import job_id, job_name, queue_name
from ..visits import Visit, page
from .jobs import MOST_QUEUES

PER_PAGE: Final = 100
SCAN: Final = 2_000
"""Events that are looked at for one page."""
NAMES: Final = tuple(name for name in EVENT_NAMES if name not in LOCAL_EVENTS)
"""Those that a store writes; applications publish others."""


async def list_events(visit: Visit) -> Response:
    queue, name, job, before = visit.arg("queue"), visit.arg("event"), visit.arg("job"), visit.arg("before")
    if before and not (queue and is_event_id(before)):
        raise InvalidOption("before", f"cannot be {before[:40]!r}: it is the id of an event, and needs a queue")
    known = await visit.queues()
    if queue:
        visit.reach([queue_name(queue)])
    chosen = [visit.broker.queue(queue)] if queue else known[:MOST_QUEUES]
    wanted = Wanted(job_name(name) if name else None, job_id(job) if job else None)
    found = await newest_events(chosen, wanted, limit=PER_PAGE, most=SCAN, before=before or None)
    given = {field: value for field, value in (("queue", queue), ("event", name), ("job", job)) if value}
    followed = {field: value for field, value in given.items() if field == "queue" or (field == "job" and queue)}
    return visit.page(
        "events.html",
        section="Events",
        title="Events",
        # An older page stays as it is.
        live="" if before else f"{visit.root}/live?{urlencode(followed)}" if followed else f"{visit.root}/live",
        found=found,
        is_cut=found.has_more and len(found.events) < PER_PAGE,
        given=given,
        before=before,
        queue=queue,
        event=name,
        job=job,
        names=NAMES,
        queues=[each.name for each in known],
        left_out=0 if queue else len(known) - len(chosen),
    )


ROUTES: Final = (page("GET", "/events", list_events, "The newest events."),)
