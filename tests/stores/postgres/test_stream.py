"""The stream of events: what is forgotten of it, and by whom."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.job.events import events_in, expand
from ropeway.store.values import StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.verbs import govern
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, new_job, new_jobs

from .conftest import Execute, OpenStore


async def kept(store: PostgresStore) -> list[int]:
    """How many events each entry makes."""
    return [len([*expand(QUEUE, stored.id, stored.entry)]) for stored in (await store.events(QUEUE)).entries]


@pytest.mark.parametrize(
    ("keep", "left"),
    [(0, [2]), (1, [2]), (29, [18, 10]), (30, [20, 10]), (69, [38, 20, 10]), (70, [40, 20, 10]), (2**70, [40, 20, 10])],
)
async def test_a_step_is_left_in_part(store: PostgresStore, keep: int, left: list[int]):
    for jobs in (20, 10, 5):
        await add(store, *new_jobs(jobs))

    await store.trim_events(QUEUE, keep=keep)

    assert await kept(store) == left


async def test_of_the_newest_step_the_newest_entry_stays(store: PostgresStore):
    await add(store, *new_jobs(2))
    [job] = await claim(store)
    await store.settle(QUEUE, [complete(job)], claim_request(), now=NOW)

    complete_entry, _ = (await store.events(QUEUE)).entries[-2:]
    await store.trim_events(QUEUE, keep=1)

    assert [stored.entry.what for stored in (await store.events(QUEUE)).entries] == ["claim"]
    assert (await store.events(QUEUE, complete_entry.id)).gap


async def test_steps_that_nobody_has_folded_are_trimmed_too(store: PostgresStore, execute: Execute):
    await add(store, new_job("first"))
    # More than one fold takes.
    execute(
        "INSERT INTO ropeway.step (at, queue, events, entries) SELECT step.at, step.queue, step.events, step.entries"
        " FROM ropeway.step CROSS JOIN generate_series(1, 12000)"
    )
    await add(store, new_job("last"))

    await store.trim_events(QUEUE, keep=1)

    [last] = (await store.events(QUEUE)).entries
    assert last.entry.jobs[0][0] == "last"
    assert execute("SELECT count(*) FROM ropeway.step") == [(1,)]


async def test_events_that_are_published_where_nobody_works_are_trimmed(
    store: PostgresStore, execute: Execute, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(govern, "EVENTS_KEPT", 5)
    monkeypatch.setattr(govern, "TRIM_ONCE_IN", 1)

    for _ in range(30):
        await store.publish(QUEUE, "imported", "{}")

    assert execute("SELECT count(*) FROM ropeway.step") == [(5,)]


async def test_what_many_publish_and_trim_at_once_is_lost_only_from_its_beginning(
    store: PostgresStore, open_store: OpenStore, url: str
):
    async def publish(handle: PostgresStore, name: str) -> None:
        for number in range(50):
            await handle.publish(QUEUE, name, f'{{"number": {number}}}')

    async def trim(handle: PostgresStore) -> None:
        for _ in range(20):
            await handle.trim_events(QUEUE, keep=30)
            await handle.tick(QUEUE, StallRules())

    names = ["a", "b", "c"]
    await asyncio.gather(*(publish(open_store(url), name) for name in names), trim(store), trim(open_store(url)))
    await store.trim_events(QUEUE, keep=30)

    told = [event for stored in (await store.events(QUEUE)).entries for event in expand(QUEUE, stored.id, stored.entry)]
    assert len(told) == 30
    for name in names:
        numbers = [event.data["number"] for event in told if event.name == name and event.data]
        assert numbers == [*range(50)][50 - len(numbers) :]


async def test_a_job_that_is_given_up_in_its_last_attempt_is_numbered_as_in_other_stores(
    store: PostgresStore, execute: Execute
):
    """Only the head of an entry says how many events it is: its details are not read when others are trimmed."""
    await add(store, new_job(attempts=1))
    [job] = await claim(store)
    rules = StallRules(max_stalled_count=5, counts_as_attempt=True)

    ticked = await store.tick(QUEUE, rules, now=NOW + 10**9)

    assert ticked.given_up == [job.id]
    assert execute("SELECT events FROM ropeway.step WHERE failed = 1") == [(events_in("give up", "failed", 1),)]
