"""Flows: jobs that wait for other jobs. A list of their roots, and the graph of one."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from ....client.flow_tree import URGENT_FIRST, read_tree
from ....client.found import FoundJob
from ....client.queue import Queue
from ....errors import JobNotFound
from ....job.instants import instant_of
from ....job.names import job_id, queue_name
from ....job.states import State, state_named
from ....store.values import BATCH
from ..graphs import flow_graph
from ..visits import Visit, page
from .jobs import MOST_QUEUES

PER_PAGE: Final = 50
SCAN: Final = 1_000
"""Jobs among which the roots of one page are looked for."""
SHOWN: Final = 100
"""Jobs of a flow that are drawn, unless more are asked for."""
MOST: Final = 500
DEEPEST: Final = 60
"""Levels that are drawn; further ones are counted."""
ORDER: Final[tuple[State, ...]] = (
    *("waiting-children", "active", "waiting", "failed", "delayed", "completed", "cancelled"),
)
"""States in which roots are looked for; parents that wait are in the first."""


def is_root(job: FoundJob) -> bool:
    return job.snapshot.children > 0 and not job.snapshot.parents


async def list_flows(visit: Visit) -> Response:
    name, state, after = visit.arg("queue"), visit.arg("state"), visit.arg("after")
    known = await visit.queues()
    if name:
        visit.reach([queue_name(name)])
    chosen = [visit.broker.queue(name)] if name else known[:MOST_QUEUES]
    states = (state_named(state),) if state else ORDER
    deep = bool(name and state)
    roots, following, looked_at = await (_page(chosen[0], states[0], after) if deep else _newest(visit, chosen, states))
    shown = roots if deep else roots[:PER_PAGE]
    return visit.page(
        "flows.html",
        section="Flows",
        title="Flows",
        live=f"{visit.root}/live?{urlencode({'queue': name})}" if name else f"{visit.root}/live",
        rows=[await _row(job) for job in shown],
        more=len(roots) - len(shown),
        next=following,
        after=after,
        looked_at=looked_at,
        is_deep=deep,
        queue=name,
        state=state,
        queues=[queue.name for queue in known],
        left_out=0 if name else len(known) - len(chosen),
    )


async def _newest(visit: Visit, queues: list[Queue], states: tuple[State, ...]) -> tuple[list[FoundJob], None, int]:
    """Roots among the newest jobs of each state: of all together at most about `SCAN` are looked at."""
    there = [
        (queue, state)
        for queue in queues
        for state in states
        if (await visit.dashboard.summaries.of(queue)).counts[state]
    ]
    share = min(BATCH, max(20, SCAN // max(1, len(there))))
    roots: list[FoundJob] = []
    looked_at = 0
    for queue, state in there:
        found = await queue.find(state, limit=share, newest_first=True)
        looked_at += len(found)
        roots += filter(is_root, found)
    places = {state: place for place, state in enumerate(states)}
    return sorted(roots, key=lambda job: (places[job.snapshot.state], -_at(job))), None, looked_at


async def _page(queue: Queue, state: State, after: str) -> tuple[list[FoundJob], str | None, int]:
    """Roots of one queue and state, page by page."""
    roots: list[FoundJob] = []
    looked_at, start = 0, after or None
    while True:
        found = await queue.find(state, limit=PER_PAGE, after=start, newest_first=True)
        roots += filter(is_root, found)
        looked_at, start = looked_at + len(found), found.next
        # A page more than fits would have to be read again, so it may end with fewer.
        if start is None or looked_at >= SCAN or len(roots) > PER_PAGE - 10:
            return roots, start, looked_at


def _at(job: FoundJob) -> int:
    return instant_of(job.snapshot.finished_at or job.snapshot.created_at)


async def _row(job: FoundJob) -> dict[str, Any]:
    children = await job.queue.store.children(job.queue.name, job.id, limit=1)
    counts = {} if children is None else children.counts
    total = sum(counts.values())
    return {"job": job.snapshot, "counts": counts, "total": total, "ended": total - counts.get("pending", 0)}


async def show_flow(visit: Visit) -> Response:
    queue, id = visit.queue, job_id(visit.params["id"])
    [record] = await visit.store.get(queue.name, [id])
    if record is None:
        raise JobNotFound(queue.name, id)
    limit = MOST if visit.arg("show") == "more" else SHOWN
    tree = await read_tree(queue.store, record, DEEPEST, limit, URGENT_FIRST)
    nodes = [*tree.walk()]
    names = sorted({node.queue for node in nodes if visit.principal.reaches(node.queue)})
    assert tree.snapshot is not None, "it was just read"
    return visit.page(
        "flow.html",
        section="Flows",
        title=f"{tree.snapshot.name} · {id}",
        live=f"{visit.root}/live?{urlencode([('queue', name) for name in names])}",
        job=tree.snapshot,
        graph=flow_graph(tree, visit.principal.reaches),
        counts=Counter(node.state for node in nodes),
        nodes=[node for node in nodes if visit.principal.reaches(node.queue)],
        hidden=sum(node.hidden for node in nodes),
        may_show_more=limit < MOST and len(nodes) >= limit,
        most=MOST,
        total=len(nodes),
    )


ROUTES: Final = (
    page("GET", "/flows", list_flows, "Roots of flows."),
    page("GET", "/queues/{queue}/flows/{id}", show_flow, "The graph of a flow."),
)
