"""Steps, sleeps, signals and gathered jobs: handlers that begin again, and go on where they stopped."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from ropeway import (
    Flow,
    InvalidInput,
    InvalidMove,
    InvalidOption,
    Job,
    JobFailed,
    JobFinished,
    JobHandle,
    JobNotFound,
    LockLost,
    PayloadTooLarge,
    Phase,
    Pipeline,
    Queue,
    SignalTimeout,
    SyncJob,
    Worker,
    in_process,
)
from ropeway.errors import AttemptTimeout, InvalidDuration, InvalidName, InvalidPayload, Postponed
from ropeway.job.marks import MOST_SIGNALS
from ropeway.store.values import StallRules
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Outage, Tampering
from tests.patience import PATIENCE

from . import phase_handlers, step_handlers
from .step_runs import Calls, echo, run
from .watching import Ear, entered, told


async def steps(job: JobHandle) -> list[str]:
    return [step.name for step in (await job.refresh()).steps if step.kind == "step"]


@dataclass
class Row:
    day: date
    count: int


class Page(msgspec.Struct):
    rows: list[Row]


class Order(pydantic.BaseModel):
    number: int
    day: date


async def a_row(day: date) -> Row:
    return Row(day, 1)


async def a_page(day: date) -> Page:
    return Page([Row(day, 2)])


async def an_order(day: date) -> Order:
    return Order(number=3, day=day)


def a_day(day: date) -> date:
    return day


class TestSteps:
    @pytest.mark.every_store
    async def test_a_step_runs_once_in_effect(self, queue: Queue):
        calls = Calls()

        async def work(job: Job) -> Any:
            pages = [await job.step(f"page-{n}", calls, n) for n in range(3)]
            if job.attempt < 3:
                raise RuntimeError("begin again")
            return pages

        assert await run(queue, work, attempts=3) == [0, 1, 2]
        assert calls.seen == {0: 1, 1: 1, 2: 1}

    @pytest.mark.every_store
    async def test_a_step_that_failed_is_run_again_and_others_are_not(self, queue: Queue):
        calls = Calls("b")

        async def work(job: Job) -> Any:
            return [await job.step(name, calls, name) for name in "abc"]

        assert await run(queue, work, attempts=2) == ["a", "b", "c"]
        assert calls.seen == {"a": 1, "b": 2, "c": 1}

    @pytest.mark.every_store
    async def test_steps_at_once(self, queue: Queue):
        together = asyncio.Barrier(10)
        seen: list[int] = []

        async def fetch(number: int) -> int:
            seen.append(number)
            await together.wait()
            return number

        async def work(job: Job) -> Any:
            pages = await asyncio.gather(*(job.step(f"page-{n}", fetch, n) for n in range(10)))
            if job.attempt == 1:
                raise RuntimeError("begin again")
            return pages

        assert await run(queue, work, attempts=2) == list(range(10))
        assert sorted(seen) == list(range(10))

    @pytest.mark.every_store
    async def test_a_lost_worker_leaves_its_steps_behind(self, queue: Queue):
        calls = Calls()
        hung = asyncio.Event()

        async def work(job: Job) -> Any:
            first = await job.step("first", calls, "first")
            if not hung.is_set():
                hung.set()
                await asyncio.Event().wait()
            return [first, await job.step("second", calls, "second")]

        job = await queue.add("work")
        async with Worker(queue, {"work": work}, grace=0):
            await entered(hung)
            await queue.pause()
            now = await queue.store.clock()
            await queue.store.tick(queue.name, StallRules(), now=now + 600_000)
        await queue.resume()
        async with Worker(queue, {"work": work}):
            assert await job.result(timeout=PATIENCE) == ["first", "second"]

        assert calls.seen == {"first": 1, "second": 1}

    @pytest.mark.parametrize(
        ("function", "value"),
        [
            (a_row, Row(date(2024, 2, 29), 1)),
            (a_page, Page([Row(date(2024, 2, 29), 2)])),
            (an_order, Order(number=3, day=date(2024, 2, 29))),
            (a_day, date(2024, 2, 29)),
        ],
        ids=["dataclass", "struct", "model", "def"],
    )
    async def test_results_have_the_type_that_the_function_says(
        self, queue: Queue, function: Callable[..., Any], value: Any
    ):
        seen: list[Any] = []

        async def work(job: Job) -> None:
            seen.append(await job.step("one", function, date(2024, 2, 29)))
            if job.attempt == 1:
                raise RuntimeError("begin again")

        await run(queue, work, attempts=2)

        assert seen == [value, value]

    async def test_a_result_without_an_annotation_is_json_also_at_once(self, queue: Queue):
        async def work(job: Job) -> None:
            # As a later attempt will see it.
            result: Any = await job.step("one", lambda: (1, {"a": (2,)}))
            assert result == [1, {"a": [2]}]

        await run(queue, work)

    async def test_arguments_by_position_and_name(self, queue: Queue):
        async def add(a: int, *, b: int) -> int:
            return a + b

        async def work(job: Job) -> int:
            return await job.step("add", add, 1, b=2)

        assert await run(queue, work) == 3

    async def test_a_def_function_runs_in_a_thread(self, queue: Queue):
        async def work(job: Job) -> bool:
            return await job.step("where", threading.get_ident) == threading.get_ident()

        assert await run(queue, work) is False

    async def test_a_step_has_attempts_and_a_timeout_of_its_own(self, queue: Queue):
        calls = Calls("a", "a")
        tries: list[float] = []

        async def hang() -> None:
            tries.append(0)
            await asyncio.Event().wait()

        def linger() -> None:
            tries.append(1)
            time.sleep(0.02)

        async def work(job: Job) -> Any:
            for function in (hang, linger):
                with pytest.raises(AttemptTimeout, match=r"0\.01 s"):
                    await job.step(function.__name__, function, attempts=2, timeout=0.01)
            return await job.step("a", calls, "a", attempts=3, timeout=60)

        assert await run(queue, work) == "a"
        assert (calls.seen["a"], tries) == (3, [0, 0, 1, 1])

    @pytest.mark.every_store
    async def test_readers_see_what_was_done(self, queue: Queue):
        job = await queue.add("work")

        async def work(job: Job) -> None:
            await job.step("first", a_row, date(2024, 2, 29))
            await job.step("second", asyncio.sleep, 0.01)

        async with Worker(queue, work):
            await job.result(timeout=PATIENCE)

        first, second = (await job.refresh()).steps
        assert (first.name, first.result, second.name) == ("first", {"day": "2024-02-29", "count": 1}, "second")
        # Loops may round what is left of a sleep.
        assert (second.took or 0) >= 0.009
        assert second.ended_at is not None
        assert first.started_at <= second.ended_at

    @pytest.mark.every_store
    async def test_readers_see_where_it_slept_and_waited(self, queue: Queue):
        job, child = await queue.add("work"), Flow("child")

        async def work(job: Job) -> None:
            await job.sleep(0.2, name="nap")
            await job.gather(child)
            await job.wait_for("payment")
            with pytest.raises(SignalTimeout):
                await job.wait_for("letter", timeout=0.2)
            await job.sleep("1 day")

        async with Worker(queue, {"work": work, "child": echo}):
            async for event in queue.events("start"):
                if event.job_id == job.id and event.name == "delayed":
                    steps = (await job.refresh()).steps
                    if steps[-1].name == "payment" and steps[-1].ended_at is None:
                        await job.signal("payment", {"by": "card"})
                    if len(steps) == 5:
                        break

        nap, gather, payment, letter, day = (await job.refresh()).steps
        assert [each.kind for each in (nap, gather, payment, letter, day)] == [
            "sleep", "gather", "wait", "wait", "sleep",
        ]  # fmt: skip
        assert [each.name for each in (nap, gather, payment, letter, day)] == ["nap", "#1", "payment", "letter", "#1"]
        assert (payment.result, letter.reason) == ({"by": "card"}, "no signal came in time")
        begun = [each.started_at for each in (nap, gather, payment, letter, day)]
        assert begun == sorted(begun)
        assert nap.took == pytest.approx(0.2, abs=0.1)
        assert (letter.took or 0) > 0.1, "since the attempt in which it began"
        assert day.took == pytest.approx(86_400, abs=60)

    async def test_a_retry_by_hand_keeps_them(self, queue: Queue):
        calls = Calls()

        async def work(job: Job) -> Any:
            return await job.step("one", calls)

        async with Worker(queue, work):
            job = await queue.add("work")
            await job.result(timeout=PATIENCE)
            await job.retry(reset=True)
            await told(queue, "completed", job, 2)

        assert calls.seen.total() == 1

    async def test_a_step_is_stored_in_spite_of_a_short_outage(self, tampered_queue: Queue, tampering: Tampering):
        tampering.before["update"] = Outage(2)
        calls = Calls()

        async def work(job: Job) -> Any:
            return await job.step("one", calls, 5)

        assert await run(tampered_queue, work) == 5
        assert calls.seen == {5: 1}


class TestRefusals:
    async def refused(self, queue: Queue, error: type[Exception], match: str, act: Callable[[Job], Any]) -> None:
        async def work(job: Job) -> str:
            with pytest.raises(error, match=match):
                await act(job)
            return "went on"

        assert await run(queue, work) == "went on"

    async def test_what_is_not_a_function(self, queue: Queue):
        answer: Any = 5

        async def called(job: Job) -> None:
            await job.step("page", answer)

        await self.refused(queue, InvalidInput, "a step takes a function, and after it the arguments, not", called)

    async def test_an_async_function_in_a_def_handler(self, queue: Queue):
        fetch: Any = Calls().__call__

        def work(job: SyncJob) -> str:
            with pytest.raises(InvalidInput, match="'page' is async def, and its handler is not"):
                _ = job.step("page", fetch)
            return "went on"

        assert await run(queue, work) == "went on"

    async def test_a_name_that_is_used_twice(self, queue: Queue):
        async def twice(job: Job) -> None:
            await job.step("page", Calls())
            await job.step("page", Calls())

        await self.refused(queue, InvalidInput, "'page' was used twice by this attempt: give each step", twice)

    @pytest.mark.parametrize("name", ["", "a\n", "x" * 300, 5, None])
    async def test_names_that_are_none(self, queue: Queue, name: Any):
        await self.refused(queue, InvalidName, "step name", lambda job: job.step(name, Calls()))

    async def test_results_that_are_not_json_or_too_large(self, queue: Queue, make_queue: MakeQueue):
        await self.refused(queue, InvalidPayload, "result", lambda job: job.step("a", object))
        small = make_queue("small", size_limit=100)
        await self.refused(small, PayloadTooLarge, "result", lambda job: job.step("a", lambda: "x" * 100))

    async def test_options_that_are_none(self, queue: Queue):
        await self.refused(queue, InvalidOption, "attempts", lambda job: job.step("a", Calls(), attempts=0))
        await self.refused(queue, InvalidDuration, "soon", lambda job: job.step("a", Calls(), timeout="soon"))
        await self.refused(queue, InvalidDuration, "soon", lambda job: job.sleep("soon"))
        await self.refused(queue, InvalidName, "signal name", lambda job: job.wait_for(""))

    @pytest.mark.every_store
    async def test_a_stale_token_writes_no_step(self, queue: Queue):
        job = await queue.add("work")
        [claimed] = await Worker(queue).claim()
        await job.cancel()

        with pytest.raises(LockLost):
            await claimed.step("one", Calls())

        assert await steps(job) == []

    async def test_not_once_the_handler_has_ended(self, queue: Queue):
        held: list[Job] = []

        async def keep(job: Job) -> None:
            held.append(job)

        await run(queue, keep)
        calls = Calls()
        with pytest.raises(JobFinished):
            await held[0].step("late", calls, "late")
        assert not calls.seen


class TestSleeping:
    @pytest.mark.every_store
    async def test_the_slot_is_given_back_and_the_handler_begins_again(self, queue: Queue):
        calls = Calls()
        starts: list[int] = []

        async def work(job: Job) -> Any:
            starts.append(job.attempt)
            await job.step("before", calls, "before")
            await job.sleep(0.02)
            await job.sleep(0.02)
            return await job.step("after", calls, "after")

        async with Worker(queue, {"work": work, "echo": echo}, concurrency=1) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("work")
            await ear.hear("delayed", 2)
            assert await job.result(timeout=PATIENCE) == "after"

        assert starts == [1, 1, 1]
        assert calls.seen == {"before": 1, "after": 1}
        assert (await job.refresh()).attempts_made == 0

    async def test_a_named_sleep_is_known_in_another_order(self, queue: Queue):
        async def work(job: Job) -> int:
            if job.record.attempts_started > 1:
                await job.sleep(0)
            await job.sleep(0.01, name="nap")
            return job.record.attempts_started

        assert await run(queue, work) == 2

    @pytest.mark.parametrize("handler", [step_handlers.sleep_to_a_moment, in_process(step_handlers.sleep_to_a_moment)])
    async def test_to_a_moment_in_threads_and_processes(self, queue: Queue, handler: Any):
        moment = datetime.now(UTC) + timedelta(milliseconds=300)
        assert await run(queue, handler, moment.isoformat()) is True

        with pytest.raises(JobFailed, match=r"InvalidDuration.* has no time zone"):
            await run(queue, handler, "2030-01-01T00:00:00")

    @pytest.mark.every_store
    async def test_to_a_moment_in_any_zone(self, queue: Queue):
        moment = (datetime.now(UTC) + timedelta(days=9_000)).astimezone(timezone(timedelta(hours=5, minutes=30)))

        async def work(job: Job) -> None:
            await job.sleep(moment)

        async with Worker(queue, work) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("work")
            await ear.hear("delayed")

        # In whole milliseconds, and as many later as the write takes: the job is given back by how long is left.
        due_at = (await job.refresh()).due_at
        assert due_at is not None
        assert abs(due_at - moment) < timedelta(minutes=1)

    @pytest.mark.parametrize("year", [1, 1960, 2001])
    async def test_to_a_moment_that_has_passed(self, queue: Queue, year: int):
        async def work(job: Job) -> int:
            await job.sleep(datetime(year, 1, 2, tzinfo=UTC))
            return job.record.attempts_started

        assert await run(queue, work) == 1

    async def test_the_moment_of_the_first_attempt_counts(self, queue: Queue):
        async def work(job: Job) -> int:
            first = job.record.attempts_started == 1
            await job.sleep(datetime.now(UTC) + (timedelta(milliseconds=20) if first else timedelta(days=1)))
            return job.record.attempts_started

        assert await run(queue, work) == 2

    async def test_a_moment_without_a_zone_is_refused_as_a_delay_is(self, queue: Queue):
        naive = datetime(2030, 1, 1)  # noqa: DTZ001 - that is the point
        with pytest.raises(InvalidDuration) as of_add:
            await queue.add("work", delay=naive)
        await queue.add("work")
        [claimed] = await Worker(queue).claim()

        with pytest.raises(InvalidDuration) as of_sleep:
            await claimed.sleep(naive)
        assert str(of_sleep.value) == str(of_add.value)

    async def test_a_sleep_that_was_interrupted_lasts_no_longer(self, queue: Queue):
        """The instant is stored: an attempt that fails before it is over waits for the rest only."""
        until: list[int] = []

        async def work(job: Job) -> None:
            await job.sleep("1 day")

        async with Worker(queue, work) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("work")
            await ear.hear("delayed")
            for _ in range(2):
                until.append(int((await queue.store.get(queue.name, [job.id]))[0].marks[0].value))  # type: ignore[union-attr]  # it is there
                await job.promote()
                await ear.hear("delayed", len(until) + 1)

        assert until[0] == until[1]

    async def test_a_job_claimed_by_hand_is_given_back(self, queue: Queue):
        job = await queue.add("work")
        [claimed] = await Worker(queue).claim()

        with pytest.raises(Postponed):
            await claimed.sleep("1 day")

        assert await job.state() == "delayed"
        with pytest.raises(JobFinished):
            await claimed.complete()


class TestSignals:
    @pytest.mark.every_store
    async def test_a_signal_wakes_the_job_that_waits(self, queue: Queue):
        starts: list[int] = []

        async def work(job: Job) -> Any:
            starts.append(job.attempt)
            payment = await job.wait_for("payment")
            again = await job.wait_for("receipt", timeout="3 days")
            return [payment, again]

        async with Worker(queue, {"work": work}) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("work")
            await ear.hear("delayed")
            await queue.signal(job.id, "payment", {"paid": [1, "é"]})
            await ear.hear("delayed", 2)
            await queue.signal(job.id, "receipt")
            assert await job.result(timeout=PATIENCE) == [{"paid": [1, "é"]}, None]

        assert starts == [1, 1, 1]
        assert (await told(queue, "signalled", job)).data == {"name": "payment"}

    async def test_a_handler_that_catches_every_exception_goes_back_all_the_same(self, queue: Queue):
        async def work(job: Job) -> Any:
            try:
                return await job.wait_for("payment")
            except Exception:  # noqa: BLE001 - what handlers do
                return "caught"

        async with Worker(queue, {"work": work}) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("work")
            await ear.hear("delayed")
            await queue.signal(job.id, "payment", 5)
            assert await job.result(timeout=PATIENCE) == 5

    async def test_signals_leave_room_for_steps(self, queue: Queue):
        job = await queue.add("work")
        for number in range(MOST_SIGNALS):
            await queue.signal(job.id, f"signal-{number}")
        await queue.signal(job.id, "signal-0", "another value")

        with pytest.raises(InvalidInput, match="at most 100 signals"):
            await queue.signal(job.id, "one-too-many")

    @pytest.mark.every_store
    async def test_a_signal_that_came_first_is_answered_at_once(self, queue: Queue):
        async def work(job: Job) -> Any:
            return [await job.wait_for("payment", timeout=5), job.record.attempts_started]

        job = await queue.add("work")
        await queue.signal(job.id, "payment", 42)
        async with Worker(queue, work):
            assert await job.result(timeout=PATIENCE) == [42, 1]

    @pytest.mark.every_store
    async def test_one_that_comes_while_the_handler_runs(self, queue: Queue):
        async def work(job: Job) -> Any:
            if job.record.attempts_started == 1:
                await queue.signal(job.id, "payment", 42)
            return await job.wait_for("payment")

        assert await run(queue, work) == 42

    async def test_the_newest_of_a_name_counts(self, queue: Queue):
        job = await queue.add("work")
        for number in range(3):
            await queue.signal(job.id, "payment", number)

        async with Worker(queue, lambda job: job.wait_for("payment")):
            assert await job.result(timeout=PATIENCE) == 2

    @pytest.mark.every_store
    async def test_a_wait_has_a_timeout(self, queue: Queue):
        async def work(job: Job) -> str:
            try:
                await job.wait_for("payment", timeout=0.02)
            except SignalTimeout as late:
                return f"{late.name} {job.record.attempts_started}"
            return "paid"

        assert await run(queue, work) == "payment 2"

    async def test_a_timeout_that_is_not_handled_fails_the_attempt(self, queue: Queue):
        async def work(job: Job) -> None:
            await job.wait_for("payment", timeout=0.01)

        with pytest.raises(JobFailed, match="SignalTimeout: no signal 'payment' came"):
            await run(queue, work)

    async def test_a_signal_of_the_last_moment_counts(self, tampered_queue: Queue, tampering: Tampering):
        """It comes after the claim in which the timeout has passed."""
        queue = tampered_queue

        async def work(job: Job) -> Any:
            if job.record.attempts_started == 2:
                await queue.signal(job.id, "payment", 42)
            return await job.wait_for("payment", timeout=0.01)

        assert await run(queue, work) == 42

    async def test_a_wait_twice_for_one_name_is_refused(self, queue: Queue):
        async def work(job: Job) -> None:
            await job.wait_for("payment")
            with pytest.raises(InvalidInput, match="used twice"):
                await job.wait_for("payment")

        job = await queue.add("work")
        await queue.signal(job.id, "payment")
        async with Worker(queue, work):
            await job.result(timeout=PATIENCE)

    async def test_a_job_that_has_ended_or_is_not_there_gets_none(self, queue: Queue):
        job = await queue.add("work")
        await job.cancel()

        with pytest.raises(InvalidMove):
            await queue.signal(job.id, "payment")
        with pytest.raises(JobNotFound):
            await queue.signal("missing", "payment")

    async def test_a_signal_that_is_none(self, queue: Queue, make_queue: MakeQueue):
        job = await queue.add("work")
        with pytest.raises(InvalidName):
            await queue.signal(job.id, "")
        with pytest.raises(InvalidPayload):
            await queue.signal(job.id, "a", object())
        with pytest.raises(PayloadTooLarge):
            await make_queue(size_limit=10).signal(job.id, "a", "x" * 10)

    def test_without_a_loop(self, queue: Queue):
        job = queue.sync.add("work")

        queue.sync.signal(job.id, "payment", 42)

        [claimed] = Worker(queue).claim_sync()
        assert [mark.name for mark in claimed._claimed.record.marks] == ["signal:payment"]

    async def test_from_a_handle(self, queue: Queue):
        async def work(job: Job) -> Any:
            return await job.wait_for("payment")

        job = await queue.add("work")
        await job.signal("payment", {"euro": 5})
        async with Worker(queue, work):
            assert await job.result(timeout=PATIENCE) == {"euro": 5}
            with pytest.raises(InvalidMove):
                await job.signal("payment")

    def test_from_a_handle_without_a_loop(self, queue: Queue):
        queue.sync.add("work").signal("payment", 42)

        [claimed] = Worker(queue).claim_sync()
        assert [(mark.name, mark.value) for mark in claimed._claimed.record.marks] == [("signal:payment", "42")]

    async def test_a_running_handler_sends_itself_one(self, queue: Queue):
        async def work(job: Job) -> Any:
            await job.signal("payment", 42)
            return job.interruption, await job.wait_for("payment")

        job = await queue.add("work")
        async with Worker(queue, work):
            assert await job.result(timeout=PATIENCE) == [None, 42]

    async def test_a_job_where_its_id_belongs(self, queue: Queue):
        job: Any = await queue.add("work")
        with pytest.raises(InvalidName, match=r"use its id, as in job\.id"):
            await queue.signal(job, "payment")

    async def test_a_job_claimed_by_hand_is_given_back(self, queue: Queue):
        job = await queue.add("work")
        [claimed] = await Worker(queue).claim()

        with pytest.raises(Postponed):
            await claimed.wait_for("payment")
        await queue.signal(job.id, "payment", 42)

        [again] = await Worker(queue).claim()
        assert await again.wait_for("payment") == 42


class TestGathering:
    @pytest.mark.every_store
    async def test_jobs_are_added_once_and_waited_for(self, queue: Queue, make_queue: MakeQueue):
        etl = make_queue("etl")
        starts: list[int] = []

        @queue.task
        async def fetch(day: date) -> Row:
            return Row(day, day.day)

        async def work(job: Job) -> Any:
            starts.append(job.attempt)
            rows = await job.gather(fetch.call(date(2024, 1, 1)), fetch.call(date(2024, 1, 2)))
            others = await job.gather(Flow("echo", "a", queue=etl, children=[Flow("echo", "below")]), Flow("echo"))
            if job.attempt == 1:
                raise RuntimeError("begin again")
            return [[row.count for row in rows], others]

        async with Worker([queue, etl], {"work": work, "echo": echo}):
            job = await queue.add("work", attempts=2)
            assert await job.result(timeout=PATIENCE) == [[1, 2], ["a", None]]

        # It waits twice at most: children may have ended before it asks.
        assert starts in ([1, 1, 1, 2], [1, 1, 2], [1, 2])
        assert (await job.refresh()).children == 4
        assert (await queue.counts())["completed"] + (await etl.counts())["completed"] == 6

    async def test_none_are_none(self, queue: Queue):
        async def work(job: Job) -> Any:
            return await job.gather()

        assert await run(queue, work) == []

    async def test_a_child_that_fails_fails_the_job(self, queue: Queue):
        async def work(job: Job) -> Any:
            return await job.gather(Flow("echo", 1), Flow("echo", "bad", id="bad"))

        with pytest.raises(JobFailed, match="child letters/bad failed: Unrecoverable: no luck"):
            await run(queue, work)

    async def test_unless_the_child_says_otherwise(self, queue: Queue):
        async def work(job: Job) -> Any:
            return await job.gather(Flow("echo", 1), Flow("echo", "bad", on_failure="ignore"))

        assert await run(queue, work) == [1, None]

    async def test_one_that_is_removed_has_the_result_none(self, queue: Queue, make_queue: MakeQueue):
        later = make_queue("later")

        @later.task
        async def count(day: date) -> int:
            return day.day

        async def work(job: Job) -> Any:
            return await job.gather(count.call(date(2024, 1, 1)), Flow("echo", 1))

        async with Worker(queue, {"work": work, "echo": echo}):
            job = await queue.add("work")
            await told(queue, "waiting-children", job)
            [child] = (await later.find("waiting")).jobs
            await child.remove()
            assert await job.result(timeout=PATIENCE) == [None, 1]

    async def test_what_cannot_be_added_is_refused(self, queue: Queue):
        async def work(job: Job) -> str:
            with pytest.raises(InvalidInput, match=r"job\.gather takes"):
                await job.gather(5)  # type: ignore[call-overload]  # the point
            return "went on"

        assert await run(queue, work) == "went on"
        assert (await queue.counts())["waiting"] == 0


def steps_in_thread(job: SyncJob) -> Any:
    """The same as `phase_handlers.steps`."""
    [row] = job.step("first", phase_handlers.note, job.data, "first")
    assert isinstance(row, phase_handlers.Row)
    job.sleep(0.01)
    [other] = job.step("second", phase_handlers.note, job.data, text="second")
    paid = job.wait_for("payment")
    children = job.gather(Flow("echo", "a"), Flow("echo", "b"))
    if job.attempt == 1:
        raise RuntimeError("begin again")
    return [row.name, other.name, paid, children]


def wait_in_vain(job: SyncJob) -> str:
    try:
        job.wait_for("payment", timeout=0.01)
    except TimeoutError as late:
        return str(late)
    return "paid"


class TestThreadsAndProcesses:
    @pytest.mark.parametrize("handler", [steps_in_thread, in_process(phase_handlers.steps)], ids=["thread", "process"])
    async def test_every_call(self, queue: Queue, handler: Any, tmp_path: Path):
        notes = tmp_path / "notes"
        async with Worker(queue, {"work": handler, "echo": echo}):
            job = await queue.add("work", str(notes), attempts=2)
            await told(queue, "delayed", job)
            await queue.signal(job.id, "payment", {"euro": 5})
            assert await job.result(timeout=PATIENCE) == ["first", "second", {"euro": 5}, ["a", "b"]]

        assert notes.read_text() == "first\nsecond\n"
        assert await steps(job) == ["first", "second"]
        assert (await job.refresh()).attempts_made == 1

    @pytest.mark.parametrize(
        "handler", [wait_in_vain, in_process(phase_handlers.wait_in_vain)], ids=["thread", "process"]
    )
    async def test_a_wait_has_a_timeout(self, queue: Queue, handler: Any):
        assert "no signal 'payment' came" in await run(queue, handler)

    async def test_gathered_results_have_their_types_in_a_process(self, make_queue: MakeQueue):
        queue = make_queue("letters")
        queue.task(step_handlers.next_day.function)
        assert await run(queue, in_process(step_handlers.gather_days)) == ["Day", "2024-02-29"]

    async def test_what_is_refused_in_a_process_is_refused_by_the_same_error(self, queue: Queue):
        async with Worker(queue, {"work": in_process(step_handlers.refusals)}):
            job = await queue.add("work")
            assert await job.result(timeout=PATIENCE) == [
                ["InvalidName", "sleep name"],
                ["InvalidName", "signal name"],
                ["PayloadTooLarge", "result of step 'large'"],
                ["DuplicateJob", job.id],
            ]

    async def test_a_step_in_a_thread_has_attempts_and_a_timeout(self, queue: Queue):
        tries: list[int] = []

        def linger() -> None:
            tries.append(1)
            time.sleep(0.02)

        def work(job: SyncJob) -> None:
            with pytest.raises(AttemptTimeout):
                job.step("linger", linger, attempts=2, timeout=0.01)
            with pytest.raises(InvalidInput, match="used twice"):
                job.step("linger", linger)

        await run(queue, work)

        assert tries == [1, 1]


class TestReturnedCoroutines:
    """`lambda job: handle(job, db)` is a `def` handler by its looks: in what it returns, calls are awaited."""

    async def test_a_step_is_awaited_and_stored(self, queue: Queue):
        calls = Calls()

        async def handle(job: Any, db: str) -> Any:
            first = await job.step("first", calls, db)
            second = await job.step("second", sorted, [2, 1])
            if job.attempt == 1:
                raise RuntimeError("begin again")
            return [first, second]

        assert await run(queue, lambda job: handle(job, "db"), attempts=2) == ["db", [1, 2]]
        assert calls.seen == {"db": 1}

    async def test_also_in_a_phase(self, queue: Queue):
        calls = Calls()

        async def handle(job: Any, ctx: Any, db: str) -> Any:
            result = await job.step("first", calls, db)
            await ctx.progress(50)
            if job.attempt == 1:
                raise RuntimeError("begin again")
            return result

        pipeline = Pipeline([Phase("only", lambda job, ctx: handle(job, ctx, "db"))])
        assert await run(queue, pipeline, attempts=2) == "db"
        assert calls.seen == {"db": 1}

    async def test_a_step_that_returns_a_coroutine_in_a_def_handler_is_refused(self, queue: Queue):
        calls = Calls()

        def work(job: SyncJob) -> str:
            with pytest.raises(InvalidInput, match="'page' is async def, and its handler is not"):
                _ = job.step("page", lambda: calls(1))
            return "went on"

        assert await run(queue, work) == "went on"


class TestBetweenAttempts:
    async def test_a_blocking_step_runs_in_a_thread_of_the_worker(self, queue: Queue):
        async def work(job: Job) -> str:
            return await job.step("where", lambda: threading.current_thread().name)

        worker = Worker(queue, work)
        async with worker:
            job = await queue.add("work")
            assert (await job.result(timeout=PATIENCE)).startswith(worker.id)

    async def test_a_gather_with_other_calls_than_before_says_so_and_is_not_retried(self, queue: Queue):
        left = asyncio.Event()

        async def child(job: Job) -> None:
            await left.wait()

        async def parent(job: Job) -> Any:
            numbers = range(2 if job.record.attempts_started == 1 else 3)
            try:
                return await job.gather(*(Flow("child", number) for number in numbers))
            finally:
                left.set()

        async with Worker(queue, {"parent": parent, "child": child}):
            job = await queue.add("parent", attempts=5)
            with pytest.raises(JobFailed, match=r"GatherChanged.* has 3 calls, and added 2 children"):
                await job.result(timeout=PATIENCE)
        assert (await job.refresh()).attempts_made == 1

    async def test_a_timeout_that_leaves_the_handler_is_not_retried_and_by_hand_waits_again(self, queue: Queue):
        async def work(job: Job) -> Any:
            return await job.wait_for("paid", timeout=0.01)

        async with Worker(queue, work):
            job = await queue.add("work", attempts=5)
            with pytest.raises(JobFailed, match="no signal 'paid' came"):
                await job.result(timeout=PATIENCE)
        after = await job.refresh()
        assert (after.attempts_made, after.state) == (1, "failed")

        await job.retry()
        await queue.signal(job.id, "paid", 5)
        async with Worker(queue, work):
            assert await job.result(timeout=PATIENCE) == 5

    @pytest.mark.every_store
    @pytest.mark.parametrize("timeout", [None, "1 day"])
    async def test_a_reader_sees_what_a_job_waits_for(self, queue: Queue, timeout: str | None):
        async def work(job: Job) -> Any:
            return await job.wait_for("paid", timeout=timeout)

        async with Worker(queue, work):
            job = await queue.add("work")
            await told(queue, "delayed", job)
            waits_for = (await job.refresh()).waits_for
            assert waits_for is not None
            assert (waits_for.signal, waits_for.until is None) == ("paid", timeout is None)

            await queue.signal(job.id, "paid", 1)
            await job.result(timeout=PATIENCE)
        assert (await job.refresh()).waits_for is None
