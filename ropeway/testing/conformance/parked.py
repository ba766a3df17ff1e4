"""Parked claims: left with a listener. A store may serve them or not; either way no job is missed or claimed twice."""

from __future__ import annotations

import asyncio

import pytest

from ...job.record import JobRecord
from ...store.commands import Claim
from ...store.contract import Listener, Store
from ..arrange import add, read
from ..factories import DAY, NOW, QUEUE, claim_request, new_job
from .fixtures import NewHandle
from .listen import SOON, calm


async def fetch(store: Store, listener: Listener, request: Claim) -> list[JobRecord]:
    """What a worker does: leaves its claim, and claims by itself if it was not served."""
    served = await listener.claim(request, SOON)
    return (served.claimed if served else await store.claim(request)).jobs


class TestParkedClaim:
    async def test_it_gets_the_job_that_comes(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        fetching = asyncio.create_task(fetch(store, listener, claim_request(token="mine")))
        await asyncio.sleep(0.01)

        await add(store, new_job("a"))

        assert [(job.id, job.token, job.state) for job in await fetching] == [("a", "mine", "active")]
        assert (await read(store, "a")).token == "mine"
        listener.close()

    async def test_it_gets_what_another_handle_adds(self, store: Store, new_handle: NewHandle) -> None:
        other = new_handle()
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        fetching = asyncio.create_task(fetch(store, listener, claim_request(token="mine")))
        await asyncio.sleep(0.01)

        await add(other, new_job("a"))

        assert [job.id for job in await fetching] == ["a"]
        listener.close()
        await other.close()

    async def test_it_gets_no_more_than_it_asked_for_and_the_most_urgent(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        fetching = asyncio.create_task(fetch(store, listener, claim_request(2, token="mine")))
        await asyncio.sleep(0.01)

        await add(store, *(new_job(f"job-{n}", priority=-n) for n in range(5)))

        assert [job.id for job in await fetching] == ["job-4", "job-3"]
        assert (await store.count(QUEUE))["waiting"] == 3
        listener.close()

    async def test_two_never_get_the_same_job(self, store: Store, sibling: Store) -> None:
        taken: list[str] = []
        enough = asyncio.Event()

        async def worker(handle: Store, name: str) -> None:
            listener = handle.listen("jobs", [QUEUE])
            for n in range(1_000):
                taken.extend(job.id for job in await fetch(handle, listener, claim_request(100, token=f"{name}-{n}")))
                if len(taken) >= 50:
                    enough.set()

        workers = [asyncio.create_task(worker(handle, name)) for handle, name in ((store, "one"), (sibling, "other"))]
        for n in range(50):
            await add(store, new_job(f"job-{n}"))
        await asyncio.wait_for(enough.wait(), 10 * SOON)

        assert sorted(taken) == sorted(f"job-{n}" for n in range(50))
        for task in workers:
            task.cancel()
        await asyncio.wait(workers)

    async def test_it_leaves_other_names_alone(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        fetching = asyncio.create_task(fetch(store, listener, claim_request(token="mine", names=("pay",))))
        await asyncio.sleep(0.01)

        await add(store, new_job("a", name="send"))

        assert await fetching == []
        assert (await read(store, "a")).state == "waiting"
        listener.close()

    async def test_it_takes_nothing_from_a_paused_queue(self, store: Store) -> None:
        await store.configure(QUEUE, pause=True, now=NOW)
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        fetching = asyncio.create_task(fetch(store, listener, claim_request(token="mine")))
        await asyncio.sleep(0.01)

        await add(store, new_job("a"))

        assert await fetching == []
        assert (await read(store, "a")).state == "waiting"
        listener.close()

    async def test_it_is_told_when_a_delayed_job_is_due(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        leaving = asyncio.create_task(listener.claim(claim_request(token="mine"), SOON))
        await asyncio.sleep(0.01)

        await add(store, new_job("a", delay=10_000 * DAY))

        served = await leaving
        claimed = served.claimed if served else await store.claim(claim_request(token="other"))
        assert claimed.jobs == []
        assert claimed.again_at == (await read(store, "a")).due_at
        listener.close()

    @pytest.mark.parametrize("end", ["its time", "an interrupt", "a cancel", "closing"])
    async def test_it_takes_nothing_after(self, store: Store, end: str) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        leaving = asyncio.create_task(listener.claim(claim_request(token="mine"), 0.01 if end == "its time" else None))
        await asyncio.sleep(0.01)
        match end:
            case "an interrupt":
                listener.interrupt()
            case "a cancel":
                leaving.cancel()
            case "closing":
                listener.close()
        await asyncio.wait([leaving])

        await add(store, new_job("a"))

        assert leaving.cancelled() or leaving.result() is None
        assert (await read(store, "a")).state == "waiting"
        listener.close()

    async def test_an_interrupt_is_heard_in_a_listener_s_first_moment(self, store: Store) -> None:
        await store.open()
        listener = store.listen("jobs", [QUEUE])
        claiming = asyncio.create_task(listener.claim(claim_request(), SOON))
        await asyncio.sleep(0)

        listener.interrupt()

        assert await asyncio.wait_for(claiming, SOON / 2) is None
        listener.close()

    async def test_an_interrupt_is_forgotten_when_nobody_waits(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        listener.interrupt()

        assert await listener.wait(0) is False
        listener.close()

    async def test_no_wake_is_lost_between_two_of_them(self, store: Store, sibling: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        taken: list[str] = []

        async def worker() -> None:
            for n in range(1_000):
                jobs = await fetch(store, listener, claim_request(100, token=f"mine-{n}"))
                taken.extend(job.id for job in jobs)
                if len(taken) == 60:
                    return

        working = asyncio.create_task(worker())
        for n in range(60):
            await add(sibling if n % 2 else store, new_job(f"job-{n}"))
            if n % 5 == 0:
                await asyncio.sleep(0.002)

        await asyncio.wait_for(working, 10 * SOON)
        assert sorted(taken) == sorted(f"job-{n}" for n in range(60))
        listener.close()
