"""What is asked of a store, and what comes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropeway import Phase, PhaseContext, Pipeline, Queue, Unrecoverable, Worker, connect
from ropeway.cli.live import gathering, stream
from ropeway.cli.live.event_lines import happened
from ropeway.cli.live.gathering import Gatherer
from ropeway.cli.live.memory import JobMemory
from ropeway.cli.live.next_runs import NextRuns
from ropeway.cli.live.picture import Picture, RunningPhase
from ropeway.cli.live.pictures import pictures
from ropeway.cli.live.watching import EVENTS
from ropeway.errors import StoreUnavailable
from ropeway.job.events import Entry
from ropeway.job.instants import LAST_INSTANT, Instant
from ropeway.store.contract import Store
from ropeway.store.values import Record, ScheduleWrite
from ropeway.testing.arrange import add
from ropeway.testing.factories import new_jobs
from tests.patience import PATIENCE


class CountingStore:
    """Passes everything on, and counts the calls of each verb."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("url", "close"):
            self.calls[name] += 1
        return found


@pytest.fixture
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    is_file = getattr(request, "param", "memory") == "sqlite"
    made = connect(f"sqlite:///{tmp_path}/live.db" if is_file else "memory://live-view")
    yield made
    await made.close()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue("emails", store=store)


@pytest.fixture
async def gatherer(store: Store) -> AsyncIterator[Gatherer]:
    made = Gatherer(store.url, step=1.0)
    yield made
    await made.close()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> list[CountingStore]:
    """The stores that gatherers open, from now on."""
    made: list[CountingStore] = []

    def counted(url: str | None, *, create: bool) -> CountingStore:
        made.append(CountingStore(connect(url, create=create)))
        return made[-1]

    monkeypatch.setattr(gathering, "connect", counted)
    return made


async def run_all(queue: Queue, **handlers: Any) -> None:
    """Runs what waits, until nothing does."""
    events = queue.events()
    async with Worker(queue, handlers or do_nothing, concurrency=5):
        async for event in events:
            if event.name == "drained":
                break
    await events.aclose()


async def do_nothing(job: Any) -> None:
    pass


async def test_counts_are_those_of_the_store(queue: Queue, gatherer: Gatherer):
    await queue.add_many([("send", n) for n in range(3)])
    await queue.add("send", delay=60)

    [seen] = (await gatherer.look()).queues

    assert seen.counts == await queue.counts()
    assert seen.counts["waiting"] == 3


async def test_queues_appear_and_vanish_while_it_looks(store: Store, queue: Queue, gatherer: Gatherer):
    await queue.add("send")
    assert names(await gatherer.look()) == ["emails"]

    await Queue("images", store=store).add("resize")
    assert names(await gatherer.look()) == ["emails", "images"]

    await queue.obliterate()
    assert names(await gatherer.look()) == ["images"]


async def test_only_the_queues_asked_for_are_looked_at(store: Store, queue: Queue):
    await queue.add("send")
    await Queue("images", store=store).add("resize")

    seen = await Gatherer(store.url, ["images", "letters"]).look()

    assert names(seen) == ["images"]
    assert seen.unknown_queues == ("letters",)


async def test_a_queue_that_only_has_a_worker_is_there(store: Store, queue: Queue, gatherer: Gatherer):
    async with Worker(queue, do_nothing):
        assert names(await gatherer.look()) == names(await Gatherer(store.url, ["emails"]).look()) == ["emails"]


async def test_of_very_many_queues_some_are_left_out(store: Store, gatherer: Gatherer):
    for number in range(gathering.WATCHED + 3):
        await add(store, *new_jobs(1, queue=f"queue-{number:03}"))

    seen = await gatherer.look()

    assert (len(seen.queues), seen.more_queues) == (gathering.WATCHED, 3)


async def test_running_jobs_show_their_progress_and_their_worker(queue: Queue, gatherer: Gatherer):
    await queue.add("send", attempts=3)
    worker = Worker(queue, name="web-1")
    [job] = await worker.claim()
    await queue.report_progress(job.id, 40)

    [running] = (await gatherer.look()).running

    assert (running.name, running.progress, running.attempt, running.attempts) == ("send", 40, 1, 3)
    assert running.worker == worker.id


