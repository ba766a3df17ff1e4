"""Finding jobs, one job, and acting on many."""

from __future__ import annotations

import asyncio
import re
from html import escape
from urllib.parse import quote, urlencode

import pytest

from ropeway import JobFailed, Phase, Pipeline, Queue, Unrecoverable, Webhook, Worker
from ropeway.server.dashboard.filters import SCAN
from ropeway.server.dashboard.pages import failures
from ropeway.testing.factories import new_job
from tests.patience import PATIENCE
from tests.server.conftest import until

from .conftest import SAME_SITE
from .filling import fill

PHASE = "<b>process & count</b>"
WORD = "<b>payment & more</b>"


def ids_in(page):
    return re.findall(r'name="job" value="[^/"]*/([^"]+)"', page.text)


async def fail(queue, *numbers):
    async def handler(job):
        raise Unrecoverable(f"order {job.data['n']} has no customer")

    jobs = await queue.add_many([("import", {"n": n}) for n in numbers])
    async with Worker(queue, handler):
        for job in jobs:
            with pytest.raises(Exception, match="no customer"):
                await job.result(timeout=60)
    return [job.id for job in jobs]


async def test_filters_find_what_they_say(store, pages):
    mail, orders = Queue("mail", store=store), Queue("orders", store=store)
    a = await mail.add("welcome", {"to": "ann@example.com"}, priority=3, tags=["vip"])
    b = await mail.add("welcome", {"to": "bob@example.com"})
    c = await orders.add("ship", {"n": 1}, delay="1 hour")
    [failed] = await fail(orders, 7)
    for given, expected in (
        ({}, {a.id, b.id, c.id, failed}),
        ({"queue": "mail"}, {a.id, b.id}),
        ({"state": "delayed"}, {c.id}),
        ({"name": "ship"}, {c.id}),
        ({"tag": "vip"}, {a.id}),
        ({"text": "BOB@"}, {b.id}),
        ({"error": "no customer"}, {failed}),
        ({"id": b.id}, {b.id}),
        ({"priority": "3"}, {a.id}),
        ({"since": "1 hour"}, {a.id, b.id, c.id, failed}),
        ({"until": "1 hour"}, set()),
    ):
        page = await pages.get(f"/jobs?{urlencode(given)}")
        assert set(ids_in(page)) == expected, given
    for wrong in ("state=odd", "priority=x", "since=yesterday", "after=x", "after=~"):
        assert (await pages.get(f"/jobs?{wrong}")).status_code in (200, 404, 422), wrong


async def test_pages_show_every_job_once(store, pages):
    for name in ("a", "b"):
        await Queue(name, store=store).add_many([("welcome", {"n": n}) for n in range(120)])
    for given in ("", "text=n"):
        seen: list[str] = []
        address = f"/jobs?{given}"
        while address:
            page = await pages.get(address)
            seen += ids_in(page)
            following = re.search(r'href="(/jobs\?[^"]*after=[^"]*)"', page.text)
            address = following[1].replace("&amp;", "&") if following else ""
        assert (len(seen), len(set(seen))) == (240, 240), given


async def test_a_search_looks_at_a_bounded_number_of_jobs(store, pages):
    queue = Queue("mail", store=store)
    await queue.add_many([("welcome", {"n": n}) for n in range(1_000)])
    await queue.add_many([("welcome", {"n": n}) for n in range(1_000, SCAN + 500)])
    page = await pages.get("/jobs?text=nothing-has-this")
    assert "2,000 jobs were looked at" in page.text
    following = re.search(r'href="(/jobs\?[^"]*)">Search further', page.text)
    assert following
    assert "Search further" not in (await pages.get(following[1].replace("&amp;", "&"))).text


async def test_what_is_not_shown_is_not_found(store, visit):
    queue = Queue("mail", store=store)
    job = await queue.add("welcome", {"secret": "hunter2"})
    async with visit(redact=lambda kind, value: {"secret": "…"} if kind == "data" else value) as client:
        page = await client.get(f"/queues/mail/jobs/{job.id}")
        assert "hunter2" not in page.text
        assert ids_in(await client.get("/jobs?text=hunter2")) == []

    def broken(kind, value):
        raise ValueError

    async with visit(redact=broken) as client:
        page = await client.get(f"/queues/mail/jobs/{job.id}")
        assert (page.status_code, "hunter2" in page.text) == (200, False)


