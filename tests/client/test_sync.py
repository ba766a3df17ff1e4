"""The sync twins: the same calls as those that are awaited, on every store."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar

import pytest

from ropeway import (
    ClaimedJob,
    DuplicateJob,
    FoundJob,
    InvalidOption,
    JobCancelled,
    JobHandle,
    JobNotFound,
    JobType,
    Queue,
    ResultTimeout,
    SyncClaimedJob,
    SyncFoundJob,
    SyncJobHandle,
    SyncQueue,
    SyncRefused,
    Worker,
)
from ropeway.client import portal
from ropeway.errors import StoreClosed
from ropeway.store.contract import Store
from tests.patience import PATIENCE

from .fixtures import MakeQueue
from .tampering import Tampering

TWINS = [(Queue, SyncQueue), (JobHandle, SyncJobHandle), (FoundJob, SyncFoundJob), (ClaimedJob, SyncClaimedJob)]


def awaited(kind: type) -> dict[str, Callable[..., object]]:
    """What a class offers by await or `async for`, by name."""
    calls: dict[str, Callable[..., object]] = {}
    for name, call in inspect.getmembers(kind, inspect.isfunction):
        answers = str(inspect.signature(call).return_annotation)
        if not name.startswith("_") and (inspect.iscoroutinefunction(call) or "Async" in answers):
            calls[name] = call
    return calls


def expected(call: Callable[..., object]) -> inspect.Signature:
    """The signature of the twin: the same, with twins in place of what is answered."""
    signature = inspect.signature(call)
    answer = str(signature.return_annotation)
    answer = re.sub(r"\b(JobHandle|FlowHandle|JobPage|FoundJob|ClaimedJob)\b", r"Sync\1", answer)
    answer = re.sub(r"AsyncGenerator\[(.*), None\]", r"Generator[\1, None, None]", answer)
    answer = answer.replace("AbstractAsyncContextManager", "AbstractContextManager")
    return signature.replace(return_annotation=answer)


def first_line(call: Callable[..., object]) -> str:
    return (inspect.getdoc(call) or "").partition("\n")[0]


@pytest.mark.parametrize(("kind", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_awaited_call_with_its_signature_and_its_words(kind: type, twin: type):
    assert awaited(kind)
    for name, call in awaited(kind).items():
        ours = vars(twin).get(name) or getattr(twin, name)
        assert inspect.signature(ours) == expected(call), name
        if name != "close":
            assert first_line(ours) == first_line(call), name
        assert not inspect.iscoroutinefunction(ours)


@pytest.mark.parametrize(("kind", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_plain_attribute(kind: type, twin: type):
    properties = {name for name, _ in inspect.getmembers(kind, lambda member: isinstance(member, property))}
    public = {name for name in properties if not name.startswith("_")}
    internal = {"store", "twin_store", "adds", "updates", "endings", "hub", "run", "has_running_steps"}
    assert public - {"sync", "task", *internal} <= set(dir(twin))


def test_a_worker_has_twins_of_run_and_claim():
    assert inspect.signature(Worker.run_sync) == inspect.signature(Worker.run)
    assert inspect.signature(Worker.claim_sync) == expected(Worker.claim)
    assert inspect.signature(Worker.claimed_sync) == expected(Worker.claimed)
    assert inspect.signature(Worker.idle_sync) == inspect.signature(Worker.idle)
    assert {"run", "claim", "claimed", "idle"} == set(awaited(Worker))


def test_jobs_are_added_looked_at_and_moved_without_a_loop(queue: Queue):
    sync = queue.sync
    job = sync.add("send", {"to": "you"}, delay=60, id="a")
    assert (job.id, job.name, job.data, job.created, job.snapshot) == ("a", "send", {"to": "you"}, True, None)
    assert job.state() == "delayed"
    assert repr(job) == "<SyncJobHandle 'send' a in 'letters'>"
    job.change(priority=2, data={"to": "me"})
    assert (job.refresh().priority, job.data, job.history().failures) == (2, {"to": "me"}, [])
    job.promote()
    assert job.refresh().state == "waiting"
    assert job.cancel("not needed") is True
    with pytest.raises(JobCancelled, match="not needed"):
        job.result(timeout=PATIENCE)
    job.retry()
    found = sync.get("a")
    assert found is not None
    assert found.snapshot is not None
    assert found.snapshot.state == "waiting"
    job.remove()
    assert sync.get("a") is None
    with pytest.raises(JobNotFound):
        job.state()


def test_many_jobs_are_added_found_and_moved_without_a_loop(queue: Queue):
    sync = queue.sync
    jobs = sync.add_many(("send", number) for number in range(5))
    assert [job.data for job in sync.find("waiting")] == [0, 1, 2, 3, 4]
    page = sync.find("waiting", limit=2)
    assert (len(page), [job.id for job in page], page.next is not None) == (2, [job.id for job in jobs[:2]], True)
    assert page[1].id == jobs[1].id
    sync.change(jobs[0].id, data="other", priority=3)
    sync.report_progress(jobs[0].id, 50)
    assert jobs[0].refresh().progress == 50
    assert (jobs[0].data, len(sync.history(jobs[0].id).failures)) == ("other", 0)
    for job in jobs[:2]:
        job.cancel()
    assert sync.retry_all("cancelled", limit=1) == 1
    assert len(sync.clean(0, "cancelled")) == 1
    sync.add("later", delay=60)
    assert sync.promote_all() == 1
    assert sync.drain(delayed=True) == 5
    assert sync.metrics()
    assert sync.workers() == []
    sync.set_global_concurrency(3)
    sync.pause()
    sync.pause("send")
    assert (sync.settings().paused, sync.settings().max_active) == (True, 3)
    sync.resume("send")
    sync.resume()
    assert sync.obliterate() == 0
    assert sync.counts()["waiting"] == 0


def test_wrong_calls_raise_what_they_raise_when_awaited(queue: Queue):
    sync = queue.sync
    sync.add("send", 1, id="a")
    with pytest.raises(DuplicateJob):
        sync.add("send", 2, id="a")
    with pytest.raises(InvalidOption, match="attempts"):
        sync.add("send", atempts=3)  # type: ignore[call-arg]  # the mistake is the point
    with pytest.raises(ResultTimeout):
        sync.add("send").result(timeout=0.01)


def test_an_error_shows_the_call_and_where_it_came_from(queue: Queue):
    with pytest.raises(JobNotFound) as caught:
        queue.sync.retry("missing")
    functions = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert functions[0] == "test_an_error_shows_the_call_and_where_it_came_from"
    assert functions[-2:] == ["retry", "_expect"]
    assert len(functions) < 9


@pytest.mark.every_store
def test_events_can_be_iterated_and_closed(queue: Queue):
    job = queue.sync.add("send")
    with closing(queue.sync.events("start")) as events:
        heard = [next(events) for _ in range(2)]
    assert [(event.name, event.job_id) for event in heard] == [("added", job.id), ("waiting", job.id)]
    assert list(events) == []


def test_past_events_come_to_an_end(queue: Queue):
    queue.sync.add("send")
    assert [event.name for event in queue.sync.events("start", follow=False)] == ["added", "waiting"]


def test_events_after_the_newest_are_all_that_follow_it(queue: Queue):
    queue.sync.add("before")
    newest = queue.sync.newest_event()
    job = queue.sync.add("after")
    heard = queue.sync.events(newest, follow=False)
    assert [(event.name, event.job_id) for event in heard] == [("added", job.id), ("waiting", job.id)]


@pytest.mark.every_store
def test_events_wait_for_what_happens_next(queue: Queue):
    events = queue.sync.events()
    heard: list[str] = []
    begun = queue.sync.add("first")
    follower = threading.Thread(target=lambda: heard.extend(next(events).name for _ in range(2)))
    follower.start()
    while follower.is_alive():
        # "now" is when the iteration begins, whenever the thread comes to that.
        queue.sync.add("more")
        follower.join(0.01)
    assert set(heard) <= {"added", "waiting"}
    assert begun.state() == "waiting"
    events.close()


def test_events_that_are_dropped_are_closed_on_any_thread(queue: Queue):
    queue.sync.add("send")
    held = [queue.sync.events("start")]
    next(held[0])

    async def drop() -> None:
        held.clear()

    asyncio.run(drop())
    assert queue.sync.counts()["waiting"] == 1


async def test_a_call_on_the_thread_of_a_loop_is_refused(queue: Queue):
    @queue.task
    async def resize(path: str) -> None: ...

    job = await queue.add("send")
    worker = Worker(queue, {"send": lambda job: None})
    calls: dict[str, Callable[[], object]] = {
        "await queue.add(...)": lambda: queue.sync.add("send"),
        "await queue.add_many(...)": lambda: queue.sync.add_many(["send"]),
        "await queue.add_call(...)": lambda: queue.sync.add_call(resize.call("a.png")),
        "await queue.find(...)": lambda: queue.sync.find("waiting"),
        "await queue.close(...)": queue.sync.close,
        "async with queue": queue.sync.__enter__,
        "async with queue.transaction()": queue.sync.transaction,
        "async for event in queue.events(...)": lambda: next(queue.sync.events()),
        "await task.add(...)": lambda: resize.add_sync("a.png"),
        "await task.get(...)": lambda: resize.get_sync(job.id),
        "await job_type.add(queue, ...)": lambda: JobType("send", str).add_sync(queue, "a"),
        "await job.result(...)": job.sync.result,
        "await worker.run()": worker.run_sync,
        "await worker.claim(...)": worker.claim_sync,
    }
    for instead, call in calls.items():
        with pytest.raises(SyncRefused, match=re.escape(f"use `{instead}`, or make the sync call in another thread")):
            call()
    assert (await queue.counts())["waiting"] == 1


@pytest.mark.every_store
async def test_one_queue_is_awaited_and_called_at_the_same_time(queue: Queue):
    def add_some() -> None:
        for _ in range(50):
            queue.sync.add("called")

    threads = [asyncio.to_thread(add_some) for _ in range(3)]
    awaits = [queue.add("awaited") for _ in range(50)]
    await asyncio.gather(*threads, *awaits)
    assert (await queue.counts())["waiting"] == 200
    assert (await asyncio.to_thread(queue.sync.counts))["waiting"] == 200


@pytest.mark.every_store
def test_adds_of_many_threads_share_trips(tampered_queue: Queue, tampering: Tampering):
    """While two trips are held up, the others gather, and one more carries them all."""
    departed, go = threading.Semaphore(0), threading.Event()
    trips: list[int] = []

    async def hold(bundles: list[object]) -> None:
        trips.append(len(bundles))
        departed.release()
        await asyncio.to_thread(go.wait)

    tampering.before["add"] = hold
    threads = [threading.Thread(target=tampered_queue.sync.add, args=("send",)) for _ in range(20)]
    for thread in threads[:2]:
        thread.start()
        departed.acquire()
    for thread in threads[2:]:
        thread.start()
    while len(waiting(tampered_queue)) < 18:
        pass
    go.set()
    for thread in threads:
        thread.join()
    assert trips == [1, 1, 18]
    assert tampered_queue.sync.counts()["waiting"] == 20


def waiting(queue: Queue) -> list[object]:
    loop = portal.loop()
    assert loop is not None
    return [*queue._on_loops[loop].adds._waiting]


def test_the_caller_s_context_goes_with_the_call(tampered_queue: Queue, tampering: Tampering):
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[str] = []
    tampering.before["add"] = lambda *_: seen.append(request.get())
    request.set("42")
    tampered_queue.sync.add("send")
    assert seen == ["42"]


def test_a_block_closes_the_queue_for_those_who_await_it_too():
    queue = Queue("letters", "memory://")
    with queue.sync as sync:
        sync.add("send")
    with pytest.raises(StoreClosed):
        sync.add("send")
    with pytest.raises(StoreClosed):
        asyncio.run(queue.add("send"))
    sync.close()


async def test_closing_the_awaited_queue_closes_its_twin():
    queue = Queue("letters", "memory://")
    await asyncio.to_thread(queue.sync.add, "send")
    await queue.close()
    with pytest.raises(StoreClosed):
        await asyncio.to_thread(queue.sync.add, "send")


def test_a_given_store_outlives_the_twin_s_block(make_queue: MakeQueue, store: Store):
    queue = make_queue()
    with queue.sync as sync:
        sync.add("send")
    assert sync.add("send").created
    assert queue.sync.counts()["waiting"] == 2


def test_the_twin_s_handle_is_closed_when_the_queue_is_gone(make_queue: MakeQueue):
    queue = make_queue()
    queue.sync.add("send")
    loop = portal.loop()
    assert loop is not None
    store = queue._on_loops[loop].store
    del queue
    while True:
        try:
            portal.run(store.open())
        except StoreClosed:
            break