async def test_the_named_worker_is_shown_with_what_it_holds(queue: Queue, gatherer: Gatherer):
    async def look(job: Any) -> None:
        while not (seen := await gatherer.look()).workers:
            pass
        pictures_seen.append(seen)

    pictures_seen: list[Picture] = []
    job = await queue.add("send")
    async with Worker(queue, look, name="web-1"):
        await job.result(timeout=PATIENCE)

    [running], [worker] = pictures_seen[0].running, pictures_seen[0].workers
    assert (running.worker, worker.name, worker.running) == ("web-1", "web-1", 1)


async def test_failures_show_their_reason_newest_last(queue: Queue, gatherer: Gatherer):
    async def fail(job: Any) -> None:
        raise Unrecoverable(job.data)

    await queue.add("send", "no address")
    await run_all(queue, send=fail)
    await queue.add("send", "no name")
    await run_all(queue, send=fail)

    reasons = [failure.reason for failure in (await gatherer.look()).failures]

    assert [reason.split(": ")[-1] for reason in reasons] == ["no address", "no name"]


async def test_events_since_the_first_look_are_told_with_names(queue: Queue, gatherer: Gatherer):
    early = await queue.add("print")
    await gatherer.look()
    await queue.add_many([("send", None)] * 3)
    await queue.cancel(early.id, "too old")

    added, cancelled = (await gatherer.look()).events

    assert (added.event, added.count, added.names) == ("added", 3, ("send",))
    assert (cancelled.event, cancelled.names, cancelled.note) == ("cancelled", ("print",), "too old")


async def test_rates_count_every_job(queue: Queue, gatherer: Gatherer):
    await queue.add("send")
    before = await gatherer.look()
    await queue.add_many([("send", None)] * 50)
    await run_all(queue)
    after = await gatherer.look()

    seconds = max(1, after.at - before.at) / 1000
    assert after.queues[0].rates.added * seconds == pytest.approx(50, rel=0.01)
    assert after.queues[0].rates.completed * seconds == pytest.approx(51, rel=0.01)
    assert len(after.queues[0].throughput) == 1


async def test_waits_are_measured_from_waiting_to_started(queue: Queue, gatherer: Gatherer):
    await gatherer.look()
    await queue.add_many([("send", None)] * 20)
    await gatherer.look()
    await run_all(queue)

    latency = (await gatherer.look()).queues[0].latency

    assert latency is not None
    assert latency.seen == 20
    assert 0 <= latency.p50 <= latency.p95


def test_a_delay_is_no_wait():
    memory = JobMemory()
    memory.hear(Entry("add", 0, "delayed", [("a", {"name": "send", "due_at": 60_000})]))
    memory.hear(Entry("promote", 60_000, "waiting", [("a", None)]))
    memory.hear(Entry("claim", 60_250, "active", [("a", None)]))

    latency = memory.latency(61_000)

    assert latency is not None
    assert (latency.p50, latency.p95, latency.seen) == (0.25, 0.25, 1)


def test_waits_of_long_ago_are_forgotten():
    memory = JobMemory()
    memory.hear(Entry("add", 0, "waiting", [("a", {"name": "send"})]))
    memory.hear(Entry("claim", 10, "active", [("a", None)]))

    assert memory.latency(200_000) is None


def test_a_given_up_job_is_told_as_failed():
    entry = Entry("give up", 5, "failed", [("a", {"reason": "stalled more than allowable limit"})])

    told = happened("emails", entry, lambda _: "send")

    assert (told.event, told.names, told.note) == ("failed", ("send",), "stalled more than allowable limit")


async def test_the_age_of_the_oldest_waiting_job_is_known(queue: Queue, store: Store, gatherer: Gatherer):
    await add(store, *new_jobs(1, queue="emails", priority=5), now=await store.clock() - 90_000)
    await queue.add("send")

    age = (await gatherer.look()).queues[0].oldest_waiting

    assert age is not None
    assert 90 <= age < 120


