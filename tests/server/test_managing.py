"""Managing jobs, queues and schedules."""

from __future__ import annotations

from typing import Any

from ropeway import Job, JobHandle, Phase, PhaseContext, Pipeline, Queue, Worker
from ropeway.store.contract import Store
from tests.patience import PATIENCE

from .conftest import Client, MakeToken, until
from .test_working import claim, submit, tell

Q = "/v1/queues/q"


async def test_one_job_is_cancelled_retried_promoted_changed_and_removed(web: Client):
    added = await submit(web, delay="1 hour", id="one")
    job = f"{Q}/jobs/{added['id']}"
    assert (await web.patch(job, json={"priority": 4, "payload": {"new": True}})).status_code == 204
    assert (await web.post(f"{job}/promote")).status_code == 204
    found = (await web.get(job)).json()
    assert (found["state"], found["priority"], found["payload"]) == ("waiting", 4, {"new": True})
    assert (await web.post(f"{job}/promote")).status_code == 409
    assert (await web.post(f"{job}/cancel", json={"reason": "no longer needed"})).json() == {"cancelled": True}
    assert (await web.post(f"{job}/cancel")).json() == {"cancelled": False}
    assert (await web.post(f"{job}/retry", json={"reset": True})).status_code == 204
    assert (await web.delete(job)).status_code == 204
    assert (await web.get(job)).status_code == 404
    assert (await web.patch(job, json={})).status_code == 422


