"""Marks: one text for each job that has any, or a hash of the job if they are many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from ropeway.job.events import expand
from ropeway.job.extras import Extras
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.marks import Mark, Marking, Notice
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord
from ropeway.job.retention import Retention
from ropeway.store.values import JobUpdate, StallRules
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import active, add, claim, claim_one, events_of, read
from ropeway.testing.conformance.waiting_claims import waiting_request
from ropeway.testing.factories import DAY, LOCK, NOW, QUEUE, claim_request, complete, fail, new_job, retry, token_of
from tests.patience import PATIENCE

from .test_parked import until_parked

ONE = Marking((Mark("a", "1"),))
STORED = (Mark("a", "1", NOW),)


async def keys_in(store: RedisStore, ending: str) -> list[bytes]:
    keys: list[bytes] = await store._executor.execute("KEYS", f"*{ending}")
    return [key for key in keys if key.decode().startswith(store._executor.keys.queue(QUEUE))]


async def marked(store: RedisStore, marking: Marking = ONE, **job: Any) -> JobRecord:
    held = await active(store, id="job", **job)
    await store.update(QUEUE, [JobUpdate(held.id, held.token, marking=marking)], now=NOW)
    return held


def awaiting(job: JobRecord, name: str) -> Outcome:
    return Outcome(job.id, token_of(job), "postpone", delay=LAST_INSTANT, awaits=name)


async def signal(store: RedisStore, name: str, *more: JobUpdate) -> None:
    await store.update(QUEUE, [JobUpdate("job", marking=Marking((Mark(name, "1"),))), *more], now=NOW)


async def test_a_plain_job_has_none(store: RedisStore):
    held = await active(store)
    await store.settle(QUEUE, [complete(held)], now=NOW)

    assert await keys_in(store, ":marks*") == await keys_in(store, ":past") == []


async def test_a_job_kept_no_longer_than_it_runs_takes_its_marks_along(store: RedisStore):
    held = await marked(store)

    outcome = replace(complete(held, keep=Retention(count=0)), marking=Marking((Mark("b", "1"),)))
    await store.settle(QUEUE, [outcome], now=NOW)

    assert await store.get(QUEUE, ["job"]) == [None]
    assert await keys_in(store, ":marks*") == await keys_in(store, ":past") == []


async def test_failures_stalls_and_a_reset_keep_them(store: RedisStore):
    held = await marked(store, attempts=3)
    await store.settle(QUEUE, [retry(held)], now=NOW)
    retried = await claim_one(store)
    await store.tick(QUEUE, StallRules(counts_as_attempt=True), now=NOW + LOCK)
    stalled = await claim_one(store)
    await store.settle(QUEUE, [fail(stalled)], now=NOW)
    await store.retry(QUEUE, ["job"], reset=True, now=NOW)
    again = await claim_one(store)

    assert [job.attempts_made for job in (retried, stalled, again)] == [1, 2, 0]
    assert [job.marks for job in (retried, stalled, again)] == [STORED] * 3


@pytest.mark.parametrize("extras", [None, Extras(start_within=DAY)])
@pytest.mark.parametrize("tags", [(), ("x",)])
async def test_they_follow_other_rare_fields(store: RedisStore, tags: tuple[str, ...], extras: Extras | None):
    await marked(store, tags=tags, extras=extras)

    job = await read(store, "job")

    assert (job.tags, job.parents, job.children, job.extras, job.marks) == (tags, (), 0, extras, STORED)
    assert await claim(store, repeat=True, token=job.token) == [job]


async def test_jobs_with_the_same_marks_are_claimed_together(store: RedisStore):
    await add(store, *(new_job(f"job-{n}") for n in range(3)))
    marking = Marking((Mark("b", "1"), Mark("a", "1"), Mark("é", "1"), Mark("B", "1")))
    await store.update(QUEUE, [JobUpdate(f"job-{n}", marking=marking) for n in (0, 1)], now=NOW)

    names = [[mark.name for mark in job.marks] for job in await claim(store, 3)]

    assert names == [["B", "a", "b", "é"], ["B", "a", "b", "é"], []]


async def test_a_parked_claim_is_given_them(store: RedisStore):
    await add(store, new_job("job", delay=LAST_INSTANT))
    await store.update(QUEUE, [JobUpdate("job", marking=ONE)], now=NOW)
    waiting = asyncio.create_task(store.claim(waiting_request(2)))
    await until_parked(store)
    await store.promote(QUEUE, ["job"])

    await add(store, new_job("other"))

    async with asyncio.timeout(PATIENCE):
        claimed = await waiting
    assert [job.marks for job in claimed.jobs if job.id == "job"] == [STORED]


async def test_of_two_outcomes_of_one_job_the_first_writes_marks(store: RedisStore):
    held = await active(store, attempts=2)
    first, second = replace(retry(held), marking=ONE), replace(fail(held), marking=Marking((Mark("b", "1"),)))

    settled = await store.settle(QUEUE, [first, second], now=NOW)

    assert [answer.verdict for answer in settled.answers] == ["done", "lost"]
    assert (await read(store, held.id)).marks == STORED


async def test_a_repeated_outcome_writes_none(store: RedisStore):
    held = await active(store)
    outcome = replace(complete(held), marking=Marking((Mark("a", "1"),), notices=(Notice("phase-completed"),)))
    await store.settle(QUEUE, [outcome], now=NOW)

    await store.settle(QUEUE, [outcome], now=NOW + 1)

    assert (await read(store, held.id)).marks == STORED
    assert await events_of(store, "phase-completed") == [(held.id, {})]


async def test_an_outcome_can_bring_the_mark_that_it_awaits(store: RedisStore):
    held = await active(store, id="job")

    settled = await store.settle(QUEUE, [replace(awaiting(held, "a"), marking=ONE)], claim_request(), now=NOW)

    assert settled.claimed is not None
    assert [job.marks for job in settled.claimed.jobs] == [STORED]


async def test_two_signals_at_once_promote_once(store: RedisStore):
    held = await active(store, id="job")
    await store.settle(QUEUE, [awaiting(held, "a")], now=NOW)

    await signal(store, "a", JobUpdate("job", marking=ONE))

    assert await events_of(store, "promote") == [("job", {})]
    assert (await store.count(QUEUE))["waiting"] == 1


async def test_what_was_awaited_before_a_retry_by_hand_is_forgotten(store: RedisStore):
    held = await active(store, id="job", attempts=3)
    await store.settle(QUEUE, [awaiting(held, "a")], now=NOW)
    await store.cancel(QUEUE, ["job"], now=NOW)
    await store.retry(QUEUE, ["job"], reset=True, now=NOW)
    await store.settle(QUEUE, [retry(await claim_one(store), DAY)], now=NOW)

    await signal(store, "a")

    assert (await read(store, "job")).state == "delayed"


async def test_a_job_that_only_awaits_one_leaves_nothing_behind(store: RedisStore):
    held = await active(store, id="job")
    await store.settle(QUEUE, [awaiting(held, "a")], now=NOW)
    assert (await read(store, "job")).marks == ()

    await store.remove(QUEUE, ["job"], now=NOW)

    assert await keys_in(store, ":marks*") == await keys_in(store, ":awaited") == await keys_in(store, ":past") == []


async def test_an_obliterated_queue_leaves_none(store: RedisStore):
    await marked(store)

    await store.obliterate(QUEUE, force=True, now=NOW)

    assert await keys_in(store, ":marks*") == []


def large(*numbers: int) -> tuple[Mark, ...]:
    return tuple(Mark(f"m-{number}", f'"{"x" * 1500}{number}"') for number in numbers)


async def test_many_have_a_hash_of_the_job(store: RedisStore):
    held = await marked(store, Marking(large(1, 2)))
    assert await keys_in(store, ":marks:*") == []

    for marking in (Marking(large(3)), Marking((Mark("m-2", "2"), Mark("m-4", "4")), forgets=("m-1",))):
        await store.update(QUEUE, [JobUpdate("job", held.token, marking=marking)], now=NOW)

    assert len(await keys_in(store, ":marks:*")) == 1
    expected = [("m-2", "2"), ("m-3", large(3)[0].value), ("m-4", "4")]
    assert [(mark.name, mark.value) for mark in (await read(store, "job")).marks] == expected
    settled = await store.settle(QUEUE, [awaiting(held, "m-4")], claim_request(), now=NOW)
    assert settled.claimed is not None
    assert [len(job.marks) for job in settled.claimed.jobs] == [3]
    await store.remove(QUEUE, ["job"], force=True, now=NOW)
    assert await keys_in(store, ":marks*") == await keys_in(store, ":past") == []


async def test_a_value_that_looks_like_a_mark_is_none(store: RedisStore):
    name = "b" * 128
    held = await marked(store, Marking((Mark("a", f"\u04d3\u0640{name}"),)))

    await store.update(QUEUE, [JobUpdate("job", held.token, marking=Marking((Mark(name, "1"),)))], now=NOW)

    assert [mark.name for mark in (await read(store, "job")).marks] == ["a", name]


async def test_jobs_updated_together_keep_the_order_of_their_events(store: RedisStore):
    await add(store, *(new_job(f"job-{n}") for n in range(3)))
    held = await claim(store, 3)
    kinds = ("phase-started", "phase-completed", "phase-started")
    markings = [
        Marking(
            notices=tuple(Notice(kind, f'{{"phase":"{phase}"}}') for kind, phase in zip(kinds, "aab", strict=True))
        ),
        Marking((Mark("a", "1"),), notices=(Notice("phase-completed", '{"phase":"b"}'),)),
    ]
    updates = [JobUpdate(job.id, job.token, progress=f"{n}", marking=markings[n % 2]) for n, job in enumerate(held)]

    await store.update(QUEUE, [*updates, JobUpdate("no job", "token", progress="1")], now=NOW)

    entries = [stored.entry for stored in (await store.events(QUEUE)).entries]
    events = [event for entry in entries for event in expand(QUEUE, "1-1", entry)]
    own = {job.id: [(event.name, event.data) for event in events if event.job_id == job.id][3:] for job in held}
    phases = [("phase-started", {"phase": "a"}), ("phase-completed", {"phase": "a"}), ("phase-started", {"phase": "b"})]
    assert own == {
        "job-0": [("progress", {"progress": 0}), *phases],
        "job-1": [("progress", {"progress": 1}), ("phase-completed", {"phase": "b"})],
        "job-2": [("progress", {"progress": 2}), *phases],
    }