async def test_a_queue_in_which_nothing_happens_costs_one_read(
    queue: Queue, gatherer: Gatherer, counting: list[CountingStore]
):
    await queue.add_many([("send", None)] * 10)
    await gatherer.look()
    [opened] = counting
    opened.calls.clear()

    await gatherer.look()

    assert opened.calls == {"queues": 1, "clock": 1, "recall": 1, "events": 1}


async def test_a_busy_queue_costs_a_few_reads_and_no_writes(
    queue: Queue, gatherer: Gatherer, counting: list[CountingStore]
):
    await gatherer.look()
    [opened] = counting
    await gatherer.look()
    opened.calls.clear()
    for _ in range(100):
        await queue.add("send")
    await run_all(queue)
    await queue.pause()

    await gatherer.look()

    assert opened.calls.total() <= 15
    assert set(opened.calls) <= {
        "queues",
        "clock",
        "recall",
        "events",
        "count",
        "metrics",
        "find",
        "get",
        "settings",
        "schedules",
    }


async def test_more_events_than_are_read_are_said_and_lose_no_count(
    queue: Queue, gatherer: Gatherer, monkeypatch: pytest.MonkeyPatch, counting: list[CountingStore]
):
    monkeypatch.setattr(stream, "PORTION", 10)
    await queue.add("send")
    before = await gatherer.look()
    for _ in range(200):
        await queue.add("send")
    counting[0].calls.clear()

    after = await gatherer.look()

    assert counting[0].calls["events"] == stream.PORTIONS + 1
    [seen] = after.queues
    assert seen.missed_events
    assert seen.counts["waiting"] == 201
    assert seen.rates.added * max(1, after.at - before.at) / 1000 == pytest.approx(200, rel=0.01)
    assert len(after.events) <= EVENTS


async def test_a_gap_in_the_stream_is_said(queue: Queue, gatherer: Gatherer):
    await queue.add("send")
    assert not (await gatherer.look()).queues[0].missed_events
    gatherer._watches["emails"]._stream._cursor = "trimmed"

    assert (await gatherer.look()).queues[0].missed_events


async def test_a_store_of_nobody_is_not_made():
    with pytest.raises(StoreUnavailable):
        await Gatherer("memory://nobody").look()


async def test_a_damaged_worker_hides_no_other(queue: Queue, store: Store, gatherer: Gatherer):
    await queue.add("send")
    await store.remember(Record("worker", "odd", '{"id": 1}'))

    assert (await gatherer.look()).workers == ()


async def test_a_lost_store_is_shown_and_found_again(tmp_path: Path):
    url, file = f"sqlite:///{tmp_path}/jobs.db", tmp_path / "jobs.db"
    async with Queue("emails", url) as queue:
        await queue.add("send")
    gatherer = Gatherer(url, step=0.01)
    stream = pictures(gatherer, 0.01)
    assert (await anext(stream)).trouble is None

    file.rename(tmp_path / "away.db")
    lost = await first(stream, lambda seen: seen.trouble is not None)
    for _ in range(3):
        assert (await anext(stream)).trouble is not None
    assert lost.queues[0].counts["waiting"] == 1
    assert not file.exists()

    (tmp_path / "away.db").rename(file)
    found = await first(stream, lambda seen: seen.trouble is None)
    assert found.queues[0].counts["waiting"] == 1
    await stream.aclose()
    await gatherer.close()


