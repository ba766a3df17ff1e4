"""Workers, and whoever waits for them, on a store behind a server."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ropeway import Job, Queue, Worker
from ropeway.cli.unhandled import warn_of_unhandled
from ropeway.client.new_jobs import Call
from ropeway.client.timings import read_timings
from ropeway.server.tokens import create_token
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.stores.remote.ear import Ear, RemoteListener
from ropeway.worker.maintenance import census
from tests.patience import PATIENCE

from .conftest import served


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


async def test_a_worker_that_may_not_list_jobs_goes_on_without_a_census(
    behind: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level(logging.WARNING, "ropeway")
    monkeypatch.setattr(census, "CENSUS_INTERVAL", 0)
    token, _ = await create_token(behind, ["worker"], queues=["sums"])
    await Queue("sums", store=behind).add("halve", 42)
    async with served(behind) as url, Queue("sums", url.replace("//", f"//{token}@")) as queue:
        looks = census.Census(queue.store, "sums", lambda _: ("double",), lambda *_: None)
        await looks.step()
        await looks.step()

    assert len([record for record in caplog.records if "audit: refused" in record.message]) == 1


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
