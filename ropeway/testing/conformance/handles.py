"""Store handles: closing them, using them from several threads, cancelling their calls."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from ...errors import StoreClosed
from ...store.commands import COMMANDS, Find
from ...store.contract import Store
from ...store.values import JobChange, JobUpdate, Lock, Record, ScheduleWrite, StallRules
from ..arrange import add, claim, read
from ..factories import FOREIGN, NOW, QUEUE, claim_request, complete, new_job, new_jobs
from .fixtures import NewHandle

T = TypeVar("T")
StoreCall: TypeAlias = Callable[[Store], Awaitable[object]]

CALLS: Final[dict[str, StoreCall]] = {
    "open": lambda store: store.open(),
    "add": lambda store: store.add([[new_job()]]),
    "claim": lambda store: store.claim(claim_request()),
    "withdraw": lambda store: store.withdraw(claim_request()),
    "settle": lambda store: store.settle(QUEUE, [], claim_request()),
    "renew": lambda store: store.renew(QUEUE, [Lock("a", FOREIGN)], 1),
    "update": lambda store: store.update(QUEUE, [JobUpdate("a", progress="1")]),
    "tick": lambda store: store.tick(QUEUE, StallRules()),
    "cancel": lambda store: store.cancel(QUEUE, ["a"]),
    "retry": lambda store: store.retry(QUEUE, ["a"]),
    "promote": lambda store: store.promote(QUEUE, ["a"]),
    "change": lambda store: store.change(QUEUE, [JobChange("a", priority=1)]),
    "remove": lambda store: store.remove(QUEUE, ["a"]),
    "configure": lambda store: store.configure(QUEUE, pause=True),
    "write_schedules": lambda store: store.write_schedules(QUEUE, [ScheduleWrite("nightly", "1")]),
    "schedules": lambda store: store.schedules(QUEUE),
    "dedupe": lambda store: store.dedupe(QUEUE, "key"),
    "release_dedupe": lambda store: store.release_dedupe(QUEUE, "key"),
    "clear_log": lambda store: store.clear_log(QUEUE, "a"),
    "publish": lambda store: store.publish(QUEUE, "imported", "{}"),
    "trim_events": lambda store: store.trim_events(QUEUE),
    "clean": lambda store: store.clean(QUEUE, "completed"),
    "obliterate": lambda store: store.obliterate(QUEUE),
    "get": lambda store: store.get(QUEUE, ["a"]),
    "find": lambda store: store.find(Find(QUEUE, ("waiting",))),
    "count": lambda store: store.count(QUEUE),
    "metrics": lambda store: store.metrics(QUEUE),
    "count_waiting": lambda store: store.count_waiting(QUEUE, [0]),
    "log": lambda store: store.log(QUEUE, "a"),
    "history": lambda store: store.history(QUEUE, "a"),
    "children": lambda store: store.children(QUEUE, "a"),
    "settings": lambda store: store.settings(QUEUE),
    "queues": lambda store: store.queues(),
    "clock": lambda store: store.clock(),
    "events": lambda store: store.events(QUEUE),
    "revoked": lambda store: store.revoked(QUEUE),
    "listen": lambda store: store.listen("jobs", [QUEUE]).wait(0),
    "remember": lambda store: store.remember(Record("worker", "w", "1")),
    "recall": lambda store: store.recall("worker"),
    "forget": lambda store: store.forget("worker", "w"),
}
"""One call of every verb."""


async def in_a_thread(store: Store, call: Callable[[Store], Awaitable[T]]) -> T:
    """Makes a call through a sibling, on the event loop of another thread."""

    async def through_a_sibling() -> T:
        handle = store.sibling()
        try:
            return await call(handle)
        finally:
            await handle.close()

    return await asyncio.to_thread(lambda: asyncio.run(through_a_sibling()))


class TestClosed:
    def test_every_verb_is_asked_about(self) -> None:
        verbs = {command.__struct_config__.tag for command in COMMANDS}

        assert CALLS.keys() == verbs | {"open", "listen"}

    async def test_a_closed_handle_refuses_every_call(self, store: Store) -> None:
        await store.close()

        for verb, call in CALLS.items():
            try:
                await call(store)
            except StoreClosed:
                continue
            raise AssertionError(f"{verb} is not refused")

    async def test_closing_twice_is_closing_once(self, store: Store) -> None:
        await store.close()
        await store.close()

    async def test_a_handle_that_was_never_used_can_be_closed(self, new_handle: NewHandle) -> None:
        await new_handle().close()

    async def test_opening_twice_is_opening_once(self, store: Store) -> None:
        await store.open()
        await store.open()

        assert await store.queues() == []

    async def test_a_verb_opens_the_handle_by_itself(self, store: Store, new_handle: NewHandle) -> None:
        await add(store, new_job("a"))
        other = new_handle()

        assert (await read(other, "a")).state == "waiting"
        await other.close()

    async def test_closing_a_handle_leaves_its_siblings_alone(self, store: Store, sibling: Store) -> None:
        await add(sibling, new_job("a"))
        await store.close()

        assert [job.id for job in await claim(sibling)] == ["a"]

    async def test_closing_a_sibling_leaves_the_handle_alone(self, store: Store) -> None:
        other = store.sibling()
        await add(other, new_job("a"))
        await other.close()

        assert [job.id for job in await claim(store)] == ["a"]

    async def test_what_was_added_outlives_the_handle(self, store: Store, new_handle: NewHandle) -> None:
        jobs = await add(store, *new_jobs(3), new_job(delay=1))
        await store.close()

        other = new_handle()
        assert [await read(other, job.id) for job in jobs] == jobs
        await other.close()


class TestThreads:
    async def test_a_sibling_works_on_the_loop_of_another_thread(self, store: Store) -> None:
        await in_a_thread(store, lambda handle: add(handle, new_job("a")))

        assert (await read(store, "a")).state == "waiting"

    async def test_threads_that_claim_at_once_never_share_a_job(self, store: Store) -> None:
        jobs = await add(store, *new_jobs(60))

        async def work(handle: Store) -> list[str]:
            ran: list[str] = []
            while held := await claim(handle, 2):
                ran += [job.id for job in held]
                await handle.settle(QUEUE, [complete(job) for job in held], now=NOW)
            return ran

        ran = await asyncio.gather(*(in_a_thread(store, work) for _ in range(4)))

        assert sorted(id for ids in ran for id in ids) == sorted(job.id for job in jobs)

    async def test_threads_that_add_one_id_at_once_make_one_job(self, store: Store) -> None:
        answers = await asyncio.gather(
            *(in_a_thread(store, lambda handle: handle.add([[new_job("a")]])) for _ in range(5))
        )

        assert sorted(answer.verdict for [[answer]] in answers) == ["created", *["found"] * 4]


class TestLoops:
    async def test_loops_that_have_ended_do_not_pile_up(self, store: Store) -> None:
        loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

        async def use() -> None:
            loops.append(weakref.ref(asyncio.get_running_loop()))
            await store.count(QUEUE)

        await asyncio.to_thread(lambda: [asyncio.run(use()) for _ in range(3)])
        gc.collect()

        # The last one may be known until there is another.
        assert [loop() for loop in loops[:-1]] == [None] * 2


class TestCancelledCalls:
    async def test_the_handle_stays_usable_and_the_call_can_be_repeated(self, store: Store) -> None:
        bundle = new_jobs(3)
        for steps in range(6):
            call = asyncio.create_task(store.add([bundle], now=NOW))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

        [answers] = await store.add([bundle], now=NOW)

        assert {answer.verdict for answer in answers} <= {"created", "found"}
        assert (await store.count(QUEUE))["waiting"] == 3

    async def test_a_cancelled_claim_can_be_repeated(self, store: Store) -> None:
        await add(store, *new_jobs(4))
        call = asyncio.create_task(store.claim(claim_request(2, token="t"), now=NOW))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        jobs = await claim(store, 2, token="t", repeat=True)

        assert len(jobs) == 2
        assert (await store.count(QUEUE))["active"] == 2

    async def test_calls_beside_a_cancelled_one_get_their_own_answers(self, store: Store) -> None:
        calls = [asyncio.create_task(store.add([[new_job(f"job-{n}")]], now=NOW)) for n in range(20)]
        await asyncio.sleep(0)
        for call in calls[::3]:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)

        for n, answer in enumerate(answers):
            if not isinstance(answer, BaseException):
                assert [[added.id for added in bundle] for bundle in answer] == [[f"job-{n}"]]
