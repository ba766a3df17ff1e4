"""Claims with a `wait`: no job is missed, claimed twice, or given to a claim that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest
from msgspec.structs import replace

from ...job.instants import Milliseconds
from ...store.commands import Claim
from ...store.contract import Store
from ...store.values import Claimed, StallRules
from ..arrange import active, add, completed, read
from ..factories import DAY, LOCK, NOW, QUEUE, WORKER, claim_request, complete, new_job, retry
from .fixtures import NewHandle
from .handles import in_a_thread
from .listen import SOON, Step, calm

LONG: Final[Milliseconds] = 60_000
FOR_AGES: Final = 10_000 * DAY
IN_TIME: Final = 10.0
"""Seconds in which a claim finds a job that is due, and before which no store looks again without a reason."""


def waiting_request(limit: int = 1, *, wait: Milliseconds = LONG, token: str = "mine", **request: object) -> Claim:
    return replace(claim_request(limit, token=token), wait=wait, **request)


@contextmanager
def listening(store: Store, *, listens: bool) -> Iterator[None]:
    """With a listener by which the worker's claims wait, or without."""
    listener = store.listen("jobs", [QUEUE], WORKER) if listens else None
    yield
    if listener is not None:
        listener.close()


async def begun(store: Store, request: Claim) -> asyncio.Task[Claimed]:
    """A claim that probably waits by now; what is promised holds either way."""
    claiming = asyncio.create_task(store.claim(request))
    for _ in range(5):
        await store.clock()
        await asyncio.sleep(0)
    return claiming


async def soon(claiming: asyncio.Task[Claimed]) -> Claimed:
    return await asyncio.wait_for(claiming, SOON)


async def _nothing(_: Store) -> None:
    pass


async def _held_and_limited(store: Store) -> None:
    await active(store, id="held")
    await store.configure(QUEUE, max_active=1, now=NOW)
    await add(store, new_job("a"))


async def _paused(store: Store) -> None:
    await store.configure(QUEUE, pause=True, now=NOW)
    await add(store, new_job("a"))


async def _paused_name(store: Store) -> None:
    await store.configure(QUEUE, pause_names=["send"], now=NOW)
    await add(store, new_job("a", name="send"))


async def _complete(store: Store) -> None:
    await store.settle(QUEUE, [complete(await read(store, "held"))], now=NOW)


async def _retry(store: Store) -> None:
    await store.settle(QUEUE, [retry(await read(store, "a"))], now=NOW)


SERVES: Final[dict[str, tuple[Step, Step]]] = {
    "an add": (_nothing, lambda store: add(store, new_job("a"))),
    "a promotion by hand": (
        lambda store: add(store, new_job("a", delay=FOR_AGES)),
        lambda store: store.promote(QUEUE, ["a"], now=NOW),
    ),
    "a tick that promotes": (
        lambda store: add(store, new_job("a", delay=FOR_AGES)),
        lambda store: store.tick(QUEUE, StallRules(), now=NOW + FOR_AGES),
    ),
    "a tick that recovers": (
        lambda store: active(store, id="a"),
        lambda store: store.tick(QUEUE, StallRules(), now=NOW + LOCK),
    ),
    "a retry": (lambda store: active(store, id="a", attempts=5), _retry),
    "a retry by hand": (
        lambda store: completed(store, id="a"),
        lambda store: store.retry(QUEUE, ["a"], now=NOW),
    ),
    "resume": (_paused, lambda store: store.configure(QUEUE, pause=False, now=NOW)),
    "resume of a name": (_paused_name, lambda store: store.configure(QUEUE, resume_names=["send"], now=NOW)),
    "a raised limit": (_held_and_limited, lambda store: store.configure(QUEUE, max_active=2, now=NOW)),
    "a slot under the limit": (_held_and_limited, _complete),
}


