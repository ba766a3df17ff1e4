"""A verb that raises, wherever it does, has changed nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from ropeway.job.extras import Extras
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.outcomes import Outcome
from ropeway.job.record import NewJob
from ropeway.job.states import STATES
from ropeway.store.commands import Find
from ropeway.store.values import JobChange, JobUpdate, Lock, ScheduleWrite, StallRules
from ropeway.stores.memory import MemoryStore
from ropeway.stores.memory.stream import Draft
from ropeway.testing.arrange import active, cancelled, completed, delayed, failed
from ropeway.testing.factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    keyed,
    new_job,
    new_jobs,
    retry,
)

from .audit import audit, queue_data

Verb: TypeAlias = Callable[[MemoryStore], Awaitable[object]]
OTHER = "parcels"


async def everything(store: MemoryStore) -> list[Any]:
    """All that can be seen of two queues."""
    assert store._shared is not None
    seen: list[Any] = [await store.queues(), len(store._shared.revoked)]
    for queue in (QUEUE, OTHER):
        page = await store.find(Find(queue, STATES, limit=1_000))
        seen += [page.jobs, await store.count(queue), await store.metrics(queue), await store.settings(queue)]
        seen += [await store.history(queue, job.id) for job in page.jobs]
        data = queue_data(store, queue)
        seen += [await store.events(queue, limit=1_000), [*data.locks], dict(data.held_keys)]
        seen += [await store.schedules(queue), data.deadlines.due(LAST_INSTANT, 1_000)]
    return seen


@pytest.fixture
async def full(store: MemoryStore) -> MemoryStore:
    """A queue with jobs in every state that can be reached; `a` and `b` are active under the token `t`."""
    await completed(store, id="completed")
    await failed(store, id="failed")
    await cancelled(store, id="cancelled")
    await active(store, id="active")
    await store.add([[new_job("a"), new_job("b")]], now=NOW)
    await store.claim(claim_request(2, token="t"), now=NOW)
    await delayed(store, id="delayed")
    await store.add([new_jobs(3)], now=NOW)
    await store.add([[keyed("key", "keep-last", id="holder")], [keyed("other", "throttle", SECOND)]], now=NOW)
    await store.add([[new_job("late", extras=Extras(start_within=SECOND, dead_letter=OTHER))]], now=NOW)
    await store.write_schedules(QUEUE, [ScheduleWrite("nightly", "1", NOW)], now=NOW)
    return store


def good(id: str) -> Outcome:
    return Outcome(id, "t", "complete", "1")


UNTEXT: Any = "\ud800"
UNHASHABLE: Any = ["b"]
UNFIT: Any = object()

WRONG: dict[str, Verb] = {
    "add: a priority that is none": lambda store: store.add([[new_job(), new_job(priority=UNFIT)]]),
    "add: a delay that is none": lambda store: store.add([[new_job()], [new_job(delay=UNFIT)]]),
    "add: an id that is none": lambda store: store.add([[new_job()], [NewJob(OTHER, UNFIT, "send", "1")]]),
    "add: a name that is no text": lambda store: store.add([[new_job(queue=OTHER), new_job(name=UNTEXT)]]),
    "add: options that are no text": lambda store: store.add([[new_job()], [NewJob(QUEUE, "x", "y", "1", None)]]),  # type: ignore[arg-type]
    "claim: a lock that is none": lambda store: store.claim(claim_request(lock=UNFIT)),
    "claim: a worker that is no text": lambda store: store.claim(claim_request(worker=UNTEXT)),
    "settle: a result that is no JSON": lambda store: store.settle(
        QUEUE, [good("a"), Outcome("b", "t", "complete", "{")], claim_request(3)
    ),
    "settle: a move that is none": lambda store: store.settle(
        QUEUE, [good("a"), Outcome("b", "t", UNFIT)], claim_request(3)
    ),
    "settle: a delay that is none": lambda store: store.settle(
        QUEUE,
        [good("a"), Outcome("b", "t", "retry", delay=UNFIT)],
    ),
    "settle: a claim that cannot be": lambda store: store.settle(QUEUE, [good("a")], claim_request(-1)),
    "renew: a lock that is none": lambda store: store.renew(QUEUE, [Lock("a", "t"), UNHASHABLE], LOCK),
    "update: a progress that is no JSON": lambda store: store.update(
        QUEUE, [JobUpdate("a", "t", log=("line",), progress="1"), JobUpdate("b", "t", progress="{")]
    ),
    "cancel: an id that is none": lambda store: store.cancel(QUEUE, ["a", UNHASHABLE]),
    "cancel: a reason that is no text": lambda store: store.cancel(QUEUE, ["a", "b"], UNTEXT),
    "retry: an id that is none": lambda store: store.retry(QUEUE, ["completed", UNHASHABLE]),
    "promote: an id that is none": lambda store: store.promote(QUEUE, ["delayed", UNHASHABLE]),
    "change: a priority that is none": lambda store: store.change(
        QUEUE,
        [JobChange("delayed", delay=5), JobChange("delayed", priority=UNFIT)],
    ),
    "remove: an id that is none": lambda store: store.remove(QUEUE, ["completed", UNHASHABLE]),
    "configure: a limit that is none": lambda store: store.configure(QUEUE, pause=True, max_active=-1),
    "configure: a name that is no text": lambda store: store.configure(QUEUE, pause_names=["x", UNTEXT]),
    "write_schedules: a job that is none": lambda store: store.write_schedules(
        QUEUE,
        [
            ScheduleWrite("nightly", None, removes=("holder",), adds=(keyed("key", "supersede"),)),
            ScheduleWrite("hourly", "2", adds=(new_job(priority=UNFIT),)),
        ],
    ),
    "clean: a state that is none": lambda store: store.clean(QUEUE, UNFIT),
}


@pytest.mark.parametrize("verb", WRONG.values(), ids=WRONG.keys())
async def test_what_cannot_be_meant_changes_nothing(full: MemoryStore, verb: Verb):
    before = await everything(full)

    with pytest.raises((ValueError, TypeError, AttributeError)):
        await verb(full)

    assert await everything(full) == before
    audit(full)


async def settle_all(store: MemoryStore) -> None:
    held, a, b = [job for job in await store.get(QUEUE, ["active", "a", "b"]) if job is not None]
    outcomes = [complete(held), fail(a), retry(b, SECOND)]
    await store.settle(QUEUE, outcomes, claim_request(2), now=NOW)


VERBS: dict[str, Verb] = {
    "add": lambda store: store.add([[new_job(queue=OTHER), new_job()], [new_job(delay=5)]], now=NOW),
    "claim": lambda store: store.claim(claim_request(5), now=NOW + DAY),
    "settle": settle_all,
    "update": lambda store: store.update(QUEUE, [JobUpdate("a", "t", progress="1", log=("x",))], now=NOW),
    "tick": lambda store: store.tick(QUEUE, StallRules(0), now=NOW + 8 * DAY),
    "cancel": lambda store: store.cancel(QUEUE, ["a", "delayed"], now=NOW),
    "retry": lambda store: store.retry(QUEUE, ["completed", "failed"], reset=True, now=NOW),
    "promote": lambda store: store.promote(QUEUE, ["delayed"], now=NOW),
    "change": lambda store: store.change(QUEUE, [JobChange("delayed", delay=5, lifo=True)], now=NOW),
    "remove": lambda store: store.remove(QUEUE, ["a", "failed", "delayed"], force=True, now=NOW),
    "configure": lambda store: store.configure(QUEUE, pause=True, pause_names=["send"], now=NOW),
    "add with a key": lambda store: store.add([[keyed("key", "supersede"), keyed("new")]], now=NOW),
    "write_schedules": lambda store: store.write_schedules(
        QUEUE, [ScheduleWrite("nightly", None, adds=(keyed("new"),), removes=("holder", "late"))], now=NOW
    ),
    "clean": lambda store: store.clean(QUEUE, "waiting", now=NOW + SECOND),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
async def test_a_failure_at_the_very_end_changes_nothing(
    full: MemoryStore, verb: Verb, monkeypatch: pytest.MonkeyPatch
):
    before = await everything(full)

    def broken(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Draft, "encode", broken)
        with pytest.raises(MemoryError):
            await verb(full)

    assert await everything(full) == before
    audit(full)
    await verb(full)
    assert await everything(full) != before


async def test_nothing_that_a_reader_holds_can_change_the_store(full: MemoryStore):
    before = await everything(full)
    page = await full.find(Find(QUEUE, STATES))
    page.jobs.clear()
    history = await full.history(QUEUE, "failed")
    assert history is not None
    history.failures.clear()
    counts = await full.count(QUEUE)
    counts["waiting"] = 99
    for stored in (await full.events(QUEUE)).entries:
        stored.entry.jobs.clear()

    assert await everything(full) == before
