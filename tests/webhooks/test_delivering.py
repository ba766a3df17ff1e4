"""Webhooks from the add of a job to the answer of the receiver."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import Any

import pytest

from ropeway import Flow, FoundJob, InvalidOption, Job, JobOptions, Queue, Webhook, Worker
from ropeway.job.events import Event
from ropeway.job.extras import WebhookRule
from ropeway.job.webhook_options import EVENTS
from ropeway.job.webhooks import DELIVERIES
from ropeway.store.commands import Find
from ropeway.webhooks import verify

from .receiver import PATIENCE, Receiver, plain

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD = "another secret that is older"


async def handle(job: Job) -> Any:
    if job.name == "bad":
        raise ValueError("no such user")
    return {"sent": job.data}


def hooked(queue: Queue, receiver: Receiver, **options: Any) -> Queue:
    options = {"secret": SECRET, "allow_hosts": receiver.allowed, **options}
    return Queue(queue.name, store=queue.store, webhook=Webhook(receiver.url, **options))


async def heard(queue: Queue, *names: str, after: str) -> Event:
    async with asyncio.timeout(PATIENCE):
        async for event in queue.events(after):
            if event.name in names:
                return event
    raise AssertionError("the stream ended")


async def delivery_in(state: str, queue: Queue, id: str) -> FoundJob:
    async with asyncio.timeout(PATIENCE):
        deliveries = Queue(DELIVERIES, store=queue.store)
        async with aclosing(deliveries.events("start")) as events:
            async for event in events:
                if event.name == state and f":{id}:" in (event.job_id or ""):
                    found = await deliveries.get(event.job_id or "")
                    if found is not None and found.snapshot.state == state:
                        return found
    raise AssertionError("the stream ended")


@pytest.mark.every_store
async def test_the_end_of_a_job_is_reported_with_a_signature(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    start = await orders.newest_event()
    async with Worker(orders, handle):
        job = await orders.add("good", {"to": "a@example.com"})
        [request] = await receiver.got(1)
        event = await heard(orders, "webhook-delivered", after=start)
    message = verify(request.headers, request.body, SECRET)
    assert message["type"] == "job.completed"
    about = message["data"]
    assert (about["queue"], about["id"], about["name"]) == (orders.name, job.id, "good")
    assert (about["data"], about["result"]) == ({"to": "a@example.com"}, {"sent": {"to": "a@example.com"}})
    assert (about["attempts"], about["finished_at"]) == (1, message["timestamp"])
    assert request.target == "/hook?x=1"
    assert (event.job_id, event.data["status"]) == (job.id, 200)
    names = [each.name async for each in orders.events("start", follow=False) if each.job_id == job.id]
    assert names[-2:] == ["completed", "webhook-delivered"]
    delivery = await orders.delivery(job.id)
    assert delivery is not None
    assert (delivery.id, delivery.snapshot.state) == (request.headers["webhook-id"], "completed")
    assert "200 in " in (await delivery.history()).log[0].text


async def test_a_failure_is_reported_with_its_reason_and_a_cancellation_if_asked_for(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver, events=["failed", "cancelled"])
    async with Worker(orders, handle):
        await orders.add("good")
        await orders.add("bad")
        [failed] = await receiver.got(1)
        await orders.pause()
        later = await orders.add("good")
        await orders.cancel(later.id, "not needed")
        [_, cancelled] = await receiver.got(2)
    about = verify(failed.headers, failed.body, SECRET)
    assert (about["type"], about["data"]["reason"]) == ("job.failed", "ValueError: no such user")
    assert verify(cancelled.headers, cancelled.body, SECRET)["data"]["reason"] == "not needed"


async def test_a_jobs_own_url_goes_before_that_of_its_queue(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    own = f"http://localhost:{receiver.port}/own"
    async with Worker(orders, handle):
        silent = await orders.add("good", webhook=False)
        await silent.result(timeout=PATIENCE)
        assert await orders.delivery(silent.id) is None
        await orders.add("good", webhook=own)
        [request] = await receiver.got(1)
    assert request.target == "/own"


async def test_a_worker_delivers_for_jobs_of_a_queue_that_has_no_webhook_of_its_own(
    queue: Queue, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ROPEWAY_WEBHOOK_ALLOW", f"localhost:{receiver.port}")
    async with Worker(queue, handle):
        await queue.add("good", webhook=receiver.url)
        [request] = await receiver.got(1)
    assert "webhook-signature" not in request.headers


async def test_a_worker_may_be_told_not_to_deliver(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    async with Worker(orders, handle, webhooks=False):
        job = await orders.add("good")
        await job.result(timeout=PATIENCE)
    delivery = await orders.delivery(job.id)
    assert delivery is not None
    assert delivery.snapshot.state == "waiting"


async def test_both_secrets_sign_while_one_replaces_the_other(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver, secret=[SECRET, OLD])
    async with Worker(orders, handle):
        await orders.add("good")
        [request] = await receiver.got(1)
    for secret in (SECRET, OLD):
        verify(request.headers, request.body, secret)


async def test_secrets_are_in_no_job_event_or_text(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    start = await orders.newest_event()
    async with Worker(orders, handle):
        job = await orders.add("bad")
        await receiver.got(1)
        await heard(orders, "webhook-delivered", after=start)
    delivery = await orders.delivery(job.id)
    assert delivery is not None
    records = [*await queue.store.get(orders.name, [job.id]), *await queue.store.get(DELIVERIES, [delivery.id])]
    events = [event async for event in orders.events("start", follow=False)]
    texts = [*map(repr, records), *map(repr, events), repr(orders.webhook), repr(await delivery.history())]
    assert not [text for text in texts if "MfKQ9r8" in text]


async def test_an_answer_other_than_2xx_is_sent_again_with_the_same_id(queue: Queue, receiver: Receiver):
    receiver.answers = [
        plain("500 Oops", b"a\x1b[31mb"),
        plain("302 Found", b"", "location: http://127.0.0.1/"),
        plain("204 Fine", b""),
    ]
    orders = hooked(queue, receiver)
    async with Worker(orders, handle):
        job = await orders.add("good")
        for number in (1, 2):
            await receiver.got(number)
            await promoted(orders, job.id)
        first, second, third = await receiver.got(3)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == third.headers["webhook-id"]
    assert first.body == second.body
    delivery = await orders.delivery(job.id)
    assert delivery is not None
    assert [line.text.split(" in ")[0] for line in (await delivery.history()).log] == [
        "attempt 1: 500",
        "attempt 2: 302",
        "attempt 3: 204",
    ]
    assert "\\x1b[31mb" in (await delivery.history()).log[0].text


async def promoted(queue: Queue, id: str) -> None:
    """Makes the delivery of a job go on now, once it waits for its next attempt."""
    await (await delivery_in("delayed", queue, id)).promote()


async def test_after_410_nothing_more_is_sent_to_the_url(queue: Queue, receiver: Receiver):
    receiver.answers = [plain("410 Gone", b"moved away")]
    orders = hooked(queue, receiver)
    start = await orders.newest_event()
    async with Worker(orders, handle):
        first = await orders.add("good")
        event = await heard(orders, "webhook-failed", after=start)
        second = await orders.add("good")
        later = await heard(orders, "webhook-failed", after=event.id)
    assert "410" in event.data["reason"]
    assert (event.job_id, later.job_id) == (first.id, second.id)
    assert len(receiver.requests) == 1, "the URL is disabled"


async def test_retry_after_is_heeded_without_using_an_attempt(queue: Queue, receiver: Receiver):
    receiver.answers = [plain("429 Slow down", b"", "retry-after: 3600"), plain()]
    orders = hooked(queue, receiver)
    async with Worker(orders, handle):
        job = await orders.add("good")
        await receiver.got(1)
        delivery = await delivery_in("delayed", orders, job.id)
    due, now = delivery.snapshot.due_at, await queue.store.clock()
    assert delivery.snapshot.attempts_made == 0
    assert due is not None
    assert 3_500 < due.timestamp() - now / 1000 <= 3_600


async def test_bookkeeping_for_a_job_that_is_gone_does_no_harm(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    async with Worker(orders, handle):
        job = await orders.add("good", remove_on_complete=True)
        await delivery_in("completed", orders, job.id)
    assert await orders.get(job.id) is None


async def test_a_delivery_is_sent_again_by_hand(queue: Queue, receiver: Receiver):
    orders = hooked(queue, receiver)
    start = await orders.newest_event()
    async with Worker(orders, handle):
        job = await orders.add("good")
        await heard(orders, "webhook-delivered", after=start)
        delivery = await delivery_in("completed", orders, job.id)
        await delivery.retry(reset=True)
        first, second = await receiver.got(2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://127.0.0.1/", "https://localhost/", "ftp://example.com"]
)
async def test_a_url_that_is_not_allowed_is_refused_when_the_job_is_added(queue: Queue, url: str):
    with pytest.raises(InvalidOption):
        await queue.add("good", webhook=url)
    with pytest.raises(InvalidOption):
        Queue("orders", store=queue.store, webhook=url)


async def test_a_job_has_no_secret_of_its_own(queue: Queue):
    with pytest.raises(InvalidOption, match="of a job has no secret"):
        await queue.add("good", webhook=Webhook("https://example.com", secret=SECRET))


async def test_every_way_of_adding_has_the_webhook_of_the_queue_or_its_own(queue: Queue):
    orders = Queue(queue.name, store=queue.store, webhook="https://example.com/queue")
    own: JobOptions = {"webhook": Webhook("https://example.com/own", events=["failed"])}

    @orders.task(name="task", **own)
    async def task() -> None: ...

    flow = await orders.add_flow(Flow("parent", children=[Flow("child", **own)]))
    handles = [
        *await orders.add_many([("many", 1), ("many", 2), ("many", 3, own)]),
        await task.add(),
        await orders.add("repeated", repeat={"every": 60}),
        flow,
        *flow.children,
    ]
    await orders.schedules.run((await orders.schedules.list())[0].id)
    found = [record for record in await queue.store.get(orders.name, [job.id for job in handles]) if record]
    found += (await queue.store.find(Find(orders.name, ("waiting",), "repeated"))).jobs
    rules = [(job.name, job.extras.webhook) for job in found if job.extras]
    of_queue, of_job = (
        WebhookRule("https://example.com/queue", EVENTS),
        WebhookRule("https://example.com/own", ("failed",)),
    )
    assert set(rules) == {
        ("many", of_queue),
        ("many", of_job),
        ("task", of_job),
        ("repeated", of_queue),
        ("parent", of_queue),
        ("child", of_job),
    }
    assert len(rules) == len(found)


async def test_a_worker_that_shall_deliver_and_has_no_client_says_what_to_install(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "h11", None)
    for module in ("sending", "connections"):
        monkeypatch.delitem(sys.modules, f"ropeway.webhooks.{module}", raising=False)
    orders = Queue(queue.name, store=queue.store, webhook="https://example.com/")
    with pytest.raises(InvalidOption, match=r'pip install "ropeway\[webhooks\]"'):
        async with Worker(orders, handle):
            pass
    async with Worker(queue, handle):
        job = await orders.add("good")
        assert await job.result(timeout=PATIENCE) == {"sent": None}, "others may deliver"
