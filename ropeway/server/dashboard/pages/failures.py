"""Failures: the newest failed jobs, grouped by what went wrong."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from ....client.found import FoundJob
from ....client.queue import Queue
from ....job.choices import one_of
from ....job.names import queue_name
from ....showing import plural
from ....store.values import BATCH
from ..filters import Filter
from ..fingerprints import Group, fingerprint_of, grouped, place_of
from ..operations import act
from ..visits import Visit, named_queue, page
from .jobs import MOST_QUEUES, start_operation

NEWEST: Final = 2_000
"""Failed jobs that are grouped, over all queues."""
SHOWN: Final = 50


async def _newest(queues: list[Queue]) -> tuple[list[FoundJob], bool]:
    """The newest failed jobs of each queue, and whether that is all."""
    if not queues:
        return [], True
    share = max(20, NEWEST // len(queues))
    found = await asyncio.gather(*(_newest_of(queue, share) for queue in queues))
    return [job for jobs, _ in found for job in jobs], all(is_all for _, is_all in found)


async def _newest_of(queue: Queue, most: int) -> tuple[list[FoundJob], bool]:
    jobs: list[FoundJob] = []
    after: str | None = None
    while len(jobs) < most:
        found = await queue.find("failed", limit=min(BATCH, most - len(jobs)), after=after, newest_first=True)
        jobs += found
        after = found.next
        if after is None:
            break
    return jobs, after is None


async def _queues(visit: Visit, name: str) -> list[Queue]:
    if name:
        visit.reach([queue_name(name)])
        return [visit.broker.queue(name)]
    known = (await visit.queues())[:MOST_QUEUES]
    return [queue for queue in known if (await visit.dashboard.summaries.of(queue)).counts["failed"]]


async def list_failures(visit: Visit) -> Response:
    name = visit.arg("queue")
    jobs, is_all = await _newest(await _queues(visit, name))
    groups = grouped(jobs)
    for group, place in zip(groups, await asyncio.gather(*map(_place, groups[:SHOWN])), strict=False):
        group.place = place
    return visit.page(
        "failures.html",
        section="Failures",
        title="Failures",
        live=f"{visit.root}/live?{urlencode({'queue': name})}" if name else f"{visit.root}/live",
        groups=groups[:SHOWN],
        more=max(0, len(groups) - SHOWN),
        looked_at=len(jobs),
        is_all=is_all,
        queue=name,
        queues=[queue.name for queue in await visit.queues()],
    )


async def _place(group: Group) -> str:
    history = await group.newest.queue.store.history(group.queue, group.newest.id)
    return place_of(history.failures[-1].trace) if history is not None and history.failures else ""


async def retry_group(visit: Visit) -> Response:
    """Retries, or removes, the jobs of one group: as an operation, if more jobs have failed than were looked at."""
    action = one_of("retry", "remove")("action", visit.field("action"))
    name = queue_name(visit.field("queue"))
    visit.reach([name])
    queue = visit.broker.queue(name)
    jobs, is_all = await _newest([queue])
    if not is_all:
        wanted = Filter(name, ("failed",), group=visit.field("group") or "-")
        return await start_operation(visit, action, [queue], wanted)
    ids = [job.id for job in jobs if fingerprint_of(job) == visit.field("group")]
    moved = 0
    for start in range(0, len(ids), BATCH):
        answers = await act(queue, action, ids[start : start + BATCH])
        moved += sum(answer.verdict == "done" for answer in answers)
    visit.dashboard.summaries.forget(name)
    return visit.back("/failures", f"{plural(moved, 'job')} {'retried' if action == 'retry' else 'removed'}.")


ROUTES: Final = (
    page("GET", "/failures", list_failures, "Failed jobs, grouped by what went wrong."),
    page("POST", "/failures", retry_group, "Retries or removes a group of failed jobs.", targets=named_queue),
)
