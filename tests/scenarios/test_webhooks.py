"""Deliveries of webhooks outlive the workers that make them."""

from __future__ import annotations

import asyncio

from ropeway import Queue, Webhook
from ropeway.webhooks import verify
from tests.webhooks.receiver import Request, plain, receiving

from .harness import Fleet, until

JOBS = 20
SECRET = "a secret that is long enough"


async def test_every_end_is_reported_though_the_worker_is_killed_while_it_delivers(queue: Queue, fleet: Fleet):
    async with receiving() as receiver:

        async def never(_: Request, __: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        receiver.answers = [plain(), plain(), never]
        webhook = Webhook(receiver.url, secret=SECRET, allow_hosts=receiver.allowed)
        jobs = await Queue(queue.name, store=queue.store, webhook=webhook).add_many([("nap", 0)] * JOBS)
        first = fleet.start(lock_duration=1, stalled_interval=0.2)
        await receiver.got(5)
        first.kill()
        receiver.answers = [plain()]
        before = len(receiver.requests)
        fleet.start(lock_duration=1, stalled_interval=0.2)

        def reported() -> set[str]:
            answered = [*receiver.requests[:2], *receiver.requests[before:]]
            messages = [verify(request.headers, request.body, SECRET) for request in answered]
            return {message["data"]["id"] for message in messages}

        await until(lambda: reported() >= {job.id for job in jobs}, "the report of every job")
        ids = {request.headers["webhook-id"] for request in receiver.requests}
        assert len(ids) == JOBS, "a repeated message has the id of the first"


async def test_a_worker_that_is_told_to_stop_finishes_its_deliveries_and_hands_back_those_that_hang(
    queue: Queue, fleet: Fleet
):
    async with receiving() as receiver:
        asked, answers = asyncio.Event(), asyncio.Event()

        async def later(_: Request, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await answers.wait()
            writer.write(plain())

        receiver.answers = [later]
        webhook = Webhook(receiver.url, allow_hosts=receiver.allowed)
        orders = Queue(queue.name, store=queue.store, webhook=webhook)
        job = await orders.add("nap", 0)
        worker = fleet.start()
        await asyncio.wait_for(asked.wait(), 60)
        worker.terminate()
        await until(lambda: worker.wrote("stopping"), "the beginning of its end")
        answers.set()
        assert await worker.exit() == 0
        delivery = await orders.delivery(job.id)
        assert delivery is not None
        assert delivery.snapshot.state == "completed", "what was under way was awaited"

        answers.clear()
        asked.clear()
        second = await orders.add("nap", 0)
        worker = fleet.start(grace=0.1)
        await asyncio.wait_for(asked.wait(), 60)
        worker.terminate()
        await worker.exit()
        hanging = await orders.delivery(second.id)
        assert hanging is not None
        assert (hanging.snapshot.state, hanging.snapshot.attempts_made) == ("waiting", 0)
        answers.set()
