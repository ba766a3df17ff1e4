"""Wakes. A wake too many is allowed; one too few is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest

from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...store.contract import Listener, Store
from ...store.values import JobChange, JobUpdate, StallRules
from ..arrange import active, add, cancelled, claim, completed, delayed, read
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    hand_back,
    new_job,
    postpone,
    retry,
)
from .fixtures import NewHandle
from .handles import in_a_thread

Step: TypeAlias = Callable[[Store], Awaitable[object]]
"""Does something to a store."""

SOON: Final = 30.0
"""Seconds that no wake takes, also on a busy machine. Shorter than the waits that it must end."""


async def calm(listener: Listener) -> None:
    """Waits until the wakes of what was arranged are over."""
    for _ in range(50):
        if not await listener.wait(0.02):
            return
    raise AssertionError("the listener is woken again and again although nothing happens")


async def hears(listener: Listener) -> bool:
    return await listener.wait(SOON)


async def _an_active_job(store: Store) -> None:
    await active(store, id="a", attempts=5)


async def _settled(store: Store, outcome: Callable[[JobRecord], Outcome]) -> None:
    await store.settle(QUEUE, [outcome(await read(store, "a"))], now=NOW)


async def _limited(store: Store) -> None:
    await _an_active_job(store)
    await store.configure(QUEUE, max_active=1, now=NOW)
    await add(store, new_job("b"))


async def _nothing(_: Store) -> None:
    pass


JOBS: Final[dict[str, tuple[Step, Step]]] = {
    "add": (_nothing, lambda store: add(store, new_job())),
    "add for later": (_nothing, lambda store: add(store, new_job(delay=DAY))),
    "retry at once": (_an_active_job, lambda store: _settled(store, retry)),
    "retry later": (_an_active_job, lambda store: _settled(store, lambda job: retry(job, SECOND))),
    "postpone": (_an_active_job, lambda store: _settled(store, lambda job: postpone(job, SECOND))),
    "hand back": (_an_active_job, lambda store: _settled(store, hand_back)),
    "complete under a limit": (_limited, lambda store: _settled(store, complete)),
    "cancel under a limit": (_limited, lambda store: store.cancel(QUEUE, ["a"], now=NOW)),
    "remove under a limit": (_limited, lambda store: store.remove(QUEUE, ["a"], force=True, now=NOW)),
    "stall": (_an_active_job, lambda store: store.tick(QUEUE, StallRules(), now=NOW + LOCK)),
    "promote when due": (
        delayed,
        lambda store: store.tick(QUEUE, StallRules(), now=NOW + DAY),
    ),
    "promote by hand": (
        lambda store: delayed(store, id="a"),
        lambda store: store.promote(QUEUE, ["a"], now=NOW),
    ),
    "retry by hand": (
        lambda store: completed(store, id="a"),
        lambda store: store.retry(QUEUE, ["a"], now=NOW),
    ),
    "change": (
        lambda store: delayed(store, id="a"),
        lambda store: store.change(QUEUE, [JobChange("a", delay=SECOND)], now=NOW),
    ),
    "resume": (
        lambda store: store.configure(QUEUE, pause=True, now=NOW),
        lambda store: store.configure(QUEUE, pause=False, now=NOW),
    ),
    "resume a name": (
        lambda store: store.configure(QUEUE, pause_names=["send"], now=NOW),
        lambda store: store.configure(QUEUE, resume_names=["send"], now=NOW),
    ),
    "raise the limit": (
        lambda store: store.configure(QUEUE, max_active=1, now=NOW),
        lambda store: store.configure(QUEUE, max_active=2, now=NOW),
    ),
    "take the limit away": (
        lambda store: store.configure(QUEUE, max_active=1, now=NOW),
        lambda store: store.configure(QUEUE, max_active=0, now=NOW),
    ),
}

EVENTS: Final[dict[str, tuple[Step, Step]]] = {
    **{name: JOBS[name] for name in ("add", "hand back", "stall", "promote by hand", "resume")},
    "claim": (lambda store: add(store, new_job()), claim),
    "complete": (_an_active_job, lambda store: _settled(store, complete)),
    "progress": (_an_active_job, lambda store: store.update(QUEUE, [JobUpdate("a", progress="1")], now=NOW)),
    "cancel": (
        lambda store: add(store, new_job("a")),
        lambda store: store.cancel(QUEUE, ["a"], now=NOW),
    ),
    "remove": (lambda store: cancelled(store, id="a"), lambda store: store.remove(QUEUE, ["a"], now=NOW)),
    "clean": (completed, lambda store: store.clean(QUEUE, "completed", now=NOW)),
    "pause": (_nothing, lambda store: store.configure(QUEUE, pause=True, now=NOW)),
}

REVOKED: Final[dict[str, tuple[Step, Step]]] = {
    "cancel": (_an_active_job, lambda store: store.cancel(QUEUE, ["a"], now=NOW)),
    "remove": (_an_active_job, lambda store: store.remove(QUEUE, ["a"], force=True, now=NOW)),
    "obliterate": (_an_active_job, lambda store: store.obliterate(QUEUE, force=True, now=NOW)),
}


class TestListen:
    @pytest.mark.parametrize(("before", "step"), JOBS.values(), ids=JOBS.keys())
    async def test_workers_hear_whatever_gives_them_work(self, store: Store, before: Step, step: Step) -> None:
        await before(store)
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        await step(store)

        assert await hears(listener)
        listener.close()

    @pytest.mark.parametrize(("before", "step"), EVENTS.values(), ids=EVENTS.keys())
    async def test_readers_of_events_hear_every_entry(self, store: Store, before: Step, step: Step) -> None:
        await before(store)
        listener = store.listen("events", [QUEUE])
        await calm(listener)

        await step(store)

        assert await hears(listener)
        listener.close()

    @pytest.mark.parametrize(("before", "step"), REVOKED.values(), ids=REVOKED.keys())
    async def test_workers_hear_of_revoked_locks(self, store: Store, before: Step, step: Step) -> None:
        await before(store)
        listener = store.listen("revoked", [QUEUE])
        await calm(listener)

        await step(store)

        assert await hears(listener)
        listener.close()

    @pytest.mark.parametrize("settles", [False, True], ids=["claim", "settle"])
    async def test_others_hear_of_what_became_due_and_was_not_taken(
        self, store: Store, sibling: Store, settles: bool
    ) -> None:
        # By the store's own clock none of them is due: whoever begins to listen has nothing to look for.
        now = await store.clock()
        held = await active(store, now=now)
        listener = sibling.listen("jobs", [QUEUE])
        await add(store, *(new_job(delay=DAY) for _ in range(3)), now=now)
        assert await hears(listener)
        while await listener.wait(0.1):
            pass

        if settles:
            await store.settle(QUEUE, [complete(held)], claim_request(1), now=now + DAY)
        else:
            await claim(store, 1, now=now + DAY)

        assert await hears(listener)
        listener.close()


class TestListener:
    async def test_it_says_no_after_its_time(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        assert await listener.wait(0.01) is False
        assert await listener.wait(0) is False
        listener.close()

    async def test_an_interrupt_ends_a_wait(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        waiting = asyncio.create_task(listener.wait())
        await asyncio.sleep(0)

        listener.interrupt()

        assert await asyncio.wait_for(waiting, SOON) is False
        listener.close()

    async def test_an_interrupt_is_forgotten_when_nobody_waits(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        listener.interrupt()

        assert await listener.wait(0) is False
        listener.close()

    async def test_a_waiting_listener_is_woken(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        waiting = asyncio.create_task(hears(listener))
        await asyncio.sleep(0.01)

        await add(store, new_job())

        assert await waiting
        listener.close()

    async def test_what_happened_between_looking_and_waiting_is_heard(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        assert await claim(store) == []
        await add(store, new_job())

        assert await hears(listener)
        assert len(await claim(store)) == 1
        listener.close()

    async def test_no_wake_is_lost_in_a_long_dialogue(self, store: Store, sibling: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        taken: list[str] = []

        async def worker() -> None:
            while len(taken) < 30:
                jobs = await claim(store, 10)
                taken.extend(job.id for job in jobs)
                if not jobs:
                    assert await hears(listener)

        working = asyncio.create_task(worker())
        for n in range(30):
            await add(sibling, new_job(f"job-{n}"))

        await working
        assert taken == [f"job-{n}" for n in range(30)]
        listener.close()

    async def test_every_listener_is_woken(self, store: Store, sibling: Store) -> None:
        listeners = [handle.listen("jobs", [QUEUE]) for handle in (store, store, sibling)]
        for listener in listeners:
            await calm(listener)

        await add(store, new_job())

        for listener in listeners:
            assert await hears(listener)
            listener.close()

    async def test_it_hears_all_its_queues(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE, "parcels"])
        await calm(listener)

        await add(store, new_job(queue="parcels"))

        assert await hears(listener)
        listener.close()

    async def test_many_changes_are_over_after_a_while(self, store: Store) -> None:
        listener = store.listen("events", [QUEUE])
        for _ in range(20):
            await add(store, new_job())

        assert await hears(listener)
        await calm(listener)
        listener.close()

    async def test_a_cancelled_wait_loses_no_wake(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        waiting = asyncio.create_task(listener.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        await add(store, new_job())

        assert await hears(listener)
        listener.close()

    async def test_a_closed_listener_leaves_the_others_alone(self, store: Store) -> None:
        one, other = store.listen("jobs", [QUEUE]), store.listen("jobs", [QUEUE])
        one.close()
        await calm(other)

        await add(store, new_job())

        assert await hears(other)
        other.close()

    @pytest.mark.parametrize("closes", ["the listener", "its handle"])
    async def test_closing_ends_a_wait(self, store: Store, closes: str) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        waiting = asyncio.create_task(listener.wait())
        await asyncio.sleep(0.01)

        if closes == "its handle":
            await store.close()
        listener.close()

        done, _ = await asyncio.wait([waiting], timeout=SOON)
        assert done == {waiting}

    async def test_another_handle_s_changes_are_heard(self, store: Store, new_handle: NewHandle) -> None:
        other = new_handle()
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        await other.add([[new_job()]], now=NOW)

        assert await hears(listener)
        listener.close()
        await other.close()

    async def test_changes_from_another_thread_are_heard(self, store: Store) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)

        await in_a_thread(store, lambda handle: handle.add([[new_job()]], now=NOW))

        assert await hears(listener)
        listener.close()