async def test_chosen_jobs_are_moved(store, pages):
    queue = Queue("mail", store=store)
    failed = await fail(queue, 1, 2, 3)
    answer = await pages.post("/jobs", data={"action": "retry", "job": [f"mail/{id}" for id in failed[:2]]})
    assert "2+jobs+retried" in answer.headers["location"]
    assert (await queue.counts())["waiting"] == 2
    assert (await pages.post("/jobs", data={"action": "explode", "job": "mail/x"})).status_code == 422
    assert (await pages.post("/jobs", data={"action": "retry"})).status_code == 422


async def test_all_that_match_are_moved_by_one_operation(store, pages):
    queue = Queue("mail", store=store)
    await queue.add_many([("welcome", {"n": n}) for n in range(1_500)])
    await queue.add_many([("bye", {"n": n}) for n in range(10)])
    asked = await pages.get("/jobs/all?action=cancel&queue=mail&name=welcome")
    assert "Cancel 1,500 jobs" in asked.text
    started = await pages.post("/jobs/all", data={"action": "cancel", "queue": "mail", "name": "welcome"})
    address = started.headers["location"]

    async def over():
        page = await pages.get(address)
        return page if "It is over." in page.text else None

    assert ">1,500</strong> cancelled" in (await until(over)).text
    counts = await queue.counts()
    assert (counts["waiting"], counts["cancelled"]) == (10, 1_500)


async def test_authorize_is_asked_about_each_job(store, visit):
    queue = Queue("mail", store=store)
    jobs = await queue.add_many(["welcome", "welcome"])
    asked = []

    def authorize(who, action, target):
        asked.append((action, target))
        return target != f"mail/{jobs[1].id}"

    async with visit(authorize=authorize) as client:
        chosen = [f"mail/{job.id}" for job in jobs]
        assert (await client.post("/jobs", data={"action": "cancel", "job": chosen})).status_code == 403
        assert (await client.post(f"/queues/mail/jobs/{jobs[0].id}/cancel", data={"action": "x"})).status_code == 303
        assert (await client.post("/jobs/all", data={"action": "cancel", "queue": "mail"})).status_code == 303
    assert asked == [*(("cancel", each) for each in chosen), ("cancel", chosen[0]), ("cancel", "mail")]


async def test_a_token_reaches_its_queues_alone(store, visit, make_token):
    await Queue("secret", store=store).add("plan", {"text": "invade"})
    job = await Queue("mail", store=store).add("welcome")
    headers = await make_token("operator", queues=["mail"])
    async with visit(headers={**headers, "sec-fetch-site": "same-origin"}) as client:
        for address in ("/", "/jobs", "/queues", "/failures", "/jobs?after=secret~"):
            assert "invade" not in (await client.get(address)).text
        assert ids_in(await client.get("/jobs")) == [job.id]
        for address in ("/jobs?queue=secret", "/queues/secret", "/failures?queue=secret", "/live?queue=secret"):
            assert (await client.get(address)).status_code == 403
        for fields in ({"action": "cancel", "job": "secret/x"}, {"action": "cancel", "queue": "secret"}):
            path = "/jobs" if "job" in fields else "/jobs/all"
            assert (await client.post(path, data=fields)).status_code == 403


async def test_one_job_is_shown_and_moved(store, pages):
    queue, ids = await fill(store)
    path = f"/queues/mail/jobs/{ids['waiting']}"
    page = await pages.get(path)
    assert "12345678901234567890" in page.text, "wide numbers are exact"
    assert "No worker in Python serves this queue" in page.text
    assert (await pages.post(f"{path}/change", data={"data": '{"to": "b"}'})).status_code == 303
    job = await queue.get(ids["waiting"])
    assert job is not None
    assert job.snapshot.data == {"to": "b"}
    assert (await pages.post(f"{path}/change", data={"data": "{"})).status_code == 422
    assert (await pages.post(f"{path}/retry")).status_code == 409
    await pages.post(f"{path}/cancel")
    await pages.post(f"/queues/mail/jobs/{ids['delayed']}/promote")
    await pages.post(f"/queues/mail/jobs/{ids['failed']}/retry")
    again = await pages.post(f"/queues/mail/jobs/{ids['completed']}/again", data={"data": '{"to": "new"}'})
    assert "12345" not in (await pages.get(again.headers["location"])).text
    counts = await queue.counts()
    assert (counts["waiting"], counts["delayed"]) == (3, 0)
    await pages.post(f"{path}/remove")
    assert (await pages.get(path)).status_code == 404


