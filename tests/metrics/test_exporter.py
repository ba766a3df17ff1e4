"""Pages as applications serve them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from ropeway import Flow, Job, JobFailed, Queue, Webhook, Worker
from ropeway.errors import InvalidOption
from ropeway.metrics import Exporter, exporter
from ropeway.metrics.families import STORE
from ropeway.store.contract import Store
from ropeway.store.values import ScheduleWrite
from ropeway.testing.factories import new_job
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Tampering
from tests.patience import PATIENCE
from tests.server.conftest import until

from .parsing import Samples, parsed


async def page(on: Store | Queue, only: Callable[[str], bool] | None = None) -> Samples:
    return parsed(await Exporter(on).text(only))


@pytest.mark.every_store
async def test_a_page_says_what_the_store_says(store: Store, queue: Queue, make_queue: MakeQueue):
    async def handle(job: Job) -> None:
        if job.name == "fail":
            raise ValueError("no")

    async with Worker(queue, handle, concurrency=7):
        jobs = [await queue.add(name, attempts=2, dead_letter="dead") for name in ["run", "run", "fail"]]
        await (await queue.add("late", delay=60)).cancel()
        flow = await queue.add_flow(Flow("run", children=[Flow("run")]))
        for job in jobs[:2]:
            await job.result(timeout=PATIENCE)
        await flow.result(timeout=PATIENCE)
        with pytest.raises(JobFailed):
            await jobs[2].result(timeout=PATIENCE)
        await until(queue.workers)
        live = await page(queue)
    await queue.add("wait")
    await queue.pause()

    samples = await page(store)

    name = queue.name
    totals = {kind: samples[f"ropeway_jobs_{kind}_total", name] for kind in ("added", "completed", "failed", "retried")}
    assert totals == {"added": 7, "completed": 4, "failed": 1, "retried": 1}
    assert samples["ropeway_jobs_cancelled_total", name] == 1
    for state, number in (await queue.counts()).items():
        assert samples["ropeway_jobs", name, state] == number
    assert (live["ropeway_workers", name], live["ropeway_worker_slots", name]) == (1, 7)
    assert (samples["ropeway_workers", name], samples["ropeway_worker_slots", name]) == (0, 0)
    assert (live["ropeway_queue_paused", name], samples["ropeway_queue_paused", name]) == (0, 1)
    assert samples["ropeway_job_run_seconds_count", name] == 6
    assert samples["ropeway_job_wait_seconds_count", name] == 4
    assert samples["ropeway_dead_letters_waiting", "dead"] == 1
    assert samples["ropeway_dead_letters_waiting", name] == 0
    names = {family.name for family in STORE}
    assert {key[0].removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for key in samples} == names


async def test_the_oldest_job_is_that_which_could_run_first(store: Store, queue: Queue):
    now = await store.clock()
    await store.add([[new_job(queue=queue.name)]], now=now - 90_000)
    await store.add([[new_job(queue=queue.name)]], now=now - 30_000)
    await queue.add("until", delay=datetime.now(UTC) - timedelta(days=1))

    samples = await page(store)

    assert 90 <= samples["ropeway_oldest_waiting_age_seconds", queue.name] < 90 + PATIENCE


async def test_a_delay_is_no_wait(store: Store, queue: Queue):
    now = await store.clock()
    job = replace(new_job(queue=queue.name, delay=80_000), options='{"delay":80000}')
    await store.add([[job]], now=now - 90_000)
    await queue.promote(job.id)
    assert 10 <= (await page(store))["ropeway_oldest_waiting_age_seconds", queue.name] < 10 + PATIENCE


async def test_the_lag_is_that_of_the_most_late_schedule(store: Store, queue: Queue):
    made = Exporter(store)
    assert parsed(await made.text())["ropeway_queues_left_out",] == 0
    await queue.add("run")
    for schedule in ("late", "soon"):
        await queue.schedule(schedule, "tick", every="1 day")
    [late] = await store.schedules(queue.name, ["late"])
    now = await store.clock()
    await store.write_schedules(queue.name, [ScheduleWrite(late.id, late.value, now - 5_000)])

    samples = parsed(await made.text())

    assert samples["ropeway_schedules", queue.name] == 2
    assert 5 <= samples["ropeway_schedule_lag_seconds", queue.name] < 5 + PATIENCE


async def test_deliveries_of_webhooks_are_counted(store: Store, queue: Queue):
    job = await queue.add("run", webhook=Webhook("https://example.com/hook"))
    async with Worker(queue, lambda _: None, webhooks=False):
        await job.result(timeout=PATIENCE)
    samples = await page(store)
    assert samples["ropeway_webhook_deliveries_waiting",] == 1
    assert samples["ropeway_webhook_deliveries_failed",] == 0


async def test_pages_that_are_asked_for_at_once_share_a_read(tampered_queue: Queue, tampering: Tampering):
    await tampered_queue.add("run")
    made, door = Exporter(tampered_queue), Door()
    tampering.before["count"] = door.pass_through
    asking = [asyncio.create_task(made.text()) for _ in range(5)]
    await door.reached.wait()
    door.opened.set()

    texts = await asyncio.gather(*asking)

    assert len(set(texts)) == 1
    assert tampering.calls["count"] == 1


async def test_a_later_page_reads_the_last_minutes_alone(tampered_queue: Queue, tampering: Tampering):
    await tampered_queue.add("run")
    made = Exporter(tampered_queue)
    await made.text()
    before = tampering.calls.total()
    await made.text()
    now = await tampered_queue.store.clock()
    assert tampering.calls.total() - before <= 15
    assert tampering.given_to("metrics")[-1][1] > now - 20 * 60_000


async def test_a_queue_that_ran_empty_keeps_its_totals(store: Store, queue: Queue):
    job = await queue.add("run")
    made = Exporter(store)
    await made.text()
    await queue.remove(job.id)
    for one in (made, Exporter(store)):
        assert parsed(await one.text())["ropeway_jobs_added_total", queue.name] == 1


async def test_queues_beyond_the_limit_are_counted(
    store: Store, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(exporter, "MOST_QUEUES", 2)
    for name in "dabc":
        await make_queue(name).add("run")
    samples = await page(store)
    assert samples["ropeway_queues_left_out",] == 2
    assert {key[1] for key in samples if key[0] == "ropeway_workers"} == {"a", "b"}


async def test_a_page_has_the_queues_that_are_asked_for(store: Store, make_queue: MakeQueue):
    await make_queue("a").add("run")
    await make_queue("b").add("run")
    samples = await page(store, lambda name: name == "b")
    assert {key[1] for key in samples if len(key) > 1 and key[0] != "ropeway_build_info"} == {"b"}


def test_code_without_a_loop_has_pages_too(tmp_path: object):
    queue = Queue("letters", f"sqlite:///{tmp_path}/ropeway.db")
    queue.sync.add("run")
    assert parsed(Exporter(queue).text_sync())["ropeway_jobs_added_total", "letters"] == 1
    queue.sync.close()


def test_what_is_no_store_is_refused():
    with pytest.raises(InvalidOption, match="give a store or a queue"):
        Exporter("sqlite://")  # type: ignore[arg-type]  # the point
