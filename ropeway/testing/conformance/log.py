from __future__ import annotations

from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer, JobUpdate, LogPage
from ..arrange import ARRANGED, active, add, entries, job_in
from ..factories import NOW, QUEUE, new_job
from .cases import for_each


async def write(store: Store, id: str, first: int, last: int, keep: int = 1_000) -> None:
    lines = tuple(f"line {number}" for number in range(first, last + 1))
    await store.update(QUEUE, [JobUpdate(id, log=lines, keep_logs=keep)], now=NOW)


async def page(store: Store, after: int | None = None, limit: int = 100, *, newest_first: bool = False) -> LogPage:
    read = await store.log(QUEUE, "a", after, limit=limit, newest_first=newest_first)
    assert read is not None
    return read


def numbers(read: LogPage) -> list[int]:
    return [int(line.text.removeprefix("line ")) for line in read.lines]


class TestLog:
    async def test_an_unknown_job_has_none(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.log(QUEUE, "nobody") is None
        assert await store.log(QUEUE, "a") is None

    async def test_a_new_job_has_an_empty_one(self, store: Store) -> None:
        await add(store, new_job("a"))

        assert await page(store) == await page(store, newest_first=True) == LogPage([], 0, None)

    async def test_it_is_read_page_by_page(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 5)

        first = await page(store, limit=2)
        second = await page(store, first.next, limit=2)
        third = await page(store, second.next, limit=2)

        assert [numbers(read) for read in (first, second, third)] == [[1, 2], [3, 4], [5]]
        assert [read.next for read in (first, second, third)] == [2, 4, None]
        assert [read.newest for read in (first, second, third)] == [5, 5, 5]
        assert {line.at for line in first.lines} == {NOW}

    async def test_it_is_read_from_its_end(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 5)

        first = await page(store, limit=2, newest_first=True)
        second = await page(store, first.next, limit=2, newest_first=True)
        third = await page(store, second.next, limit=2, newest_first=True)

        assert [numbers(read) for read in (first, second, third)] == [[5, 4], [3, 2], [1]]
        assert [read.next for read in (first, second, third)] == [4, 2, None]

    async def test_a_page_that_ends_with_the_log_is_the_last(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 4)

        assert (await page(store, 2, limit=2)).next is None
        assert (await page(store, 3, limit=2, newest_first=True)).next is None

    async def test_what_is_written_later_comes_after_the_newest(self, store: Store) -> None:
        held = await active(store, id="a")
        await write(store, "a", 1, 3)
        seen = await page(store)

        assert numbers(await page(store, seen.newest)) == []
        await store.update(QUEUE, [JobUpdate("a", held.token, log=("line 4",))], now=NOW)

        assert numbers(await page(store, seen.newest)) == [4]

    async def test_dropped_lines_keep_their_numbers(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 3)
        seen = await page(store, limit=1)
        await write(store, "a", 4, 9, keep=4)

        assert numbers(await page(store, seen.next)) == [6, 7, 8, 9]
        assert (await page(store)).newest == 9
        assert numbers(await page(store, 8, newest_first=True)) == [7, 6]

    @for_each("after", [0, 99])
    async def test_a_place_beyond_its_ends(self, store: Store, after: int) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 2)

        assert numbers(await page(store, after)) == ([1, 2] if after == 0 else [])
        assert numbers(await page(store, after, newest_first=True)) == ([] if after == 0 else [2, 1])


class TestClearLog:
    @for_each("state", list(ARRANGED))
    async def test_it_is_cleared_in_every_state(self, store: Store, state: State) -> None:
        await job_in("active", store, id="b")
        job = await job_in(state, store, id="a")
        if state in ("waiting", "delayed", "active"):
            await write(store, "a", 1, 3)

        assert await store.clear_log(QUEUE, job.id) == Answer("done", state)
        assert (await page(store)).lines == []

    async def test_the_newest_lines_can_stay(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 5)

        await store.clear_log(QUEUE, "a", keep=2)
        history = await store.history(QUEUE, "a")

        assert numbers(await page(store)) == [4, 5]
        assert history is not None
        assert (len(history.log), history.dropped_log_lines) == (2, 3)

    async def test_a_shorter_log_stays_whole(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 2)

        await store.clear_log(QUEUE, "a", keep=2)

        assert numbers(await page(store)) == [1, 2]

    async def test_numbers_go_on_after_it(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 3)
        seen = await page(store)

        await store.clear_log(QUEUE, "a")
        await write(store, "a", 4, 4)

        assert numbers(await page(store, seen.newest)) == [4]
        assert (await page(store)).newest == 4

    async def test_others_keep_theirs(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        await write(store, "a", 1, 2)
        await write(store, "b", 1, 2)

        await store.clear_log(QUEUE, "b")

        assert numbers(await page(store)) == [1, 2]

    async def test_failed_attempts_stay(self, store: Store) -> None:
        await job_in("failed", store, id="a")

        await store.clear_log(QUEUE, "a")
        history = await store.history(QUEUE, "a")

        assert history is not None
        assert len(history.failures) == 1

    async def test_nobody_is_told_of_it(self, store: Store) -> None:
        await add(store, new_job("a"))
        await write(store, "a", 1, 2)

        await store.clear_log(QUEUE, "a")

        assert [entry.what for entry in await entries(store)] == ["add"]

    async def test_an_unknown_job_is_missing(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.clear_log(QUEUE, "nobody") == Answer("missing")
        assert await store.clear_log(QUEUE, "a") == Answer("missing")