async def test_the_attempt_that_succeeded_counts(store, pages):
    _, ids = await fill(store)
    path = f"/queues/mail/jobs/{ids['completed']}"

    assert "<dt>Attempts</dt><dd>1 of 1</dd>" in (await pages.get(path)).text
    assert 'data-label="Attempts">1 of 1</td>' in (await pages.get("/jobs?state=completed")).text


async def test_a_finished_job_runs_again_from_a_phase_that_is_chosen(store, pages, visit, make_token):
    queue, calls = Queue("imports", store=store), []

    async def phase(job, ctx):
        calls.append(ctx.name)
        if calls == ["fetch", PHASE]:
            raise Unrecoverable("no luck")

    pipeline = Pipeline([Phase(name, phase) for name in ("fetch", PHASE, "upload")])
    job = await queue.task(pipeline, name="import").add()
    path = f"/queues/imports/jobs/{job.id}"
    assert "from_phase" not in (await pages.get(path)).text, "it has not run yet"
    async with Worker(queue):
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    page = (await pages.get(path)).text

    [select] = re.findall(r'<label>Run again from phase <select name="from_phase".*?</select></label>', page)
    assert re.findall("<option( selected)?>(.*?)</option>", select) == [
        ("", "fetch"),
        (" selected", escape(PHASE)),
        ("", "upload"),
    ]
    assert (await pages.post(f"{path}/retry", data={"from_phase": "none"})).status_code == 422
    assert (await pages.post(f"{path}/retry", data={"from_phase": "fetch"})).status_code == 303
    async with Worker(queue):
        await job.result(timeout=PATIENCE)
    assert calls == ["fetch", PHASE, "fetch", PHASE, "upload"]
    assert "<option selected>fetch</option>" in (await pages.get(path)).text, "all are completed: from the first"

    # Last: once there is a token, the pages ask for one.
    async with visit(headers=SAME_SITE | await make_token("viewer")) as client:
        assert "from_phase" not in (await client.get(path)).text


async def test_phases_have_their_progress_times_and_results(store, pages):
    queue = Queue("imports", store=store)

    async def fetch(job, ctx):
        await ctx.progress(50)
        return ["three", "rows"]

    async def count(job, ctx):
        await ctx.progress(25)
        raise Unrecoverable("no luck")

    async with Worker(queue, {"import": Pipeline([Phase("fetch", fetch), Phase("count", count)])}):
        job = await queue.add("import")
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    page = (await pages.get(f"/queues/imports/jobs/{job.id}")).text

    [phases] = re.findall(r'<section id="phases".*?</table>', page, re.DOTALL)
    [_, fetched, counted] = [re.findall("<td.*?>(.*?)</td>", row) for row in phases.split("<tr>")[1:]]
    assert "completed" in fetched[1]
    assert "failed" in counted[1]
    assert [fetched[2], counted[2]] == ["", "25 %"], "how far a completed phase reported to be says nothing"
    assert all(took.endswith((" ms", " s")) for took in (fetched[4], counted[4]))
    assert "[&#34;three&#34;,&#34;rows&#34;]" in fetched[5].replace(", ", ",")
    assert "no luck" in counted[5]


async def test_steps_sleeps_and_waits_have_their_times_and_results(store, pages):
    async def order(job):
        await job.step("reserve", dict, lamp=1)
        await job.wait_for("payment")
        await job.sleep("1 day")

    queue = Queue("orders", store=store)
    async with Worker(queue, {"order": order}):
        job = await queue.add("order")
        await job.signal("payment", {"by": "card"})
        await until(lambda: is_delayed(job))
    page = (await pages.get(f"/queues/orders/jobs/{job.id}")).text

    [steps] = re.findall(r'<section id="steps".*?</table>', page, re.DOTALL)
    [_, reserve, payment, day] = [re.findall("<td.*?>(.*?)</td>", row, re.DOTALL) for row in steps.split("<tr>")[1:]]
    assert [each[:2] for each in (reserve, payment, day)] == [
        ["reserve", "step"],
        ["payment", "wait"],
        ["#1", "sleep"],
    ]
    assert all(each[3].endswith((" ms", " s")) for each in (reserve, payment, day)), (
        "the sleep lasts for some time so far"
    )
    assert "lamp" in reserve[4]
    assert "card" in payment[4]
    assert "until" in day[4]


