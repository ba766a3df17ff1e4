"""What can be seen of a queue and its jobs, damaged ones included."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ropeway import InvalidInput, JobFailed, JobNotFound, Queue, Snapshot
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.errors import InvalidName, InvalidOption
from ropeway.job.record import NewJob
from ropeway.job.states import State
from ropeway.store.contract import Store
from ropeway.store.values import JobUpdate, Lock, Record
from ropeway.testing.arrange import ARRANGED, active, failed, job_in

BAD_IDS: list[Any] = ["", "a b", "é", "x" * 256, "\ud800", None, 5, b"a"]


async def one(queue: Queue, id: str) -> Snapshot:
    job = await queue.get(id)
    assert job is not None
    assert job.snapshot is not None
    return job.snapshot


async def test_a_job_is_seen_with_all_that_is_known_of_it(queue: Queue, store: Store):
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    record = await active(store, now=await store.clock(), data='{"to":"you"}', attempts=3, priority=-2)
    seen = await one(queue, record.id)
    assert (seen.queue, seen.name, seen.data) == (queue.name, "send", {"to": "you"})
    assert (seen.state, seen.priority, seen.attempts, seen.attempts_started) == ("active", -2, 3, 1)
    assert seen.worker == record.worker
    assert seen.started_at is not None
    assert seen.lock_until is not None
    assert before <= seen.created_at <= seen.started_at < seen.lock_until
    assert (seen.renewed_at, seen.lifo) == (seen.started_at, False)
    assert (seen.finished_at, seen.expires_at, seen.due_at, seen.reason) == (None, None, None, None)
    assert seen.corrupt == ()


async def test_it_is_seen_when_a_worker_was_last_heard_of(queue: Queue, store: Store):
    now = await store.clock()
    record = await active(store, now=now)
    await store.renew(queue.name, [Lock(record.id, record.token or "")], 30_000, now=now + 5_000)
    seen = await one(queue, record.id)
    assert seen.started_at is not None
    assert seen.renewed_at == seen.started_at + timedelta(seconds=5)


async def test_it_is_seen_who_stands_ahead_of_others(queue: Queue):
    [job, _] = await queue.add_many([("send", 1, {"lifo": True}), ("send", 2)])
    assert [found.snapshot.lifo for found in await queue.find("waiting")] == [True, False]
    await queue.change(job.id, lifo=False)
    assert not (await job.refresh()).lifo


async def test_a_finished_job_is_seen_with_its_result_or_its_reason(queue: Queue, store: Store):
    now = await store.clock()
    completed = await one(queue, (await job_in("completed", store, now=now)).id)
    assert (completed.result, completed.reason) == ("sent", None)
    failed = await one(queue, (await job_in("failed", store, now=now)).id)
    assert (failed.result, failed.reason, failed.attempts_made) == (None, "no luck", 1)
    assert failed.finished_at is not None
    assert failed.expires_at == failed.finished_at + timedelta(days=7)


async def test_a_job_that_is_not_there_is_none(queue: Queue):
    assert await queue.get("nobody") is None
    with pytest.raises(JobNotFound, match="never added, or was removed"):
        await queue.history("nobody")


async def test_a_handle_whose_job_is_gone_says_so(queue: Queue):
    job = await queue.add("send")
    await job.remove()
    with pytest.raises(JobNotFound):
        await job.refresh()
    with pytest.raises(JobNotFound):
        await job.state()


async def test_what_cannot_be_an_id_is_refused_everywhere(queue: Queue):
    for id in BAD_IDS:
        for call in (
            queue.get,
            queue.history,
            queue.cancel,
            queue.retry,
            queue.promote,
            queue.remove,
            queue.change,
            lambda id: queue.report_progress(id, 1),
        ):
            with pytest.raises(InvalidName, match="job id"):
                await call(id)


async def test_jobs_of_another_queue_are_not_seen(queue: Queue, store: Store):
    other = Queue("other", store=store)
    job = await other.add("send", id="a")
    assert await queue.get(job.id) is None
    assert (await queue.find()).jobs == []
    assert (await queue.counts())["waiting"] == 0


async def test_counts_name_every_state_that_a_job_can_be_in(queue: Queue, store: Store):
    now = await store.clock()
    for state in reversed([*ARRANGED]):
        await job_in(state, store, now=now)
    assert await queue.counts() == dict.fromkeys(ARRANGED, 1)


@pytest.mark.parametrize("state", ARRANGED)
async def test_jobs_are_found_by_state(queue: Queue, store: Store, state: State):
    now = await store.clock()
    ids = {other: (await job_in(other, store, now=now)).id for other in reversed([*ARRANGED])}
    assert [job.id for job in (await queue.find(state)).jobs] == [ids[state]]


async def test_states_are_found_under_the_names_that_others_use(queue: Queue, store: Store):
    held = await active(store, now=await store.clock())
    job = await queue.add("send")
    for word in ("wait", "pending", "unclaimed"):
        assert [found.id for found in (await queue.find(word)).jobs] == [job.id]
    assert [found.id for found in (await queue.find("in_progress")).jobs] == [held.id]


@pytest.mark.every_store
async def test_pages_follow_each_other_without_gap_or_repeat(queue: Queue):
    added = [job.id for job in await queue.add_many(("send", n) for n in range(25))]
    for newest_first in (False, True):
        found: list[str] = []
        after = None
        sizes = []
        while True:
            page = await queue.find("waiting", limit=10, after=after, newest_first=newest_first)
            found += [job.id for job in page.jobs]
            sizes.append(len(page.jobs))
            after = page.next
            if after is None:
                break
        assert found == (added[::-1] if newest_first else added)
        assert sizes == [10, 10, 5]


async def test_a_page_is_used_as_a_list_is(queue: Queue):
    jobs = await queue.add_many(["send", "post"])
    page = await queue.find("waiting")
    assert (page[0].id, page[-1].id, len(page)) == (jobs[0].id, jobs[1].id, 2)
    with pytest.raises(IndexError):
        page[2]


async def test_a_page_may_go_through_several_states(queue: Queue):
    delayed = [await queue.add("send", delay=60 - n) for n in range(3)]
    waiting = [await queue.add("send") for _ in range(3)]
    first = await queue.find("delayed", "waiting", limit=4)
    second = await queue.find("delayed", "waiting", limit=4, after=first.next)
    assert [job.id for job in first.jobs + second.jobs] == [job.id for job in [*delayed[::-1], *waiting]]


async def test_jobs_are_found_by_name(queue: Queue):
    await queue.add_many(["send", "post", "send", "%", "_"])
    assert [job.name for job in (await queue.find("waiting", name="send")).jobs] == ["send", "send"]
    assert [job.name for job in (await queue.find(name="%")).jobs] == ["%"]
    assert (await queue.find(name="none")).jobs == []


async def test_a_search_that_cannot_be_meant_is_refused(queue: Queue):
    searches: list[Any] = [
        lambda: queue.find("stalled"),
        lambda: queue.find(None),  # type: ignore[arg-type]
        lambda: queue.find(["waiting"]),  # type: ignore[arg-type]
        lambda: queue.find(limit=0),
        lambda: queue.find(limit=1_001),
        lambda: queue.find(limit=1.5),  # type: ignore[arg-type]
        lambda: queue.find(after="nonsense"),
        lambda: queue.find(after=5),  # type: ignore[arg-type]
        lambda: queue.find(newest_first="no"),  # type: ignore[arg-type]
        lambda: queue.find(name=""),
        lambda: queue.find(name=5),  # type: ignore[arg-type]
    ]
    for search in searches:
        with pytest.raises(InvalidInput):
            await search()


async def test_an_unknown_state_is_answered_with_the_known_ones(queue: Queue):
    with pytest.raises(
        InvalidOption, match="the states are waiting, waiting-children, delayed, active, completed, failed, cancelled"
    ):
        await queue.find("sleeping")


@pytest.mark.every_store
async def test_history_tells_of_failed_attempts_and_log_lines(queue: Queue, store: Store):
    record = await failed(store, now=await store.clock())
    history = await queue.history(record.id)
    assert [(failure.attempt, failure.reason) for failure in history.failures] == [(1, "no luck")]
    job = await queue.add("send")
    await store.update(queue.name, [JobUpdate(job.id, log=("one",)), JobUpdate(job.id, log=("two",))])
    history = await queue.history(job.id)
    assert [line.text for line in history.log] == ["one", "two"]
    assert history.failures == []


@pytest.mark.every_store
async def test_metrics_count_what_happened_by_the_minute(queue: Queue, store: Store):
    now = await store.clock()
    await job_in("completed", store, now=now)
    await job_in("failed", store, now=now)
    metrics = await queue.metrics()
    assert sum(metric.added for metric in metrics) == 2
    assert (sum(metric.completed for metric in metrics), sum(metric.failed for metric in metrics)) == (1, 1)
    assert await queue.metrics(since=datetime(2200, 1, 1, tzinfo=UTC)) == []
    with pytest.raises(InvalidInput, match="time zone"):
        await queue.metrics(since=datetime(2200, 1, 1))  # noqa: DTZ001 - that is the mistake
    with pytest.raises(InvalidInput, match="not an instant"):
        await queue.metrics(since="yesterday")  # type: ignore[arg-type]


@pytest.mark.every_store
async def test_workers_that_serve_the_queue_are_listed_until_they_are_silent(queue: Queue, store: Store):
    def says(id: str, *queues: str) -> Record:
        info = WorkerInfo(id, id, "host", 1, queues, dict.fromkeys(queues), 10, 0, 0)
        return Record(WORKER_RECORDS, id, msgspec.json.encode(info).decode())

    await store.remember(says("a", queue.name))
    await store.remember(says("b", "other"))
    await store.remember(says("c", queue.name, "other"), lasting=1_000, now=await store.clock() - 2_000)
    assert [worker.id for worker in await queue.workers()] == ["a"]


async def damaged(queue: Queue, id: str, data: str = "1", options: str = "{}") -> None:
    """Puts a job into the store as no client would, but as a damaged disk or another version may."""
    await queue.store.add([[NewJob(queue.name, id, "send", data, options)]])


@pytest.mark.every_store
@pytest.mark.parametrize(
    ("part", "data", "options"),
    [
        ("data", "{not json", "{}"),
        ("data", "", "{}"),
        ("options", "1", "{not json"),
        ("options", "1", '{"attempts":"many"}'),
        ("options", "1", '{"backoff":{"kind":"lunar"}}'),
    ],
)
async def test_a_damaged_job_is_seen_and_marked(queue: Queue, part: str, data: str, options: str):
    await queue.add("send", "whole", id="before")
    await damaged(queue, "damaged", data, options)
    await queue.add("send", "whole", id="after")
    seen = await one(queue, "damaged")
    assert seen.corrupt == (part,)
    assert (seen.state, seen.attempts, seen.data) == ("waiting", 1, None if part == "data" else 1)
    jobs = (await queue.find("waiting")).jobs
    assert [job.id for job in jobs] == ["before", "damaged", "after"]
    assert [job.snapshot.corrupt for job in jobs] == [(), (part,), ()]


@pytest.mark.every_store
async def test_a_damaged_job_can_be_removed(queue: Queue):
    await damaged(queue, "damaged", "{not json", "{not json")
    assert (await one(queue, "damaged")).corrupt == ("data", "options")
    await queue.remove("damaged")
    assert await queue.get("damaged") is None


@pytest.mark.every_store
async def test_a_damaged_job_can_be_moved_like_any_other(queue: Queue):
    await damaged(queue, "damaged", "{not json", "{not json")
    await queue.change("damaged", priority=1)
    await queue.cancel("damaged", "no use")
    seen = await one(queue, "damaged")
    assert (seen.state, seen.priority, seen.reason) == ("cancelled", 1, "no use")
    await queue.retry("damaged")
    assert await queue.drain() == 1


@pytest.mark.every_store
async def test_options_of_a_newer_version_are_no_damage(queue: Queue):
    await damaged(queue, "newer", options='{"attempts":4,"colour":"green"}')
    seen = await one(queue, "newer")
    assert (seen.attempts, seen.corrupt) == (4, ())


async def test_reading_a_failed_job_raises_nothing_but_asking_for_its_result_does(queue: Queue, store: Store):
    record = await failed(store, now=await store.clock())
    job = await queue.get(record.id)
    assert job is not None
    with pytest.raises(JobFailed, match="no luck"):
        await job.result()


async def test_waiting_jobs_are_counted_by_priority(queue: Queue):
    await queue.add_many([("send", n, {"priority": n % 3}) for n in range(10)])
    await queue.add("send", priority=1, delay=60)

    assert await queue.counts_by_priority(1, 0, 7) == {1: 3, 0: 4, 7: 0}
    assert await queue.counts_by_priority(2, 2) == {2: 3}


def test_the_twin_counts_by_priority(queue: Queue):
    queue.sync.add("send", priority=5)

    assert queue.sync.counts_by_priority(5, 6) == {5: 1, 6: 0}


@pytest.mark.parametrize("priorities", [(), (2**21 + 1,), ("1",), (1.0,), tuple(range(1_001))])
async def test_priorities_that_cannot_be_meant_are_refused(queue: Queue, priorities: Any):
    with pytest.raises(InvalidInput, match="priorit"):
        await queue.counts_by_priority(*priorities)


async def test_a_snapshot_is_a_dict_for_json(queue: Queue):
    job = await queue.add("send", {"to": "you"}, delay=60, tags=["a"])
    snapshot = await job.refresh()

    fields = json.loads(json.dumps(snapshot.as_dict()))

    assert {key: fields[key] for key in ("id", "state", "data", "tags")} == {
        "id": job.id,
        "state": "delayed",
        "data": {"to": "you"},
        "tags": ["a"],
    }
    assert datetime.fromisoformat(fields["due_at"]) == snapshot.due_at
    assert fields.keys() == set(Snapshot.__struct_fields__)
