"""The heartbeat protocol, as a worker in any language speaks it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from ropeway import Queue
from ropeway.client.timings import read_timings
from ropeway.client.workers import read_workers
from ropeway.doctor.queues import examine_queue
from ropeway.server import http_workers
from ropeway.server.limits import Limits
from ropeway.store.contract import Store

from .conftest import Client, Serve, until

QUICK = Limits(heartbeat=0.05, timeout=0.2)


async def submit(web: Client, queue: str = "q", **job: Any) -> dict[str, Any]:
    answer = await web.post(f"/v1/queues/{queue}/jobs", json={"type": "task", **job})
    assert answer.status_code == 201, answer.text
    return answer.json()  # type: ignore[no-any-return]


async def claim(web: Client, queue: str = "q", worker: str = "w", **more: Any) -> list[dict[str, Any]]:
    answer = await web.post(f"/v1/queues/{queue}/claim", json={"worker": worker, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["jobs"]  # type: ignore[no-any-return]


async def tell(web: Client, job: dict[str, Any], verb: str, **more: Any) -> httpx.Response:
    path = f"/v1/queues/{job['queue']}/jobs/{job['id']}/{verb}"
    return await web.post(path, json={"token": job["token"], **more})


async def state(web: Client, job: dict[str, Any]) -> Any:
    return (await web.get(f"/v1/queues/q/jobs/{job['id']}")).json()


async def test_a_job_is_claimed_and_completed(web: Client):
    added = await submit(web, payload={"to": "a@example.com"}, tags=["mail"])
    [job] = await claim(web)
    assert (job["id"], job["payload"], job["attempt"], job["max_attempts"]) == (
        added["id"],
        {"to": "a@example.com"},
        1,
        3,
    )
    assert (await tell(web, job, "progress", progress=50)).status_code == 204
    assert (await tell(web, job, "log", lines=["half", "done"])).status_code == 204
    assert (await tell(web, job, "heartbeat")).status_code == 204
    assert (await tell(web, job, "complete", result={"sent": True})).status_code == 204
    # Its answer was lost.
    assert (await tell(web, job, "complete", result={"sent": True})).status_code == 204
    details = (await web.get(f"/v1/queues/q/jobs/{job['id']}/details")).json()
    assert (details["job"]["state"], details["job"]["result"], details["job"]["progress"]) == (
        "completed",
        {"sent": True},
        50,
    )
    assert [line["text"] for line in details["log"]] == ["half", "done"]
    assert details["timeline"][0]["event"] == "added"


async def test_nothing_to_do_is_an_empty_answer(web: Client):
    assert await claim(web) == []
    assert await claim(web, wait=0.05) == []


async def test_a_claim_takes_its_types_alone(web: Client):
    await submit(web, type="other")
    await submit(web, type="mine")
    assert [job["type"] for job in await claim(web, types=["mine"], count=10)] == ["mine"]


async def test_a_claim_waits(web: Client):
    waiting = asyncio.create_task(claim(web, wait=50))
    await submit(web)
    assert len(await waiting) == 1


@pytest.mark.every_store
async def test_a_client_that_went_away_leaves_no_job_behind(serve: Serve, store: Store):
    async with serve() as web:
        with pytest.raises(httpx.ReadTimeout):
            await web.post("/v1/queues/q/claim", json={"worker": "gone", "wait": 50}, timeout=0.2)
        await submit(web)
        [job] = await claim(web, wait=50)
        assert job["attempt"] == 1


@pytest.mark.every_store
async def test_text_that_no_token_or_id_can_be_is_answered_and_not_given_to_the_store(serve: Serve):
    async with serve() as web:
        await submit(web)
        [job] = await claim(web)
        assert (await tell(web, {**job, "token": "\x00"}, "heartbeat")).status_code == 409
        said = [(job["id"], "a\x00b"), ("\x00", "a"), (job["id"], job["token"])]
        jobs = [{"id": id, "token": token} for id, token in said]
        answer = await web.post("/v1/queues/q/complete", json={"jobs": jobs})
        assert [each["verdict"] for each in answer.json()["jobs"]] == ["lost", "lost", "done"]


async def test_a_stale_token_changes_nothing(web: Client):
    await submit(web)
    [job] = await claim(web)
    await submit(web)
    [other] = await claim(web, worker="w2")
    stale = [
        await tell(web, {**job, "token": "0" * 32}, "complete"),
        await tell(web, {**job, "token": other["token"]}, "complete"),
        await tell(web, job, "complete", worker="w2"),
        await tell(web, {**job, "token": "0" * 32}, "heartbeat"),
        await tell(web, job, "fail", error="no", worker="w2"),
    ]
    assert {answer.status_code for answer in stale} == {409}
    assert stale[0].json()["error"] == "LockLost"
    assert (await state(web, job))["state"] == "active"
    assert (await tell(web, job, "complete", worker="w")).status_code == 204
    # On a job that nobody has claimed.
    third = await submit(web)
    assert (await tell(web, {**third, "queue": "q", "token": job["token"]}, "heartbeat")).status_code == 409
    assert (await tell(web, {**job, "id": "none"}, "complete")).status_code == 404


async def test_many_have_an_answer_each(web: Client):
    body = {"jobs": [{"type": "task", "payload": number} for number in range(5)]}
    assert (await web.post("/v1/queues/q/batch", json=body)).status_code == 201
    jobs = await claim(web, count=5)
    assert [job["payload"] for job in jobs] == [0, 1, 2, 3, 4]
    locks = [{"id": job["id"], "token": job["token"]} for job in jobs]
    beat = await web.post("/v1/queues/q/heartbeat", json={"jobs": locks})
    assert {each["verdict"] for each in beat.json()["jobs"]} == {"done"}
    locks[1]["token"] = "stale"
    locks[2]["id"] = "none"
    locks[3]["worker"] = "another"
    ended = await web.post("/v1/queues/q/complete", json={"jobs": locks})
    assert [each["verdict"] for each in ended.json()["jobs"]] == ["done", "lost", "missing", "lost", "done"]


async def test_a_failure_is_retried_until_attempts_are_used_up(web: Client):
    added = await submit(web, max_attempts=2, backoff=60)
    [job] = await claim(web)
    assert (await tell(web, job, "fail", error="the disk is full", trace="line 1", delay=0)).status_code == 204
    [job] = await claim(web)
    assert job["attempt"] == 2
    await tell(web, job, "fail", error="again")
    details = (await web.get(f"/v1/queues/q/jobs/{added['id']}/details")).json()
    assert (details["job"]["state"], details["job"]["reason"]) == ("failed", "again")
    assert [each["reason"] for each in details["failures"]] == ["the disk is full", "again"]
    assert details["failures"][0]["started_at"] <= details["failures"][0]["at"]


async def test_a_backoff_delays_the_next_attempt(web: Client):
    await submit(web, backoff={"kind": "exponential", "delay": "1 hour"})
    [job] = await claim(web)
    await tell(web, job, "fail", error="no")
    assert (await state(web, job))["state"] == "delayed"


async def test_a_failure_without_retry_is_final(web: Client):
    await submit(web)
    [job] = await claim(web)
    await tell(web, job, "fail", error="no", retry=False)
    assert (await state(web, job))["state"] == "failed"


async def test_a_released_job_has_used_no_attempt(web: Client):
    await submit(web)
    [job] = await claim(web)
    assert (await tell(web, job, "release")).status_code == 204
    [job] = await claim(web)
    assert job["attempt"] == 1


@pytest.mark.every_store
async def test_a_lapsed_heartbeat_returns_the_job_until_its_attempts_are_used_up(serve: Serve):
    async with serve(limits=QUICK) as web:
        added = await submit(web, max_attempts=2)
        [first] = await claim(web)
        [again] = await claim(web, worker="w2", wait=50)
        assert (again["id"], again["attempt"]) == (added["id"], 2)
        assert (await tell(web, first, "complete")).status_code == 409

        async def has_failed() -> bool:
            return bool((await state(web, added))["state"] == "failed")

        await until(has_failed)


async def test_an_exhausted_job_is_dropped_and_counted_if_asked(serve: Serve):
    async with serve(limits=Limits(heartbeat=0.05, timeout=0.2, attempts=1, drop_exhausted=True)) as web:
        added = await submit(web)
        await claim(web)

        async def is_gone() -> bool:
            return (await web.get(f"/v1/queues/q/jobs/{added['id']}")).status_code == 404

        await until(is_gone)

        async def is_counted() -> bool:
            return bool((await web.get("/v1/stats")).json()["totals"]["failed"] == 1)

        await until(is_counted)


async def test_a_restarted_server_looks_after_jobs_of_the_one_before(serve: Serve):
    async with serve(limits=QUICK) as web:
        await submit(web)
        await claim(web)
    async with serve(limits=QUICK) as web:
        counts = await until(lambda: waiting(web))
        assert counts == 1


async def waiting(web: Client) -> int:
    return int((await web.get("/v1/queues/q")).json()["counts"]["waiting"])


async def test_a_job_that_started_too_often_fails(web: Client):
    added = await submit(web, max_starts=1)
    [job] = await claim(web)
    await tell(web, job, "release")
    assert await claim(web) == []
    assert (await state(web, added))["state"] == "failed"


async def test_a_worker_is_seen_with_what_it_takes_and_runs(web: Client, store: Store):
    waiting = asyncio.create_task(claim(web, worker="mailer", types=["task"], wait=50))

    async def workers() -> Any:
        return (await web.get("/v1/workers")).json()["workers"]

    [seen] = await until(workers)
    assert (seen["id"], seen["queues"], seen["handlers"], seen["running"]) == ("mailer", ["q"], {"q": ["task"]}, 0)
    # It is served, so the job is not said to have no worker.
    await submit(web)
    [job] = await waiting
    findings = await examine_queue(store, "q", await read_workers(store), await store.clock())
    assert [finding.level for finding in findings] == ["ok"]
    # Another claim says what it runs by now.
    await claim(web, worker="mailer", types=["task", "other"])
    assert [(each["running"], each["handlers"]) for each in await workers()] == [(1, {"q": ["task", "other"]})]
    await tell(web, job, "complete")
    await claim(web, worker="mailer")
    assert [(each["running"], each["handlers"]) for each in await workers()] == [(0, {"q": None})]


async def test_a_worker_that_is_paused_gets_no_jobs_until_it_is_resumed(web: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_workers, "ORDERS_INTERVAL", 0.02)
    waiting = asyncio.create_task(claim(web, wait=50))

    async def standing() -> tuple[bool, bool] | None:
        workers = (await web.get("/v1/workers")).json()["workers"]
        return (workers[0]["paused"], workers[0]["draining"]) if workers else None

    async def tell_worker(order: str, paused: bool, draining: bool) -> None:
        assert (await web.post(f"/v1/workers/w/{order}")).status_code == 202

        async def obeyed() -> bool:
            return await standing() == (paused, draining)

        await until(obeyed)

    await until(standing)
    await tell_worker("pause", True, False)
    assert await waiting == [], "its claim was withdrawn"
    await submit(web)
    assert await claim(web) == []
    await tell_worker("resume", False, False)
    assert len(await claim(web)) == 1
    await tell_worker("drain", True, True)
    assert (await web.post("/v1/queues/q/claim", json={"worker": "w"})).json()["drain"] is True


async def test_durations_are_kept_as_by_a_worker_in_python(serve: Serve, store: Store):
    async with serve() as web:
        for verb, more in (("complete", {}), ("fail", {"error": "no", "retry": False}), ("release", {})):
            await submit(web)
            [job] = await claim(web)
            assert (await tell(web, job, verb, **more)).status_code == 204
            # A repeat, because its answer was lost, is no second attempt.
            await tell(web, job, verb, **more)
    [(_, timings)] = await read_timings(store, "q", 0)
    assert (timings.wait.number, timings.run.number) == (3, 2)


async def test_the_duration_of_a_job_of_another_server_is_kept(serve: Serve, store: Store):
    async with serve() as web, serve() as other:
        await submit(web)
        [job] = await claim(web)
        await tell(other, job, "complete")
        await claim(other)
    [(_, timings)] = await read_timings(store, "q", 0)
    assert timings.run.number == 1


async def test_a_worker_in_python_runs_what_was_submitted(web: Client, store: Store):
    from ropeway import Worker

    added = await submit(web, payload=20)
    queue = Queue("q", store=store)

    async def task(job: Any) -> int:
        return int(job.data) * 2

    async with Worker(queue, {"task": task}):
        answer = await web.get(f"/v1/queues/q/jobs/{added['id']}/result", params={"wait": 50})
    assert answer.json() == {"state": "completed", "result": 40, "reason": None}