class TestWaitingClaim:
    @pytest.mark.parametrize("listens", [True, False], ids=["by its listener", "alone"])
    @pytest.mark.parametrize(("before", "step"), SERVES.values(), ids=SERVES.keys())
    async def test_it_is_served_by(self, store: Store, before: Step, step: Step, listens: bool) -> None:
        await before(store)
        with listening(store, listens=listens):
            if listens:
                assert (await store.claim(claim_request())).jobs == []
            claiming = await begun(store, waiting_request())

            await step(store)

            [job] = (await soon(claiming)).jobs
        assert (job.id, job.token, job.state) == ("a", "mine", "active")
        assert job == await read(store, "a")

    async def test_it_is_answered_at_once_if_there_are_jobs(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))

        claimed = await asyncio.wait_for(store.claim(waiting_request(10)), SOON)

        assert [job.id for job in claimed.jobs] == ["a", "b"]

    async def test_it_is_served_by_an_add_of_another_handle(self, store: Store, new_handle: NewHandle) -> None:
        other = new_handle()
        claiming = await begun(store, waiting_request())

        await add(other, new_job("a"))

        assert [job.id for job in (await soon(claiming)).jobs] == ["a"]
        await other.close()

    async def test_it_is_served_when_a_delay_ends(self, store: Store) -> None:
        await store.add([[new_job("a", delay=50)]])

        claimed = await asyncio.wait_for(store.claim(waiting_request()), SOON)

        assert [job.id for job in claimed.jobs] == ["a"]

    async def test_a_delayed_job_that_comes_while_it_waits_is_served_when_due(self, store: Store) -> None:
        claiming = await begun(store, waiting_request())

        await store.add([[new_job("a", delay=50)]])

        assert [job.id for job in (await soon(claiming)).jobs] == ["a"]

    async def test_a_delay_that_its_listener_was_woken_for_before_is_served_when_due(self, store: Store) -> None:
        """As by a worker whose last job postpones itself: no claim has seen the delay that the wake told of."""
        listener = store.listen("jobs", [QUEUE], WORKER)
        await calm(listener)
        waiting = asyncio.create_task(listener.wait(SOON))
        assert (await store.claim(claim_request())).jobs == []
        listener.interrupt()
        await waiting

        await store.add([[new_job("a", delay=200)]])

        claimed = await asyncio.wait_for(store.claim(waiting_request()), IN_TIME)
        assert [job.id for job in claimed.jobs] == ["a"]
        listener.close()

    async def test_its_answer_tells_how_long_it_waited(self, store: Store) -> None:
        began = asyncio.get_running_loop().time()
        claiming = await begun(store, waiting_request())
        await store.add([[new_job("a", delay=50)]])

        claimed = await soon(claiming)

        assert 0 < claimed.waited <= (asyncio.get_running_loop().time() - began) * 1000

    async def test_it_gets_no_more_than_it_asked_for_and_the_most_urgent(self, store: Store) -> None:
        claiming = await begun(store, waiting_request(2))

        await add(store, *(new_job(f"job-{n}", priority=-n) for n in range(5)))

        assert [job.id for job in (await soon(claiming)).jobs] == ["job-4", "job-3"]
        assert (await store.count(QUEUE))["waiting"] == 3

    async def test_it_gets_no_more_than_the_limit_of_the_queue_allows(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=2, now=NOW)
        claiming = await begun(store, waiting_request(5))

        await add(store, *(new_job(f"job-{n}") for n in range(5)))

        assert len((await soon(claiming)).jobs) == 2
        assert (await store.count(QUEUE))["waiting"] == 3

    async def test_it_waits_on_for_jobs_of_its_names(self, store: Store) -> None:
        claiming = await begun(store, waiting_request(names=("pay",)))

        await add(store, new_job("a", name="send"))
        await add(store, new_job("b", name="pay"))

        assert [job.id for job in (await soon(claiming)).jobs] == ["b"]
        assert (await read(store, "a")).state == "waiting"

    async def test_two_share_the_jobs(self, store: Store, sibling: Store) -> None:
        both = [
            await begun(handle, waiting_request(token=token)) for handle, token in ((store, "one"), (sibling, "other"))
        ]

        await add(store, new_job("a"))
        await add(store, new_job("b"))

        jobs = [job for claiming in both for job in (await soon(claiming)).jobs]
        assert sorted((job.id, job.state) for job in jobs) == [("a", "active"), ("b", "active")]

    @pytest.mark.parametrize("listens", [True, False], ids=["by listeners", "alone"])
    async def test_no_job_is_lost_or_given_twice(self, store: Store, sibling: Store, listens: bool) -> None:
        taken: list[str] = []
        enough = asyncio.Event()

        async def worker(handle: Store, name: str) -> None:
            with listening(handle, listens=listens):
                for n in range(1_000):
                    # Claimed first, as the listener requires.
                    for wait in (0, LONG):
                        request = waiting_request(100, token=f"{name}-{n}-{wait}", wait=wait)
                        taken.extend(job.id for job in (await handle.claim(request)).jobs)
                    if len(taken) >= 50:
                        enough.set()

        workers = [asyncio.create_task(worker(handle, name)) for handle, name in ((store, "one"), (sibling, "other"))]
        for n in range(50):
            await add(store if n % 2 else sibling, new_job(f"job-{n}"))
        # Further jobs wake who waits, and are counted too.
        for n in range(50, 1_000):
            if enough.is_set():
                break
            await add(store, new_job(f"job-{n}"))
        for task in workers:
            task.cancel()
        await asyncio.wait(workers)

        assert enough.is_set()
        assert len(taken) == len(set(taken))

    @pytest.mark.parametrize("end", ["its time", "a withdrawal", "a withdrawal by another thread", "a cancel"])
    @pytest.mark.parametrize("listens", [True, False], ids=["by its listener", "alone"])
    async def test_it_takes_nothing_after(self, store: Store, end: str, listens: bool) -> None:
        with listening(store, listens=listens):
            claiming = await begun(store, waiting_request(wait=20 if end == "its time" else LONG))
            match end:
                case "a withdrawal":
                    assert (await store.withdraw(waiting_request())).jobs == []
                case "a withdrawal by another thread":
                    withdrawn = await in_a_thread(store, lambda handle: handle.withdraw(waiting_request()))
                    assert withdrawn.jobs == []
                case "a cancel":
                    claiming.cancel()
            with suppress(asyncio.CancelledError):
                assert (await soon(claiming)).jobs == []

            await add(store, new_job("a"))

            assert (await read(store, "a")).state == "waiting"

    async def test_it_takes_nothing_after_its_listener_was_closed(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE], WORKER)
        claiming = await begun(store, waiting_request())

        listener.close()

        assert (await soon(claiming)).jobs == []
        await add(store, new_job("a"))
        assert (await read(store, "a")).state == "waiting"

    async def test_a_withdrawal_in_its_first_moment_ends_it(self, store: Store) -> None:
        await store.open()
        claiming = asyncio.create_task(store.claim(waiting_request()))
        await asyncio.sleep(0)

        await store.withdraw(waiting_request())

        assert (await soon(claiming)).jobs == []

    async def test_a_withdrawal_tells_which_jobs_the_claim_was_given(self, store: Store, sibling: Store) -> None:
        await add(store, new_job("a"), new_job("b"), new_job("c"))
        given = await store.claim(waiting_request(2))

        withdrawn = await sibling.withdraw(waiting_request())

        assert withdrawn.jobs == given.jobs == [await read(store, "a"), await read(store, "b")]
        assert (await read(store, "c")).state == "waiting"

    async def test_withdrawing_a_claim_that_nobody_sent_does_nothing(self, store: Store) -> None:
        await add(store, new_job("a"))

        assert (await store.withdraw(waiting_request())).jobs == []
        assert (await read(store, "a")).state == "waiting"

    async def test_a_withdrawal_ends_no_other_claim(self, store: Store) -> None:
        mine, other = [await begun(store, waiting_request(token=token)) for token in ("mine", "other")]

        await store.withdraw(waiting_request())
        assert (await soon(mine)).jobs == []
        await add(store, new_job("a"))

        assert [job.token for job in (await soon(other)).jobs] == ["other"]

    async def test_a_repeated_one_answers_the_jobs_that_it_was_given(self, store: Store, sibling: Store) -> None:
        with listening(store, listens=True):
            # Before the listener is there it would wake nobody: the claim would look for it when its wait is over.
            await add(store, new_job("a"))
            given = await soon(asyncio.create_task(store.claim(waiting_request())))

            again = await asyncio.wait_for(store.claim(waiting_request(repeat=True)), SOON)

        assert [job.id for job in given.jobs] == ["a"]
        assert again.jobs == given.jobs
        elsewhere = await asyncio.wait_for(sibling.claim(waiting_request(repeat=True)), SOON)
        assert elsewhere.jobs == given.jobs

    async def test_in_a_settle_it_does_not_wait(self, store: Store) -> None:
        held = await active(store, id="a")

        settled = await asyncio.wait_for(store.settle(QUEUE, [complete(held)], waiting_request()), SOON)

        assert settled.claimed is not None
        assert settled.claimed.jobs == []

    async def test_it_uses_up_the_wakes_of_its_listener(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE], WORKER)
        for n in range(10):
            await calm(listener)
            claiming = await begun(store, waiting_request(token=f"mine-{n}"))
            await add(store, new_job(f"job-{n}"))
            await soon(claiming)
            # A wake too many is allowed, but not every time.
            if not await listener.wait(0.1):
                break
        else:
            raise AssertionError("the listener repeats what its claims have seen")
        listener.close()
