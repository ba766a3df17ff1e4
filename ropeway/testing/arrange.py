"""Arranging jobs of a store for a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from ..job.events import Entry
from ..job.instants import Instant
from ..job.record import JobRecord, NewJob
from ..job.states import STATES, State
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import Counts
from .factories import DAY, NOW, QUEUE, claim_request, complete, fail, new_flow, new_job

NURSERY: Final = "nursery"
"""The queue of children that tests do not care for."""

Arrangement: TypeAlias = Callable[..., Awaitable[JobRecord]]


async def add(store: Store, *jobs: NewJob, now: Instant = NOW) -> list[JobRecord]:
    """Adds jobs to one queue, as one bundle, and answers them as they were stored."""
    [answers] = await store.add([list(jobs)], now=now)
    assert [answer.verdict for answer in answers] == ["created"] * len(jobs)
    return [await read(store, job.id, job.queue) for job in jobs]


async def add_one(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    [added] = await add(store, new_job(**job), now=now)
    return added


async def claim(store: Store, limit: int = 1, *, now: Instant = NOW, **request: Any) -> list[JobRecord]:
    return (await store.claim(claim_request(limit, **request), now=now)).jobs


async def claim_one(store: Store, *, now: Instant = NOW, **request: Any) -> JobRecord:
    [job] = await claim(store, 1, now=now, **request)
    return job


async def read(store: Store, id: str, queue: str = QUEUE) -> JobRecord:
    [job] = await store.get(queue, [id])
    assert job is not None, f"{queue} has no job {id}"
    return job


async def is_gone(store: Store, id: str, queue: str = QUEUE) -> bool:
    return await store.get(queue, [id]) == [None]


async def snapshot(store: Store, queue: str = QUEUE) -> tuple[list[JobRecord], Counts]:
    """A queue's jobs and counts, to show that a call changed nothing."""
    page = await store.find(Find(queue, STATES, limit=10_000))
    return page.jobs, await store.count(queue)


async def waiting(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    return await add_one(store, now=now, **job)


async def delayed(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    return await add_one(store, now=now, **{"delay": DAY, **job})


async def active(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    """An active job, claimed now. No other job may wait in its queue."""
    added = await add_one(store, now=now, **job)
    claimed = await claim_one(store, now=now, queue=added.queue)
    assert claimed.id == added.id, "arrange active jobs before waiting ones"
    return claimed


async def completed(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    held = await active(store, now=now, **job)
    await store.settle(held.queue, [complete(held, '"sent"')], now=now)
    return await read(store, held.id, held.queue)


async def failed(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    held = await active(store, now=now, **job)
    await store.settle(held.queue, [fail(held)], now=now)
    return await read(store, held.id, held.queue)


async def cancelled(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    added = await add_one(store, now=now, **job)
    await store.cancel(added.queue, [added.id], "not needed", now=now)
    return await read(store, added.id, added.queue)


async def waiting_for_children(store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    """A parent. Its child is in another queue, so that it is the only job of its own."""
    parent, child = new_flow(new_job(**job), new_job(queue=NURSERY))
    await store.add([[parent, child]], now=now)
    return await read(store, parent.id, parent.queue)


ARRANGED: Final[dict[State, Arrangement]] = {
    "waiting": waiting,
    "waiting-children": waiting_for_children,
    "delayed": delayed,
    "active": active,
    "completed": completed,
    "failed": failed,
    "cancelled": cancelled,
}
"""Functions that make a job in each state."""


async def job_in(state: State, store: Store, *, now: Instant = NOW, **job: Any) -> JobRecord:
    return await ARRANGED[state](store, now=now, **job)


async def entries(store: Store, what: str | None = None, queue: str = QUEUE) -> list[Entry]:
    """The event entries of a queue, oldest first; only of one kind, if `what` is given."""
    page = await store.events(queue, limit=100_000)
    return [stored.entry for stored in page.entries if what in (None, stored.entry.what)]


async def events_of(store: Store, what: str, queue: str = QUEUE) -> list[tuple[str, dict[str, Any]]]:
    """Job ids with their details in the entries of one kind, however the store grouped them."""
    return [(id, entry.data_of(detail)) for entry in await entries(store, what, queue) for id, detail in entry.jobs]
