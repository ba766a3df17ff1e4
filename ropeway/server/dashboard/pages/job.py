"""One job: everything the store knows about it, and what can be done."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response

from ....client.flow_tree import URGENT_FIRST, FlowNode, node_of, read_tree
from ....client.found import FoundJob
from ....client.snapshot import Snapshot, is_due_when_woken
from ....client.timeline import timeline_lines, timeline_of
from ....errors import InvalidOption, JobNotFound
from ....job.codec import Json, decode
from ....job.instants import moment_of
from ....job.states import FINAL, OPEN
from ....job.webhooks import DELIVERIES
from ..copying import as_curl, as_python
from ..graphs import Graph, family_graph
from ..reasons import reasons
from ..redacting import redacted
from ..visits import Visit, page

LINES: Final = 200
"""Log lines of a page."""
CHILDREN: Final = 100
RELATIVES: Final = 8
"""Parents, and children, that are drawn."""
MOST_EVENTS: Final = 12_000
"""Events of a queue in which those of a job are looked for; beyond, its record alone tells what happened."""
MOST_LINES: Final = 500
"""Lines of the timeline that are shown, the newest."""


async def _job(visit: Visit) -> FoundJob:
    job = await visit.queue.get(visit.params["id"])
    if job is None:
        raise JobNotFound(visit.queue.name, visit.params["id"])
    return job


async def show_job(visit: Visit) -> Response:
    queue, summaries = visit.queue, visit.dashboard.summaries
    job = await _job(visit)
    found = job.snapshot
    history = await queue.history(job.id)
    before = visit.arg("before")
    logs = await queue.logs(job.id, after=int(before) if before.isdecimal() else None, limit=LINES, newest_first=True)
    timeline = timeline_lines(await timeline_of(queue, found, history, most=MOST_EVENTS), found)
    children = await queue.children(job.id, limit=CHILDREN) if found.children else None
    family = await _family(visit, job) if found.children or found.parents else None
    summary = await summaries.of(queue)
    workers = [worker for worker in await summaries.workers() if queue.name in worker.queues]
    now = await summaries.now()
    redact = visit.dashboard.options.redact
    data = redacted(redact, "data", found.data)
    return visit.page(
        "job.html",
        section="Jobs",
        title=f"{found.name} · {found.id}",
        live=f"{visit.root}/live?{urlencode({'queue': queue.name, 'job': job.id})}",
        job=found,
        path=f"/queues/{quote(queue.name)}/jobs/{quote(job.id, safe='')}",
        now=now,
        moment=found.finished_at or moment_of(now),
        failures=history.failures,
        lines=[*reversed(logs.lines)],
        older=logs.next,
        timeline=timeline[-MOST_LINES:],
        hidden=max(0, len(timeline) - MOST_LINES),
        children=children,
        family=family,
        delivery=await _delivery(visit, job),
        reasons=reasons(found, summary.settings, summary.counts, workers, children, history.failures, now),
        data=data,
        may_copy=redact is None,
        python=as_python(found, data, visit.store.url),
        curl=as_curl(found, data, _base(visit)) if visit.broker.pages is visit.dashboard else "",
        may_retry=found.state in FINAL,
        next_phase=_next_phase(found),
        may_cancel=found.state in OPEN,
        due_when_woken=is_due_when_woken(found),
    )


def _next_phase(job: Snapshot) -> str | None:
    """The first phase that did not complete, or the first of all; None if it has no phases."""
    unfinished = (phase.name for phase in job.phases if phase.state != "completed")
    return next(unfinished, job.phases[0].name if job.phases else None)


async def _delivery(visit: Visit, job: FoundJob) -> Snapshot | None:
    """The delivery about its end, if there is one and the visitor may see it."""
    found = job.snapshot
    if found.webhook is None or found.origin is not None or found.state not in FINAL:
        return None
    delivery = await visit.queue.delivery(job.id) if visit.principal.reaches(DELIVERIES) else None
    return None if delivery is None else delivery.snapshot


async def _family(visit: Visit, job: FoundJob) -> Graph:
    """The job with some of its parents and children."""
    store = visit.store
    [record] = await store.get(job.snapshot.queue, [job.id])
    if record is None:
        raise JobNotFound(job.snapshot.queue, job.id)
    tree = await read_tree(visit.queue.store, record, 1, RELATIVES + 1, URGENT_FIRST)
    for child in tree.children:
        # Their own children are for the page of the flow.
        child.hidden = 0
    parents = []
    for parent in record.parents[:RELATIVES]:
        [found] = await store.get(parent.queue, [parent.id])
        parents.append(node_of(found) if found else FlowNode(parent.queue, parent.id, None, "pending"))
    return family_graph(tree, parents, visit.principal.reaches)


def _base(visit: Visit) -> str:
    host = visit.headers.get(b"host", b"localhost").decode("latin-1")
    return f"{visit.scope.get('scheme', 'http')}://{host}{visit.root}"


async def retry(visit: Visit) -> Response:
    phase = visit.field("from_phase")
    await visit.queue.retry(visit.params["id"], reset=True, from_phase=phase or None)
    return _done(visit, "The job runs again.")


async def cancel(visit: Visit) -> Response:
    await visit.queue.cancel(visit.params["id"], "cancelled from the dashboard", children=bool(visit.field("children")))
    return _done(visit, "The job is cancelled.")


async def promote(visit: Visit) -> Response:
    await visit.queue.promote(visit.params["id"])
    return _done(visit, "The job waits now.")


async def remove(visit: Visit) -> Response:
    await visit.queue.remove(visit.params["id"])
    visit.dashboard.summaries.forget(visit.queue.name)
    return visit.back(f"/jobs?{urlencode({'queue': visit.queue.name})}", "The job is removed.")


async def signal(visit: Visit) -> Response:
    """Without data for signals that only say that something happened."""
    name = visit.field("signal")
    await visit.queue.signal(visit.params["id"], name, _data(visit) if visit.field("data").strip() else None)
    return _done(visit, f"The signal {name!r} is sent.")


async def change(visit: Visit) -> Response:
    """Other data for a job that has not ended."""
    await visit.queue.change(visit.params["id"], data=_data(visit))
    return _done(visit, "The data is changed.")


async def again(visit: Visit) -> Response:
    """A new job with other data: one that has ended stays as it was."""
    found = (await _job(visit)).snapshot
    added = await visit.queue.add(
        found.name, _data(visit), attempts=found.attempts, priority=found.priority, tags=list(found.tags)
    )
    visit.dashboard.summaries.forget(visit.queue.name)
    return visit.back(f"/queues/{quote(visit.queue.name)}/jobs/{quote(added.id, safe='')}", "This job was added.")


def _data(visit: Visit) -> Json:
    text = visit.field("data")
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidOption("data", f"is not JSON: {error}") from None


def _done(visit: Visit, note: str) -> Response:
    visit.dashboard.summaries.forget(visit.queue.name)
    return visit.back(f"/queues/{quote(visit.queue.name)}/jobs/{quote(visit.params['id'], safe='')}", note)


_JOB: Final = "/queues/{queue}/jobs/{id}"

ROUTES: Final = (
    page("GET", _JOB, show_job, "One job."),
    page("POST", f"{_JOB}/retry", retry, "Runs an ended job again."),
    page("POST", f"{_JOB}/cancel", cancel, "Cancels a job."),
    page("POST", f"{_JOB}/promote", promote, "Makes a delayed job wait now."),
    page("POST", f"{_JOB}/remove", remove, "Removes a job."),
    page("POST", f"{_JOB}/signal", signal, "Sends a signal to a job."),
    page("POST", f"{_JOB}/change", change, "Changes the data of a job that has not ended."),
    page("POST", f"{_JOB}/again", again, "Adds a job like this one, with other data."),
)
