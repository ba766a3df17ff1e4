"""How deliveries are spread, and what they heed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import pytest

from ropeway import Job, JobOptions, Queue, StoreUnavailable, Worker
from ropeway.job.states import State
from ropeway.job.webhooks import DELIVERIES
from ropeway.webhooks.failures import Unreachable
from ropeway.webhooks.reply import Reply
from ropeway.worker.delivering import (
    FAILING_AFTER,
    LONGEST_WAIT,
    MOST_TO_FAILING,
    SHORTEST_WAIT,
    Deliverer,
    retry_after,
)
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

DOWN, FINE = "https://down.example.com/", "https://fine.example.com/"
TO_DOWN: JobOptions = {"webhook": DOWN}


class Network:
    """Hosts that answer at once, and one that does not answer until it is said to."""

    def __init__(self) -> None:
        self.hangs = False
        self.in_flight: Counter[str] = Counter()
        self.ended = asyncio.Event()

    async def send(self, url: str, headers: list[tuple[str, str]], body: bytes, allowed: Iterable[str]) -> Reply:
        if url == FINE:
            return Reply(200, None, b"", 0)
        self.in_flight[url] += 1
        if self.hangs:
            await self.ended.wait()
        raise Unreachable("it did not answer")

    def close(self) -> None:
        """Has no connections."""


async def nothing(_: Job) -> None:
    pass


async def test_a_receiver_that_is_down_does_not_take_the_slots_of_others(queue: Queue):
    network = Network()
    deliveries = Queue(DELIVERIES, store=queue.store)
    deliverer = Deliverer(queue.store, network)
    async with Worker(queue, nothing, webhooks=False), Worker(deliveries, deliverer.run, concurrency=20):
        await queue.add_many([("send", None, TO_DOWN)] * FAILING_AFTER)
        await counted(deliveries, "delayed", FAILING_AFTER)
        network.hangs = True
        await queue.add_many([("send", None, TO_DOWN)] * 20)
        await counted(deliveries, "delayed", FAILING_AFTER + 20 - MOST_TO_FAILING)
        await queue.add("send", webhook=FINE)
        await counted(deliveries, "completed", 1)
        assert network.in_flight[DOWN] == FAILING_AFTER + MOST_TO_FAILING
        network.ended.set()


async def counted(queue: Queue, state: State, number: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await queue.counts())[state] < number:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_an_event_that_cannot_be_written_fails_no_delivery(tampered_queue: Queue, tampering: Tampering):
    async def fail(*_: object) -> None:
        raise StoreUnavailable("memory://", "gone")

    tampering.before["publish"] = fail
    queue, network = tampered_queue, Network()
    deliveries = Queue(DELIVERIES, store=queue.store)
    deliverer = Deliverer(queue.store, network)
    async with Worker(queue, nothing, webhooks=False), Worker(deliveries, deliverer.run):
        await queue.add("send", webhook=FINE)
        await counted(deliveries, "completed", 1)


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", 120_000),
        ("1", SHORTEST_WAIT),
        ("0", 0),
        ("99999999999999999999", LONGEST_WAIT),
        ("Thu, 01 Jan 1970 00:17:40 GMT", 60_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("9" * 101, 0),
        ("", 0),
        (None, 0),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date_and_bounded(text: str | None, wait: int):
    assert retry_after(text, now=1_000) == wait