async def test_the_signal_that_a_job_waits_for_is_sent(store, pages, visit, make_token):
    async def order(job):
        return [await job.wait_for(WORD), await job.wait_for("approval")]

    queue = Queue("orders", store=store)
    async with Worker(queue, {"order": order}):
        job = await queue.add("order")
        path = f"/queues/orders/jobs/{job.id}"
        await until(lambda: is_delayed(job))
        page = (await pages.get(path)).text
        assert f'name="signal" value="{escape(WORD)}"' in page
        assert WORD not in page
        assert "Run now" not in page, "it would only wait again"
        assert (await pages.post(f"{path}/signal", data={"signal": WORD, "data": "{"})).status_code == 422
        assert (await pages.post(f"{path}/signal", data={"signal": WORD, "data": '{"by": "card"}'})).status_code == 303
        assert (await pages.post(f"{path}/signal", data={"signal": "approval", "data": " "})).status_code == 303
        assert await job.result(timeout=PATIENCE) == [{"by": "card"}, None]
    assert 'name="signal"' not in (await pages.get(path)).text
    assert (await pages.post(f"{path}/signal", data={"signal": "approval"})).status_code == 409

    # Last: once there is a token, the pages ask for one.
    waiting = await queue.add("order")
    async with Worker(queue, {"order": order}):
        await until(lambda: is_delayed(waiting))
    async with visit(headers=SAME_SITE | await make_token("viewer")) as client:
        path = f"/queues/orders/jobs/{waiting.id}"
        assert 'name="signal"' not in (await client.get(path)).text
        assert (await client.post(f"{path}/signal", data={"signal": "approval"})).status_code == 403


async def test_a_job_that_waits_for_a_signal_alone_is_due_when_it_is_woken(store, pages):
    async def approve(job):
        await job.wait_for("approval")

    queue = Queue("orders", store=store)
    async with Worker(queue, {"approve": approve}):
        job = await queue.add("approve")
        await until(lambda: is_delayed(job))
    assert "<dt>Due</dt><dd>when it is woken</dd>" in (await pages.get(f"/queues/orders/jobs/{job.id}")).text


async def test_a_job_that_waits_for_a_signal_says_for_how_long(store, pages):
    async def approve(job):
        await job.wait_for("approval", timeout="3 days")

    queue = Queue("orders", store=store)
    async with Worker(queue, {"approve": approve}):
        job = await queue.add("approve")
        await until(lambda: is_delayed(job))
    page = (await pages.get(f"/queues/orders/jobs/{job.id}")).text
    assert "It waits for the signal &#39;approval&#39;, for 2 d 23 h at most." in page


async def test_a_pause_after_a_failure_is_told_from_a_sleep_in_a_later_attempt(store, pages):
    async def work(job):
        if job.attempt == 1:
            raise ConnectionError
        await job.sleep("1 day")

    queue = Queue("orders", store=store)
    asleep, paused = await queue.add_many(
        [("work", None, {"attempts": 2, "backoff": pause}) for pause in (0, "1 hour")]
    )
    async with Worker(queue, {"work": work}):
        await until(lambda: is_delayed(asleep))
        await until(lambda: is_delayed(paused))
    reason = "Attempt 1 failed; the next one comes after a pause."
    assert reason in (await pages.get(f"/queues/orders/jobs/{paused.id}")).text
    assert reason not in (await pages.get(f"/queues/orders/jobs/{asleep.id}")).text


async def test_the_timeline_has_a_line_for_what_happened_at_once(store, pages):
    queue = Queue("orders", store=store)

    async def count(job):
        for part in (10, 20, 30):
            await job.progress(part)
        raise Unrecoverable("no luck")

    async with Worker(queue, {"count": count}):
        job = await queue.add("count")
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    page = (await pages.get(f"/queues/orders/jobs/{job.id}")).text

    timeline = page[page.index('id="timeline"') :]
    assert re.findall("<strong>(.*?)</strong>", timeline) == [
        "added, waiting",
        "active",
        "progress",
        "failed, retries-exhausted",
    ]
    assert "30 %" in timeline
    assert "20 %" not in timeline


