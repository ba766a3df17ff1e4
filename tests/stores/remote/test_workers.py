"""Workers, and whoever waits for them, on a store behind a server."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ropeway import Job, Queue, Webhook, Worker
from ropeway.cli.unhandled import warn_of_unhandled
from ropeway.client.new_jobs import Call
from ropeway.client.timings import read_timings
from ropeway.errors import StoreRefused
from ropeway.job.webhooks import DELIVERIES
from ropeway.server.tokens import create_token
from ropeway.store.commands import Find
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.stores.remote.ear import Ear, RemoteListener
from ropeway.webhooks import verify
from ropeway.webhooks.records import ALLOW, read_settings
from ropeway.worker.maintenance import census
from tests.patience import PATIENCE
from tests.webhooks.receiver import receiving

from .conftest import served

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


async def double(job: Job) -> int:
    return 2 * int(job.data)


async def test_a_worker_needs_no_more_than_the_right_to_work(behind: Store, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "ropeway")
    producer, _ = await create_token(behind, ["producer"], queues=["sums"])
    worker, _ = await create_token(behind, ["worker"], queues=["sums"])
    async with (
        served(behind) as url,
        Queue("sums", url.replace("//", f"//{producer}@")) as queue,
        Worker(Queue("sums", url.replace("//", f"//{worker}@")), double),
    ):
        job = await queue.add("double", 21)
        assert await job.result(timeout=PATIENCE) == 42

    [timings] = [timings for _, timings in await read_timings(behind, "sums", 0)]
    assert timings.run.number == 1
    assert [record.message for record in caplog.records if "audit" not in record.message] == []


async def test_a_worker_that_may_only_work_warns_of_jobs_that_it_has_no_handler_for(
    behind: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(census, "CENSUS_INTERVAL", 0)
    token, _ = await create_token(behind, ["worker"], queues=["sums"])
    await Queue("sums", store=behind).add("halve", 42)
    reported: list[tuple[str, str]] = []
    async with served(behind) as url, Queue("sums", url.replace("//", f"//{token}@")) as queue:
        looks = census.Census(queue.store, "sums", lambda _: ("double",), lambda *found: reported.append(found[:2]))
        await looks.step()
        # It sees no others than those that it could claim.
        with pytest.raises(StoreRefused, match="lacks the right to read"):
            await queue.store.find(Find("sums", ("completed",)))
    assert reported == [("sums", "halve")]


async def test_an_operator_sets_the_secret_of_webhooks_and_a_worker_for_deliveries_signs_by_it(
    behind: Store, monkeypatch: pytest.MonkeyPatch
):
    operator, _ = await create_token(behind, ["operator"], queues=["sums"])
    worker, _ = await create_token(behind, ["worker"], queues=["sums", DELIVERIES])
    async with receiving() as receiver, served(behind) as url:
        monkeypatch.setenv(ALLOW, *receiver.allowed)
        own = url.replace("//", f"//{operator}@")
        async with (
            Queue("sums", own, webhook=Webhook(receiver.url, secret=SECRET)) as queue,
            Worker(Queue("sums", url.replace("//", f"//{worker}@")), double),
        ):
            await queue.add("double", 21)
            [request] = await receiver.got(1)
            assert verify(request.headers, request.body, SECRET)["data"]["result"] == 42
            # Nobody else is shown the secret, and only administrators open their own network.
            with pytest.raises(StoreRefused, match="lacks the right to work"):
                await read_settings(queue.store, "sums")
        async with Queue("sums", own, webhook=Webhook(secret=SECRET, allow_hosts=["localhost"])) as opening:
            with pytest.raises(StoreRefused, match="lacks the right to administer"):
                await opening.add("double", 21)


async def test_a_worker_whose_token_may_not_deliver_goes_on_and_says_so(
    behind: Store, caplog: pytest.LogCaptureFixture
):
    token, _ = await create_token(behind, ["worker"], queues=["sums"])
    queue = Queue("sums", store=behind)
    async with served(behind) as url, Worker(Queue("sums", url.replace("//", f"//{token}@")), double):
        job = await queue.add("double", 21, webhook="https://hooks.example/")
        assert await job.result(timeout=PATIENCE) == 42
        again = await queue.add("double", 4)
        assert await again.result(timeout=PATIENCE) == 8


async def test_a_producer_that_may_not_list_queues_is_warned_that_no_worker_runs(
    behind: Store, capsys: pytest.CaptureFixture[str]
):
    token, _ = await create_token(behind, ["producer"], queues=["sums"])
    async with served(behind) as url, Queue("sums", url.replace("//", f"//{token}@")) as queue:
        await warn_of_unhandled(queue, [Call("double", None, {})], with_app=False)

    assert "no worker runs on queue 'sums'" in capsys.readouterr().err


async def test_listeners_of_a_loop_share_a_poll(behind: Store, monkeypatch: pytest.MonkeyPatch):
    polls: list[int] = []
    poll = Ear._poll

    async def counting(ear: Ear, listeners: list[RemoteListener]) -> bool:
        polls.append(len(listeners))
        return await poll(ear, listeners)

    monkeypatch.setattr(Ear, "_poll", counting)
    async with served(behind) as url:
        store = connect(url)
        listeners = [store.listen("events", [queue]) for queue in ("a", "b", "c")]
        # They begin together, and are told so; then they wait.
        assert await asyncio.gather(*(each.wait(PATIENCE) for each in listeners)) == [True] * 3
        waits = [asyncio.create_task(each.wait(PATIENCE)) for each in listeners]
        await Queue("b", store=store).add("send")
        assert await waits[1]

        assert polls[:2] == [3, 3]
        await store.close()
        await asyncio.wait(waits)
