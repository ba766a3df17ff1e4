from __future__ import annotations

from collections.abc import Sequence

import pytest

from ...errors import InvalidOption
from ...job.states import STATES, State
from ...store.commands import Find
from ...store.contract import Store
from ..arrange import active, add, cancelled, claim, completed, failed, read
from ..factories import DAY, NOW, QUEUE, complete, new_job, new_jobs
from .cases import for_each


async def ids(store: Store, *states: State, newest_first: bool = False, name: str | None = None) -> list[str]:
    page = await store.find(Find(QUEUE, states, name, limit=1_000, newest_first=newest_first))
    assert page.next is None
    return [job.id for job in page.jobs]


async def pages(store: Store, states: Sequence[State], limit: int, newest_first: bool) -> list[list[str]]:
    found, after = [], None
    while True:
        query = Find(QUEUE, tuple(states), limit=limit, after=after, newest_first=newest_first)
        page = await store.find(query)
        found.append([job.id for job in page.jobs])
        after = page.next
        if after is None:
            return found


async def fill(store: Store) -> None:
    """A few jobs in every state, in an order that no two states share."""
    for n in (2, 0, 1):
        await completed(store, now=NOW + n)
        await failed(store, now=NOW + n)
        await cancelled(store, now=NOW + n)
    for n in (1, 0):
        await active(store, now=NOW + n)
    await add(
        store,
        new_job(priority=1),
        new_job(),
        new_job(lifo=True),
        new_job(lifo=True),
        new_job(priority=-1),
        new_job(delay=DAY),
        new_job(delay=DAY - 1),
        new_job(delay=DAY, lifo=True),
    )


class TestFind:
    async def test_it_gives_the_jobs_as_they_are(self, store: Store) -> None:
        await add(store, new_job("a"))

        page = await store.find(Find(QUEUE, ("waiting",)))

        assert page.jobs == [await read(store, "a")]
        assert page.next is None

    async def test_waiting_jobs_come_as_they_will_be_claimed(self, store: Store) -> None:
        await add(
            store,
            new_job("b"),
            new_job("d", priority=5),
            new_job("c"),
            new_job("a2", lifo=True),
            new_job("a1", lifo=True),
            new_job("first", priority=-1),
        )

        found = await ids(store, "waiting")

        assert found == ["first", "a1", "a2", "b", "c", "d"]
        assert found == [job.id for job in await claim(store, 10)]

    async def test_delayed_jobs_come_as_they_are_due(self, store: Store) -> None:
        await add(store, new_job("c", delay=9), new_job("a", delay=5), new_job("b", delay=5, priority=-1))
        await add(store, new_job("l", delay=5, lifo=True))

        assert await ids(store, "delayed") == ["l", "a", "b", "c"]

    async def test_active_jobs_come_as_they_were_started(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"), new_job("c", name="print"))
        await claim(store, 1, names=("print",), now=NOW)
        await claim(store, 2, now=NOW + 1)

        assert await ids(store, "active") == ["c", "a", "b"]

    async def test_finished_jobs_come_as_they_finished(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"), new_job("c"))
        first, second, third = await claim(store, 3)
        await store.settle(QUEUE, [complete(third)], now=NOW + 1)
        await store.settle(QUEUE, [complete(second), complete(first)], now=NOW + 2)

        assert await ids(store, "completed") == ["c", "a", "b"]

    async def test_states_come_in_the_order_given(self, store: Store) -> None:
        await add(store, new_job("a", delay=DAY), new_job("b"))

        assert await ids(store, "waiting", "delayed") == ["b", "a"]
        assert await ids(store, "delayed", "waiting") == ["a", "b"]

    async def test_jobs_of_other_states_are_left_out(self, store: Store) -> None:
        await fill(store)

        for state in STATES:
            page = await store.find(Find(QUEUE, (state,), limit=1_000))
            assert {job.state for job in page.jobs} <= {state}

    async def test_no_state_is_no_job(self, store: Store) -> None:
        await add(store, new_job())

        assert await ids(store) == []

    async def test_newest_first_is_the_list_read_backwards(self, store: Store) -> None:
        await fill(store)

        assert await ids(store, *STATES, newest_first=True) == list(reversed(await ids(store, *STATES)))

    async def test_a_name_leaves_the_others_out(self, store: Store) -> None:
        await add(store, new_job("a", name="send"), new_job("b", name="print"), new_job("c", name="send", delay=1))

        assert await ids(store, "waiting", "delayed", name="send") == ["a", "c"]

    async def test_jobs_of_another_queue_are_left_out(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await ids(store, *STATES) == []


class TestFindPages:
    @for_each("limit", [1, 2, 3, 7])
    @for_each("newest_first", [False, True])
    async def test_pages_together_are_the_whole_list(self, store: Store, limit: int, newest_first: bool) -> None:
        await fill(store)
        whole = await ids(store, *STATES, newest_first=newest_first)

        found = await pages(store, STATES, limit, newest_first)

        assert [id for page in found for id in page] == whole
        assert all(len(page) == limit for page in found[:-1])

    async def test_the_last_page_says_so_even_if_it_is_full(self, store: Store) -> None:
        await add(store, *new_jobs(4))

        assert [len(page) for page in await pages(store, ["waiting"], 2, newest_first=False)] == [2, 2]

    async def test_a_page_of_one_name_is_full(self, store: Store) -> None:
        for _ in range(5):
            await add(store, new_job(name="print"), new_job(name="send"))

        page = await store.find(Find(QUEUE, ("waiting",), "send", limit=4))
        rest = await store.find(Find(QUEUE, ("waiting",), "send", limit=4, after=page.next))

        assert (len(page.jobs), len(rest.jobs), rest.next) == (4, 1, None)

    async def test_a_job_that_goes_meanwhile_makes_no_other_appear_twice(self, store: Store) -> None:
        jobs = await add(store, *new_jobs(6))
        page = await store.find(Find(QUEUE, ("waiting",), limit=3))
        await store.remove(QUEUE, [jobs[0].id, jobs[2].id], now=NOW)

        rest = await store.find(Find(QUEUE, ("waiting",), limit=3, after=page.next))

        assert [job.id for job in rest.jobs] == [job.id for job in jobs[3:]]

    async def test_jobs_that_finished_in_the_same_instant_are_all_found(self, store: Store) -> None:
        await add(store, *new_jobs(10))
        jobs = await claim(store, 10)
        await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)

        found = await pages(store, ["completed"], 3, newest_first=False)

        assert [id for page in found for id in page] == [job.id for job in jobs]

    @for_each("cursor", ["nonsense", "../..", "é", "a" * 1_000, "%00"])
    async def test_a_cursor_that_cannot_be_read_is_refused(self, store: Store, cursor: str) -> None:
        await add(store, new_job())

        with pytest.raises(InvalidOption):
            await store.find(Find(QUEUE, ("waiting",), after=cursor))

    async def test_a_cursor_of_another_listing_is_refused(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        page = await store.find(Find(QUEUE, ("waiting",), limit=1))
        assert page.next is not None

        with pytest.raises(InvalidOption, match="after"):
            await store.find(Find(QUEUE, ("completed", "failed"), after=page.next))

    @for_each("newest_first", [False, True])
    async def test_a_state_that_is_named_twice_is_listed_once(self, store: Store, newest_first: bool) -> None:
        await add(store, *new_jobs(3))
        await claim(store, 1)

        found = await pages(store, ["waiting", "active", "waiting"], 1, newest_first=newest_first)

        assert len(found) == 3
        assert len({id for page in found for id in page}) == 3