async def is_delayed(job):
    return await job.state() == "delayed"


async def test_the_delivery_of_a_webhook_is_shown_and_sent_again(store, pages, visit, make_token):
    queue = Queue("orders", store=store, webhook=Webhook("https://shop.example.com/hooks", events=["cancelled"]))
    job = await queue.add("pack")
    await job.cancel("not needed")
    delivery = await queue.delivery(job.id)
    assert delivery is not None
    path = f"/queues/ropeway.webhooks/jobs/{quote(delivery.id, safe='')}"

    page = await pages.get(f"/queues/orders/jobs/{job.id}")
    assert path in page.text
    assert "delivery waiting" in page.text
    await pages.post(f"{path}/cancel")
    assert "https://shop.example.com/hooks" in (await pages.get(path)).text
    assert (await pages.post(f"{path}/retry")).status_code == 303
    assert await delivery.state() == "waiting"

    async with visit(headers=SAME_SITE | await make_token("viewer")) as client:
        assert path not in (await client.get(f"/queues/orders/jobs/{job.id}")).text


async def test_a_schedule_is_run_and_paused(store, pages):
    queue = Queue("orders", store=store)
    await queue.schedule("nightly", "report", {"n": 1}, cron="0 3 * * *", tz="Europe/Berlin")
    assert "nightly" in (await pages.get("/schedules")).text
    made = await pages.post("/queues/orders/schedules/nightly/run")
    assert "report" in (await pages.get(made.headers["location"])).text
    await pages.post("/queues/orders/schedules/nightly/pause")
    paused = await queue.schedules.get("nightly")
    await pages.post("/queues/orders/schedules/nightly/resume")
    resumed = await queue.schedules.get("nightly")
    assert paused is not None
    assert resumed is not None
    assert (paused.paused, resumed.paused) == (True, False)
    assert (await pages.post("/queues/orders/schedules/other/run")).status_code == 404


async def test_workers_are_shown_with_what_they_run(store, pages):
    queue = Queue("orders", store=store)
    job = await queue.add("report")
    is_running, may_end = asyncio.Event(), asyncio.Event()

    async def report(_):
        is_running.set()
        await may_end.wait()

    async with Worker(queue, {"report": report}, name="night-shift"):
        await is_running.wait()

        async def shown():
            page = await pages.get("/workers")
            return "night-shift" in page.text and job.id in page.text

        await until(shown)
        may_end.set()


async def test_failures_are_grouped_and_retried(store, pages):
    queue = Queue("orders", store=store)
    await fail(queue, *range(5))
    page = await pages.get("/failures")
    assert page.text.count("Retry all") == 1
    assert "All 5 failed jobs" in page.text
    assert "in handler" in page.text, "the place"
    group = re.search(r'name="group" value="(\w+)"', page.text)
    assert group
    given = {"action": "retry", "queue": "orders", "group": group[1]}
    assert "5+jobs+retried" in (await pages.post("/failures", data=given)).headers["location"]
    assert (await queue.counts())["waiting"] == 5


async def test_a_group_that_is_larger_than_what_was_looked_at_is_retried_whole(store, pages, monkeypatch):
    monkeypatch.setattr(failures, "NEWEST", 20)
    queue = Queue("orders", store=store)
    await fail(queue, *range(50))
    page = await pages.get("/failures")
    assert "The newest 20 failed jobs" in page.text
    group = re.search(r'name="group" value="(\w+)"', page.text)
    assert group
    started = await pages.post("/failures", data={"action": "retry", "queue": "orders", "group": group[1]})
    assert started.headers["location"].startswith("/operations/")

    async def retried():
        return ">50</strong> retried" in (await pages.get(started.headers["location"])).text

    await until(retried)
    assert (await queue.counts())["waiting"] == 50


async def test_the_overview_says_what_is_late(store, pages):
    now = await store.clock()
    await store.add([[new_job(queue="orders", due_at=now + 3_600_000)]])
    await store.add([[new_job(queue="mail", due_at=now - 60_000)]], now=now - 120_000)
    late = re.search(r'id="late".*?</section>', (await pages.get("/")).text, re.DOTALL)
    assert late
    assert ("queue=mail" in late[0], "queue=orders" in late[0]) == (True, False)