async def test_a_store_that_nobody_has_made_yet_is_empty_until_somebody_does(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/jobs.db"
    gatherer = Gatherer(url)
    assert names(await gatherer.look()) == []

    async with Queue("emails", url) as queue:
        await queue.add("send")
    seen = await gatherer.look()
    assert names(seen) == ["emails"]
    assert seen.events
    await gatherer.close()


async def first(stream: Any, accepts: Any) -> Picture:
    async for seen in stream:
        if accepts(seen):
            assert isinstance(seen, Picture)
            return seen
    raise AssertionError("the stream ended")


def names(seen: Picture) -> list[str]:
    return [queue.name for queue in seen.queues]


def test_a_picture_is_json():
    assert msgspec.json.decode(msgspec.json.encode(Picture(Instant(5), "memory://")), type=Picture).at == 5


def test_what_applications_publish_is_told_by_its_own_name():
    told = happened("emails", Entry("published", 5, None, [], {"name": "imported", "data": {"rows": 3}}), lambda _: "")

    assert (told.event, told.note) == ("imported", '{"rows":3}')


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (Entry("phase-started", 5, None, [("a", None)], {"phase": "process", "number": 2, "of": 3}), "process, 2 of 3"),
        (Entry("signalled", 5, None, [("a", {"name": "payment"})]), "payment"),
        (Entry("postpone", 5, "delayed", [("a", {"due_at": 259_200_005})]), "for 3d00h"),
        (Entry("postpone", 5, "delayed", [("a", {"due_at": LAST_INSTANT})]), "until it is woken"),
    ],
)
def test_what_durable_handlers_announce_is_told(entry: Entry, note: str):
    assert happened("emails", entry, lambda _: "import").note == note


@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_a_running_pipeline_shows_its_phase(queue: Queue, gatherer: Gatherer, store: Store):
    """From its job if it began before the view, and from its events later."""
    steps = {name: (asyncio.Event(), asyncio.Event()) for name in ("download", "process")}

    async def phase(job: Any, ctx: PhaseContext) -> None:
        entered, opened = steps[ctx.name]
        entered.set()
        await opened.wait()

    async def shows(expected: tuple[RunningPhase, int]) -> None:
        """The start of a phase is stored while its function already runs."""
        async with asyncio.timeout(PATIENCE):
            while [(row.phase, row.progress) for row in (await gatherer.look()).running] != [expected]:  # noqa: ASYNC110
                await asyncio.sleep(0)

    pipeline = Pipeline([Phase("download", phase), Phase("process", phase)])
    async with Worker(queue, {"import": pipeline, "*": lambda job: None}):
        job = await queue.add("import")
        await asyncio.wait_for(steps["download"][0].wait(), PATIENCE)
        await shows((RunningPhase("download", 1, 2), 0))
        steps["download"][1].set()
        await asyncio.wait_for(steps["process"][0].wait(), PATIENCE)
        await shows((RunningPhase("process", 2, 2), 50))
        steps["process"][1].set()
        await job.result(timeout=PATIENCE)
    assert (await gatherer.look()).running == ()


async def test_the_next_runs_of_schedules_are_seen(gatherer: Gatherer, queue: Queue):
    await queue.schedule("yearly", "report", cron="0 5 31 12 *")
    await queue.schedule("minutely", "ping", every="1 minute")
    await queue.schedule("paused", "ping", every="1 minute")
    await queue.schedules.pause("paused")

    seen = await gatherer.look()

    assert [(run.queue, run.schedule, run.name) for run in seen.next_runs] == [
        ("emails", "minutely", "ping"),
        ("emails", "yearly", "report"),
    ]
    assert 0 < seen.next_runs[0].seconds <= 60


async def test_schedules_are_read_again_when_they_were_due(store: Store, queue: Queue):
    counting: Any = CountingStore(store)
    runs = NextRuns()
    now = await store.clock()
    await store.write_schedules(queue.name, [ScheduleWrite("due", "{}", now + 1_000)])
    await runs.look(counting, queue.name, now)
    await store.write_schedules(queue.name, [ScheduleWrite("due", "{}", now + 60_000)])

    await runs.look(counting, queue.name, now + 500)
    assert runs.upcoming(queue.name, now)[0].at == now + 1_000
    await runs.look(counting, queue.name, now + 1_500)
    assert runs.upcoming(queue.name, now)[0].at == now + 60_000
    await runs.look(counting, queue.name, now + 2_000)
    assert counting.calls["schedules"] == 2
