"""Updates of running jobs that are made at the same time share round trips."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.client.updates import DIVIDED_FROM, UnawaitedUpdate
from ropeway.errors import InvalidOption, StoreUnavailable
from ropeway.job.marks import Mark, Marking, Notice
from ropeway.store.offers import Offers
from ropeway.store.values import Answer, JobUpdate
from tests.patience import PATIENCE

from .tampering import Door, Tampering


def change(id: str, *notices: str) -> JobUpdate:
    return JobUpdate(id, marking=Marking((Mark("a", "1"),), notices=tuple(map(Notice, notices))))


def trips(tampering: Tampering) -> list[list[str]]:
    return [[update.id for update in updates] for _, updates in tampering.given_to("update")]


@pytest.fixture
async def held(tampered_queue: Queue, tampering: Tampering) -> Door:
    """A door in the way of the first update, which is under way."""
    await tampered_queue.add_many([("send", None, {"id": id}) for id in "abcdef"])
    door = Door()
    tampering.before["update"] = door.pass_through
    return door


async def send(queue: Queue, *changes: JobUpdate) -> list[asyncio.Task[Answer]]:
    async def one(change: JobUpdate) -> Answer:
        return await queue.updates.send(change)

    sent = [asyncio.create_task(one(each)) for each in changes]
    await asyncio.sleep(0)
    return sent


class Unawaited(UnawaitedUpdate):
    def __init__(self, queue: Queue, id: str, refused: Callable[[Answer], None] = lambda _: None) -> None:
        self._hear = refused
        queue.updates.enqueue(change(id), self)

    def _refused(self, answer: Answer) -> None:
        self._hear(answer)


async def test_a_single_one_goes_at_once_and_others_gather(tampered_queue: Queue, tampering: Tampering, held: Door):
    sent = await send(tampered_queue, *map(change, "abcd"))
    await held.reached.wait()
    sent += await send(tampered_queue, change("b"))
    held.opened.set()

    answers = await asyncio.gather(*sent)

    assert trips(tampering) == [["a"], ["b", "c", "d", "b"]]
    assert answers == [Answer("done", "waiting")] * 5


async def test_each_gets_its_own_answer(tampered_queue: Queue, held: Door):
    held.opened.set()
    sent = await send(tampered_queue, change("a"), change("b"), change("missing"), change("c"))

    assert [(await each).verdict for each in sent] == ["done", "done", "missing", "done"]


async def test_what_one_has_wrong_is_told_to_it_alone(tampered_queue: Queue, tampering: Tampering, held: Door):
    def refuse(_: str, updates: Any) -> None:
        if any(update.id == "c" for update in updates):
            raise InvalidOption("c", "is wrong")

    sent = await send(tampered_queue, *map(change, "abcd"))
    tampering.before["update"] = refuse
    held.opened.set()

    answers = await asyncio.gather(*sent, return_exceptions=True)

    assert [type(answer) for answer in answers] == [Answer, Answer, InvalidOption, Answer]


async def test_an_outage_is_told_to_all_of_the_trip(tampered_queue: Queue, tampering: Tampering, held: Door):
    def away(*_: Any) -> None:
        raise StoreUnavailable("test://", "on purpose")

    sent = await send(tampered_queue, *map(change, "abc"))
    tampering.before["update"] = away
    held.opened.set()

    answers = await asyncio.gather(*sent, return_exceptions=True)

    assert [type(answer) for answer in answers] == [Answer, StoreUnavailable, StoreUnavailable]
    assert answers[1] is not answers[2]
    assert trips(tampering) == [["a"], ["b", "c"]]


async def test_an_unawaited_one_goes_with_the_others_and_a_withdrawn_one_does_not(
    tampered_queue: Queue, tampering: Tampering, held: Door
):
    sent = await send(tampered_queue, change("a"))
    unawaited, withdrawn = [Unawaited(tampered_queue, id) for id in "bc"]
    sent += await send(tampered_queue, change("d"))
    assert withdrawn.withdraw()
    held.opened.set()
    await asyncio.gather(*sent)

    assert await unawaited.answer() == Answer("done", "waiting")
    assert not unawaited.withdraw()
    assert trips(tampering) == [["a"], ["b", "d"]]


async def test_an_unawaited_one_alone_is_sent_at_once_and_hears_of_its_refusal(tampered_queue: Queue):
    refused: list[Answer] = []

    unawaited = Unawaited(tampered_queue, "missing", refused.append)

    assert (await unawaited.answer()).verdict == "missing"
    assert [answer.verdict for answer in refused] == ["missing"]


async def test_many_are_divided_where_that_pays_and_the_other_half_follows_at_once(
    tampered_queue: Queue, tampering: Tampering, held: Door
):
    """The handlers of the first half go on while the store works on the second, and do not join it."""
    tampering.offers = Offers(side_by_side_from=4 // DIVIDED_FROM)
    first = [Unawaited(tampered_queue, id) for id in "abcd"]
    await held.reached.wait()
    assert trips(tampering) == [["a", "b"]]
    again: list[Awaitable[Answer]] = []

    def go_on(answer: Answer) -> None:
        again.append(tampered_queue.updates.send(change("e")))

    missing = Unawaited(tampered_queue, "missing", go_on)
    held.opened.set()
    for each in (*first, missing):
        await each.answer()
    await asyncio.gather(*again)

    assert trips(tampering) == [["a", "b"], ["c", "d", "missing"], ["e"]]


async def test_one_of_a_cancelled_caller_is_left_out(tampered_queue: Queue, tampering: Tampering, held: Door):
    first, second, third = await send(tampered_queue, *map(change, "abc"))
    await held.reached.wait()
    second.cancel()
    held.opened.set()

    await asyncio.gather(first, third)

    assert trips(tampering) == [["a"], ["c"]]


async def test_the_others_go_on_if_the_one_under_way_is_cancelled(
    tampered_queue: Queue, tampering: Tampering, held: Door
):
    first, second = await send(tampered_queue, *map(change, "ab"))
    await held.reached.wait()
    held.opened.set()
    first.cancel()

    assert (await second).verdict == "done"


@pytest.mark.every_store
async def test_steps_of_many_jobs_share_trips(tampered_queue: Queue, tampering: Tampering):
    together = asyncio.Barrier(20)

    async def step(number: int) -> int:
        await together.wait()
        return number

    async def work(job: Job) -> int:
        return await job.step("one", step, job.data)

    async with Worker(tampered_queue, work, concurrency=20):
        jobs = await tampered_queue.add_many([("work", number) for number in range(20)])
        assert [await job.result(timeout=PATIENCE) for job in jobs] == list(range(20))

    # Three, but for a store that answers before the next task can run.
    assert tampering.calls["update"] < 10
