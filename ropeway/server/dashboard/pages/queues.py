"""Queues, one queue, and what can be done with it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from starlette.responses import Response

from ....errors import InvalidOption
from ....job.durations import milliseconds
from ....job.names import job_name
from ....job.states import STATES, state_named
from ....showing import plural
from ....store.values import BATCH
from ...problems import Refused
from ..charts import throughput, waits
from ..summaries import Summary
from ..visits import Visit, page
from .overview import span_of

PER_PAGE: Final = 50
SAMPLE: Final = 100
"""Newest jobs of a state in which the names of a queue are counted."""
MOST_REMOVED: Final = 100_000
"""Most jobs that one click removes; the page says that more are left."""


async def list_queues(visit: Visit) -> Response:
    after = visit.arg("after")
    wanted = visit.arg("text").lower()
    names = [queue for queue in await visit.queues() if queue.name > after and wanted in queue.name.lower()]
    shown = names[:PER_PAGE]
    summaries = visit.dashboard.summaries
    workers = await summaries.workers()
    return visit.page(
        "queues.html",
        section="Queues",
        title="Queues",
        live=f"{visit.root}/live",
        now=await summaries.now(),
        queues=[await summaries.of(queue) for queue in shown],
        workers=Counter(name for worker in workers for name in worker.queues),
        after=after,
        text=visit.arg("text"),
        next=shown[-1].name if len(names) > len(shown) else None,
    )


async def show_queue(visit: Visit) -> Response:
    queue, summaries = visit.queue, visit.dashboard.summaries
    span = span_of(visit)
    summary: Summary = await summaries.of(queue)
    if not sum(summary.counts.values()) and queue.name not in await summaries.names():
        raise Refused(404, "no-such-queue", f"there is no queue {queue.name!r}: it appears with its first job")
    buckets = await summaries.buckets(queue, span)
    workers = [worker for worker in await summaries.workers() if queue.name in worker.queues]
    names: dict[str, dict[str, Any]] = {}
    for state in (state for state in STATES if summary.counts[state]):
        for job in await queue.find(state, limit=SAMPLE, newest_first=True):
            row = names.setdefault(job.name, {"count": 0, "failed": 0})
            row["count"] += 1
            row["failed"] += state == "failed"
    for name in summary.settings.paused_names:
        names.setdefault(name, {"count": 0, "failed": 0})
    return visit.page(
        "queue.html",
        section="Queues",
        title=queue.name,
        live=f"{visit.root}/live?queue={queue.name}",
        queue=summary,
        span=span,
        now=await summaries.now(),
        charts=[throughput(buckets), waits(buckets)],
        workers=workers,
        names=dict(sorted(names.items())),
        sample=SAMPLE,
    )


async def pause(visit: Visit) -> Response:
    name = visit.field("name")
    await visit.queue.pause(job_name(name) if name else None)
    return _done(visit, f"Jobs named {name} are paused." if name else "The queue is paused.")


async def resume(visit: Visit) -> Response:
    name = visit.field("name")
    await visit.queue.resume(job_name(name) if name else None)
    return _done(visit, f"Jobs named {name} go on." if name else "The queue goes on.")


async def limit(visit: Visit) -> Response:
    text = visit.field("limit")
    if (text and not text.isascii()) or (text and not text.isdigit()):
        raise InvalidOption("limit", f"cannot be {text[:40]!r}: use a whole number, or nothing for no limit")
    await visit.queue.set_global_concurrency(int(text) if text else None)
    return _done(visit, f"At most {plural(int(text), 'job')} at once." if text else "The limit is gone.")


async def clean(visit: Visit) -> Response:
    state = state_named(visit.field("state"))
    if state not in ("completed", "failed", "cancelled"):
        raise InvalidOption("state", f"cannot be {state!r} here: clean removes jobs that have ended")
    age = milliseconds(visit.field("older_than") or 0, "older_than")
    removed, more = 0, True
    while more and removed < MOST_REMOVED:
        cleaned = await visit.store.clean(visit.queue.name, state, older_than=age, limit=BATCH)
        removed, more = removed + len(cleaned.ids), cleaned.more
    return _done(visit, f"Removed {plural(removed, f'{state} job')}{'; there are more' if more else ''}.")


async def drain(visit: Visit) -> Response:
    removed, more = 0, False
    for state in ("waiting", "delayed") if visit.field("delayed") else ("waiting",):
        has_more = True
        while has_more and removed < MOST_REMOVED:
            cleaned = await visit.store.clean(visit.queue.name, state_named(state), limit=BATCH)
            removed, has_more = removed + len(cleaned.ids), cleaned.more
        more |= has_more
    return _done(visit, f"Removed {plural(removed, 'job')} that had not started{'; there are more' if more else ''}.")


def _done(visit: Visit, note: str) -> Response:
    visit.dashboard.summaries.forget(visit.params["queue"])
    return visit.back(f"/queues/{visit.params['queue']}", note)


_QUEUE: Final = "/queues/{queue}"

ROUTES: Final = (
    page("GET", "/queues", list_queues, "All queues."),
    page("GET", _QUEUE, show_queue, "One queue."),
    page("POST", f"{_QUEUE}/pause", pause, "Stops claims of a queue or a name."),
    page("POST", f"{_QUEUE}/resume", resume, "Ends a pause."),
    page("POST", f"{_QUEUE}/limit", limit, "Sets the global concurrency."),
    page("POST", f"{_QUEUE}/clean", clean, "Removes ended jobs."),
    page("POST", f"{_QUEUE}/drain", drain, "Removes jobs that have not started."),
)