async def test_jobs_are_listed_page_by_page(web: Client):
    await web.post(f"{Q}/batch", json={"jobs": [{"type": "task", "tags": ["t"], "payload": n} for n in range(5)]})
    await submit(web, type="other")
    seen: list[Any] = []
    after: dict[str, str] = {}
    while True:
        page = (await web.get(f"{Q}/jobs", params={"type": "task", "tag": "t", "limit": 2, **after})).json()
        seen += [job["payload"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == [0, 1, 2, 3, 4]
    two = await web.get(f"{Q}/jobs", params=[("state", "failed"), ("state", "waiting"), ("newest_first", "true")])
    assert len(two.json()["jobs"]) == 6


async def test_pages_are_bounded_and_cursors_checked(web: Client):
    await submit(web)
    assert (await web.get(f"{Q}/jobs", params={"limit": 10**9})).status_code == 200
    assert (await web.get(f"{Q}/jobs", params={"limit": -5})).status_code == 200
    for wrong in ({"limit": "many"}, {"after": "forged"}, {"after": "' OR 1=1"}, {"state": "none"}, {"sort": "x"}):
        assert (await web.get(f"{Q}/jobs", params=wrong)).status_code == 422, wrong


async def test_many_jobs_are_moved_by_a_filter(web: Client):
    await web.post(f"{Q}/batch", json={"jobs": [{"type": "task", "delay": 3600} for _ in range(5)]})
    first = (await web.post(f"{Q}/promote", json={"limit": 3})).json()
    rest = (await web.post(f"{Q}/promote", json={"after": first["next"]})).json()
    assert (first["done"], rest["done"], rest["next"]) == (3, 2, None)
    assert (await web.post(f"{Q}/cancel", json={"type": "task", "reason": "enough"})).json()["done"] == 5
    assert (await web.post(f"{Q}/retry", json={"states": ["cancelled"]})).json()["done"] == 5
    by_id = [job["id"] for job in (await web.get(f"{Q}/jobs")).json()["jobs"]][:2]
    removed = (await web.post(f"{Q}/remove", json={"ids": [*by_id, "none"]})).json()
    assert (removed["done"], removed["jobs"][2]["verdict"]) == (2, "missing")
    assert (await web.post(f"{Q}/remove", json={})).status_code == 422
    assert (await web.post(f"{Q}/remove", json={"states": ["active"]})).status_code == 422
    assert (await web.post(f"{Q}/remove", json={"ids": ["a"], "states": ["failed"]})).status_code == 422


async def test_a_queue_is_paused_limited_and_emptied(web: Client):
    await submit(web)
    assert (await web.post(f"{Q}/pause")).status_code == 204
    assert await claim(web) == []
    assert (await web.patch(Q, json={"max_active": 1, "paused": False})).json()["max_active"] == 1
    assert (await web.post(f"{Q}/pause", json={"type": "task"})).status_code == 204
    assert (await web.get(Q)).json()["paused_types"] == ["task"]
    assert (await web.post(f"{Q}/resume", json={"type": "task"})).status_code == 204
    await submit(web)
    assert len(await claim(web, count=5)) == 1
    assert (await web.patch(Q, json={"max_active": None})).json()["max_active"] is None
    assert (await web.post(f"{Q}/drain")).json() == {"removed": 1, "more": False}
    assert (await web.post(f"{Q}/obliterate")).status_code == 409
    assert (await web.post(f"{Q}/obliterate", json={"force": True})).json()["removed"] == 1
    # It is listed for its worker alone.
    [left] = (await web.get("/v1/queues")).json()["queues"]
    assert (sum(left["counts"].values()), left["workers"]) == (0, 1)


async def test_the_retention_of_a_queue_is_set_stage_by_stage(web: Client):
    assert (await web.patch(Q, json={"stale_after": "1 hour", "delete_after": "1 day"})).status_code == 200
    found = (await web.patch(Q, json={"stale_after": None})).json()
    assert (found["stale_after"], found["delete_after"]) == (None, 86_400)
    assert (await web.patch(Q, json={"stale_after": "2 days"})).status_code == 422
    assert (await web.get(f"{Q}/jobs", params={"stale": "true"})).json()["jobs"] == []


async def test_old_jobs_are_cleaned(web: Client):
    await submit(web)
    [job] = await claim(web)
    await tell(web, job, "complete")
    assert (await web.post(f"{Q}/clean", json={"older_than": "1 hour"})).json()["removed"] == 0
    assert (await web.post(f"{Q}/clean")).json() == {"removed": 1, "more": False}


async def test_dead_letters_are_sent_back(web: Client):
    await submit(web, dead_letter="letters", max_attempts=1)
    [job] = await claim(web)
    await tell(web, job, "fail", error="no")
    assert (await web.post("/v1/queues/letters/redrive")).json() == {"sent": 1}
    assert (await web.get(f"{Q}/jobs/{job['id']}")).json()["state"] == "waiting"


async def test_numbers(web: Client, make_token: MakeToken):
    await submit(web)
    await submit(web, "other")
    [job] = await claim(web)
    await tell(web, job, "complete")
    stats = (await web.get("/v1/stats")).json()
    assert (stats["queues"], stats["totals"]["added"], stats["totals"]["completed"]) == (2, 2, 1)
    assert stats["counts"]["completed"] == 1
    minutes = (await web.get(f"{Q}/metrics")).json()["minutes"]
    assert sum(minute["completed"] for minute in minutes) == 1
    assert (await web.get(f"{Q}/metrics", params={"since": "2999-01-01T00:00:00Z"})).json() == {"minutes": []}
    assert [each["id"] for each in (await web.get("/v1/workers")).json()["workers"]] == ["w"]
    names = [queue["name"] for queue in (await web.get("/v1/queues")).json()["queues"]]
    assert names == ["other", "q"]
    scoped = await make_token("viewer", queues=["other"])
    seen = (await web.get("/v1/queues", headers=scoped)).json()["queues"]
    assert [queue["name"] for queue in seen] == ["other"]
    assert (await web.get("/v1/stats", headers=scoped)).json()["queues"] == 1


async def test_schedules_are_made_paused_run_and_removed(web: Client):
    one = f"{Q}/schedules/nightly"
    made = (
        await web.put(one, json={"type": "report", "payload": 1, "cron": "0 9 * * *", "tz": "Europe/Berlin"})
    ).json()
    assert (made["id"], made["type"], made["paused"]) == ("nightly", "report", False)
    assert (await web.post(f"{one}/pause")).json()["next_at"] is None
    assert (await web.post(f"{one}/resume")).json()["next_at"] == made["next_at"]
    assert (await web.post(f"{one}/run")).json()["created"] is True
    assert len((await web.get(f"{Q}/schedules")).json()["schedules"]) == 1
    assert (await web.delete(one)).json() == {"removed": True}
    assert (await web.get(one)).status_code == 404
    assert (await web.put(one, json={"type": "report", "cron": "never"})).status_code == 422
    assert (await web.post(f"{one}/pause")).status_code == 404


async def test_a_schedule_makes_jobs_for_workers_over_http(web: Client):
    made = await web.put(f"{Q}/schedules/often", json={"type": "tick", "every": 1})
    assert made.status_code == 200, made.text
    [job] = await claim(web, wait=50)
    assert job["type"] == "tick"


async def test_a_signal_reaches_a_job(web: Client, store: Store):
    queue = Queue("q", store=store)

    async def pay(job: Job) -> Any:
        return await job.wait_for("paid")

    await submit(web, id="one")
    job, path = await queue.get("one"), f"{Q}/jobs/one/signal"
    assert job is not None
    async with Worker(queue, pay):
        await until(lambda: _waits_for(job, "paid"))
        assert (await web.post(path, json={"name": "other"})).status_code == 204
        assert (await web.post(path, json={"name": "paid", "payload": {"amount": 5}})).status_code == 204
        assert await job.result(timeout=PATIENCE) == {"amount": 5}

    assert (await web.post(path, json={"name": "paid"})).status_code == 409
    assert (await web.post(path, json={"payload": 1})).status_code == 422
    assert (await web.post(path, json={"name": "a\nb"})).status_code == 422
    assert (await web.post(f"{Q}/jobs/none/signal", json={"name": "paid"})).status_code == 404


async def _waits_for(job: JobHandle, signal: str) -> bool:
    wait = (await job.refresh()).waits_for
    return wait is not None and wait.signal == signal


async def test_a_job_runs_again_from_a_phase(web: Client, store: Store):
    queue, calls = Queue("q", store=store), []

    async def phase(job: Job, ctx: PhaseContext) -> str:
        calls.append(ctx.name)
        return ctx.name

    pipeline = Pipeline([Phase(name, phase) for name in ("fetch", "process", "upload")])
    await submit(web, id="one")
    job, path = await queue.get("one"), f"{Q}/jobs/one/retry"
    assert job is not None
    async with Worker(queue, pipeline):
        await job.result(timeout=PATIENCE)
        assert (await web.post(path, json={"from_phase": "process"})).status_code == 204
        assert await job.result(timeout=PATIENCE) == "upload"

    assert calls == ["fetch", "process", "upload", "process", "upload"]
    unknown = await web.post(path, json={"from_phase": "none"})
    assert (unknown.status_code, "fetch, process, upload" in unknown.json()["detail"]) == (422, True)
    assert (await web.post(f"{Q}/jobs/none/retry", json={"from_phase": "process"})).status_code == 404
