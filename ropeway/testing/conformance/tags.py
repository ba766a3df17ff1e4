from __future__ import annotations

from ...job.states import STATES, State
from ...store.commands import Find
from ...store.contract import Store
from ..arrange import ARRANGED, add, claim, read
from ..factories import DAY, NOW, QUEUE, new_job


async def tagged(store: Store, tag: str, *states: State, limit: int = 100, name: str | None = None) -> list[str]:
    """Ids of all pages, in order."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await store.find(Find(QUEUE, states or STATES, name, limit, after, tag=tag))
        found += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            return found


class TestTags:
    async def test_a_job_keeps_its_tags_in_every_state(self, store: Store) -> None:
        for state, arrange in ARRANGED.items():
            job = await arrange(store, id=state, tags=("urgent", "tenant:7"))
            assert (job.state, job.tags) == (state, ("urgent", "tenant:7"))
            if state == "waiting":
                await store.remove(QUEUE, [job.id], now=NOW)

    async def test_a_job_without_tags_has_none(self, store: Store) -> None:
        [job] = await add(store, new_job())

        assert job.tags == ()

    async def test_who_claims_a_job_sees_its_tags(self, store: Store) -> None:
        await add(store, new_job("a", tags=("x",)), new_job("b"))

        assert [(job.id, job.tags) for job in await claim(store, 2)] == [("a", ("x",)), ("b", ())]

    async def test_any_text_may_be_a_tag(self, store: Store) -> None:
        tags = ("a b", "é", "日本", '"', "%", "_", "*", "{x}", "\\", "'; --")
        await add(store, new_job("a", tags=tags))

        assert (await read(store, "a")).tags == tags
        for tag in tags:
            assert await tagged(store, tag) == ["a"]
        assert await tagged(store, "a") == []

    async def test_jobs_are_found_by_a_tag(self, store: Store) -> None:
        await add(
            store,
            new_job("a", tags=("x",)),
            new_job("b", tags=("y", "x")),
            new_job("c"),
            new_job("d", tags=("y",)),
            new_job("e", tags=("x",), delay=DAY),
        )

        assert await tagged(store, "x") == ["a", "b", "e"]
        assert await tagged(store, "x", "waiting") == ["a", "b"]
        assert await tagged(store, "y", "waiting") == ["b", "d"]
        assert await tagged(store, "z") == []

    async def test_a_name_narrows_it_down(self, store: Store) -> None:
        await add(store, new_job("a", tags=("x",)), new_job("b", tags=("x",), name="print"))

        assert await tagged(store, "x", name="print") == ["b"]

    async def test_they_come_in_pages(self, store: Store) -> None:
        jobs = [new_job(f"{n:02}", tags=("even",) if n % 2 == 0 else ("odd",)) for n in range(20)]
        await add(store, *jobs)

        assert await tagged(store, "even", limit=3) == [f"{n:02}" for n in range(0, 20, 2)]

    async def test_newest_first(self, store: Store) -> None:
        await add(store, *(new_job(str(n), tags=("x",)) for n in range(3)), new_job("other"))

        page = await store.find(Find(QUEUE, ("waiting",), newest_first=True, tag="x"))

        assert [job.id for job in page.jobs] == ["2", "1", "0"]

    async def test_a_retry_by_hand_keeps_them(self, store: Store) -> None:
        job = await ARRANGED["failed"](store, tags=("x",))

        await store.retry(QUEUE, [job.id], now=NOW)

        assert (await read(store, job.id)).tags == ("x",)
        assert await tagged(store, "x", "waiting") == [job.id]

    async def test_a_removed_job_leaves_none(self, store: Store) -> None:
        await add(store, new_job("a", tags=("x",)))
        await store.remove(QUEUE, ["a"], now=NOW)
        await add(store, new_job("a"))

        assert (await read(store, "a")).tags == ()
        assert await tagged(store, "x") == []
