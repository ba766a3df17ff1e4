"""Webhooks in tests of applications."""

from __future__ import annotations

import pytest

from ropeway import Job, Queue, Webhook
from ropeway.job.options import stored_options
from ropeway.job.webhooks import DELIVERY_OPTIONS
from ropeway.testing import FakeStore, WebhookRequest, assert_added, drain
from ropeway.webhooks import verify

SECRET = "a secret of some length"


@pytest.fixture
def orders() -> Queue:
    return Queue("orders", store=FakeStore(), webhook=Webhook("https://example.com/hook", secret=SECRET))


async def handle(job: Job) -> str:
    return f"done {job.data}"


async def test_what_would_be_sent_is_recorded(orders: Queue):
    await orders.add("charge", 7)
    await orders.add("silent", webhook=None)

    drained = await drain(orders, handle)

    [request] = drained.webhooks
    assert request.url == "https://example.com/hook"
    assert request.message["type"] == "job.completed"
    assert request.message["data"]["result"] == "done 7"
    assert_added(orders, "charge", webhook="https://example.com/hook")
    assert_added(orders, "silent", webhook=None)


async def test_a_receiver_gets_signed_messages_and_their_retries(orders: Queue):
    answers = iter([500, 200])

    async def receive(request: WebhookRequest) -> int:
        verify(request.headers, request.body, SECRET)
        return next(answers)

    await orders.add("charge", 7)

    drained = await drain(orders, handle, receiver=receive)

    first, second = drained.webhooks
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (await drain(orders, handle)).webhooks == []


async def test_a_message_that_nobody_takes_is_given_up_after_its_last_attempt(orders: Queue):
    async def receive(_: WebhookRequest) -> int:
        return 503

    job = await orders.add("charge", 7)

    drained = await drain(orders, handle, receiver=receive)

    attempts = stored_options(DELIVERY_OPTIONS).attempts
    assert len(drained.webhooks) == attempts
    failed = [event async for event in orders.events("start", follow=False) if event.name == "webhook-failed"]
    assert [(event.job_id, event.data["attempts"], event.data["reason"]) for event in failed] == [
        (job.id, attempts, "it answered 503")
    ]
