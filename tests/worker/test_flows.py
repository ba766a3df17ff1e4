"""Flows in workers: results in parents, children at run time, and results as parameters, in handlers of every kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ropeway import (
    DuplicateJob,
    Flow,
    InvalidInput,
    InvalidOption,
    Job,
    JobFailed,
    JobFinished,
    JobRemoved,
    LockLost,
    Queue,
    SyncJob,
    Unrecoverable,
    Worker,
    chain,
    in_process,
    result_of,
    results_of,
)
from ropeway.errors import Postponed
from tests.client.fixtures import MakeQueue
from tests.patience import PATIENCE

from . import flow_handlers
from .watching import Ear


async def echo(job: Job) -> Any:
    if job.data == "bad":
        raise Unrecoverable("no luck")
    return job.data


async def run(queue: Queue, flow: Any, handlers: Any, *others: Queue) -> Any:
    async with Worker([queue, *others], {"*": echo, **handlers}):
        job = await queue.add_flow(flow)
        return await job.result(timeout=PATIENCE)


COUNTS = {"pending": 0, "completed": 0, "failed": 0, "cancelled": 0}


async def read_async(job: Job) -> Any:
    return [await job.children_results(), await job.children_failures(), await job.children_counts()]


def read_in_thread(job: SyncJob) -> Any:
    return [job.children_results(), job.children_failures(), job.children_counts()]


class TestReading:
    @pytest.mark.every_store
    @pytest.mark.parametrize(
        "handler",
        [read_async, read_in_thread, in_process(flow_handlers.read_children)],
        ids=["async", "thread", "process"],
    )
    async def test_a_parent_reads_what_became_of_its_children(self, queue: Queue, make_queue: MakeQueue, handler: Any):
        etl = make_queue("etl")
        flow = Flow(
            "report",
            on_child_failure="ignore",
            children=[
                Flow("fetch", {"a": [1, None]}, id="a"),
                Flow("fetch", "bad", id="b", queue=etl),
                Flow("fetch", id="c", queue=etl, remove_on_complete=True),
            ],
        )

        results, failures, counts = await run(queue, flow, {"report": handler}, etl)

        assert results == {"a": {"a": [1, None]}, "c": None}
        assert failures == {"b": "child etl/b failed: Unrecoverable: no luck"}
        assert counts == COUNTS | {"completed": 2, "failed": 1}

    async def test_results_come_in_the_order_of_the_children(self, queue: Queue):
        flow = Flow("report", children=[Flow("fetch", n, id=f"c{n}", priority=-n) for n in range(20)])

        results, _, _ = await run(queue, flow, {"report": read_async})

        assert [*results.values()] == [*range(20)]

    async def test_a_plain_job_has_no_children(self, queue: Queue):
        assert await run(queue, Flow("report"), {"report": read_async}) == [{}, {}, COUNTS]

    @pytest.mark.every_store
    async def test_a_parent_fails_by_its_child(self, queue: Queue):
        flow = Flow("report", children=[Flow("merge", children=[Flow("fetch", "bad", id="b")])])

        with pytest.raises(JobFailed, match="child letters/b failed: Unrecoverable: no luck"):
            await run(queue, flow, {})

    async def test_a_parent_goes_with_its_child(self, queue: Queue):
        with pytest.raises(JobRemoved):
            await run(queue, Flow("report", children=[Flow("fetch", "bad")], on_child_failure="remove"), {})

    async def test_a_parent_starts_at_the_first_failure(self, queue: Queue):
        children = [Flow("fetch", "bad", id="b"), Flow("fetch", id="later", delay="1 day")]

        results = await run(
            queue, Flow("report", children=children, on_child_failure="continue"), {"report": read_async}
        )

        assert results[2] == COUNTS | {"failed": 1, "pending": 1}


async def fan_out_async(job: Job) -> Any:
    shared = Flow("fetch", "shared", id="shared", queue="etl")
    flows = [Flow("fetch", name, id=name, children=[shared]) for name in ("left", "right")]
    if not (await job.children_counts())["completed"]:
        added = await job.add_children(flows, on_child_failure="wait")
        assert [child.id for child in added] == ["left", "right"]
        assert added[0].children[0].id == "shared"
    await job.wait_for_children()
    return [job.attempt, job.record.attempts_started, await job.children_results()]


def fan_out_in_thread(job: SyncJob) -> Any:
    shared = Flow("fetch", "shared", id="shared", queue="etl")
    flows = [Flow("fetch", name, id=name, children=[shared]) for name in ("left", "right")]
    if not job.children_counts()["completed"]:
        added = job.add_children(flows, on_child_failure="wait")
        assert added[0].children[0].id == "shared"
    job.wait_for_children()
    return [job.attempt, job.record.attempts_started, job.children_results()]


class TestChildrenAtRunTime:
    @pytest.mark.every_store
    @pytest.mark.parametrize(
        "handler",
        [fan_out_async, fan_out_in_thread, in_process(flow_handlers.fan_out)],
        ids=["async", "thread", "process"],
    )
    async def test_the_handler_begins_again_when_they_are_done(self, queue: Queue, make_queue: MakeQueue, handler: Any):
        async with Worker(queue, {"*": echo, "split": handler}, concurrency=1) as worker:
            ear = Ear(worker, "waiting-children")
            job = await queue.add("split", id="split", max_starts=2)
            await ear.hear("waiting-children")
            assert await job.state() == "waiting-children"
            async with Worker(make_queue("etl"), echo):
                attempt, starts, results = await job.result(timeout=PATIENCE)

        assert (attempt, starts, results) == (1, 2, {"left": "left", "right": "right"})
        assert (await queue.flow("split")).children[0].children[0].queue == "etl"

    @pytest.mark.parametrize(
        ("policy", "ends"), [("fail", "failed"), ("ignore", "completed"), ("continue", "completed"), ("remove", None)]
    )
    async def test_a_failure_acts_when_the_job_waits(self, queue: Queue, policy: Any, ends: str | None):
        async def split(job: Job) -> str:
            if not (await job.children_counts())["failed"]:
                [child] = await job.add_children([Flow("fetch", "bad", id="bad")], on_child_failure=policy)
                with pytest.raises(JobFailed):
                    await child.result(timeout=PATIENCE)
                await job.wait_for_children()
            return "went on"

        async with Worker(queue, {"fetch": echo, "split": split}):
            job = await queue.add("split")
            if ends == "completed":
                assert await job.result(timeout=PATIENCE) == "went on"
            else:
                with pytest.raises(JobFailed if ends else JobRemoved):
                    await job.result(timeout=PATIENCE)

    async def test_children_that_have_ended_are_not_waited_for(self, queue: Queue):
        async def split(job: Job) -> int:
            [child] = await job.add_children([Flow("fetch", 5)])
            await child.result(timeout=PATIENCE)
            await job.wait_for_children()
            return job.record.attempts_started

        assert await run(queue, Flow("split"), {"split": split}) == 1

    async def test_a_job_without_children_goes_on(self, queue: Queue):
        async def wait(job: Job) -> str:
            await job.wait_for_children()
            return "went on"

        assert await run(queue, Flow("wait"), {"wait": wait}) == "went on"

    @pytest.mark.every_store
    async def test_an_id_that_exists_is_refused_and_nothing_is_stored(self, queue: Queue):
        await queue.add("fetch", id="taken", delay="1 day")

        async def split(job: Job) -> Any:
            with pytest.raises(DuplicateJob, match="taken"):
                await job.add_children([Flow("fetch", id="new"), Flow("fetch", id="taken")])
            return await job.children_counts()

        assert await run(queue, Flow("split"), {"split": split}) == COUNTS
        assert await queue.get("new") is None

    async def test_added_again_with_their_ids_they_are_found(self, queue: Queue):
        async def split(job: Job) -> Any:
            await job.add_children([Flow("fetch", n, id=f"c{n}") for n in range(3)])
            await job.wait_for_children()
            return await job.children_results()

        assert await run(queue, Flow("split"), {"split": split}) == {"c0": 0, "c1": 1, "c2": 2}

    async def test_none_are_none(self, queue: Queue):
        async def split(job: Job) -> Any:
            return await job.add_children([])

        assert await run(queue, Flow("split"), {"split": split}) == []

    async def test_what_cannot_be_added_is_refused(self, queue: Queue):
        async def split(job: Job) -> None:
            circle = Flow("circle")
            circle.children.append(circle)
            for flows, error in (([circle], "circle -> circle"), ("fetch", "several flows"), ([5], "made of Flow")):
                with pytest.raises(InvalidInput, match=error):
                    await job.add_children(flows)  # type: ignore[arg-type]  # the point
            with pytest.raises(InvalidOption, match="on_child_failure"):
                await job.add_children([Flow("fetch")], on_child_failure="explode")  # type: ignore[arg-type]  # the point

        assert await run(queue, Flow("split"), {"split": split}) is None
        assert (await queue.counts())["waiting"] == 0

    async def test_not_once_the_handler_has_ended(self, queue: Queue):
        held: list[Job] = []

        async def keep(job: Job) -> None:
            held.append(job)

        await run(queue, Flow("keep"), {"keep": keep})
        with pytest.raises(JobFinished):
            await held[0].add_children([Flow("fetch")])
        assert (await queue.counts())["waiting"] == 0


class TestByHand:
    @pytest.mark.every_store
    async def test_a_stale_token_adds_nothing(self, queue: Queue):
        job = await queue.add("split")
        [claimed] = await Worker(queue).claim()
        await job.cancel()

        with pytest.raises(LockLost):
            await claimed.add_children([Flow("fetch", id="new")])

        assert await queue.get("new") is None

    @pytest.mark.every_store
    async def test_a_job_is_given_back_until_its_children_end(self, queue: Queue):
        job = await queue.add("split")
        [claimed] = await Worker(queue).claim()
        [child] = await claimed.add_children([Flow("fetch", id="child")])

        with pytest.raises(Postponed):
            await claimed.wait_for_children()

        assert await job.state() == "waiting-children"
        with pytest.raises(JobFinished):
            await claimed.complete()
        [work] = await Worker(queue).claim(10)
        await work.complete(5)
        [again] = await Worker(queue).claim(10)
        await again.wait_for_children()
        assert (again.id, again.attempt, await again.children_results()) == (job.id, 1, {child.id: 5})

    def test_without_a_loop(self, queue: Queue):
        queue.sync.add("split", id="split")
        [claimed] = Worker(queue).claim_sync()
        [child] = claimed.add_children([Flow("fetch", id="child")], on_child_failure="ignore")
        assert (child.state(), claimed.children_counts()["pending"]) == ("waiting", 1)

        with pytest.raises(Postponed):
            claimed.wait_for_children()

        [work] = Worker(queue).claim_sync(10)
        work.fail(Unrecoverable("no luck"))
        [again] = Worker(queue).claim_sync(10)
        again.wait_for_children()
        assert again.children_failures() == {"child": "child letters/child failed: Unrecoverable: no luck"}


class TestInputs:
    @pytest.mark.every_store
    async def test_results_are_given_as_parameters(self, queue: Queue):
        @queue.task
        async def fetch(source: str) -> datetime:
            return datetime(2030, 1, len(source), tzinfo=UTC)

        @queue.task
        def day(at: datetime = result_of(fetch)) -> int:
            return at.day

        @queue.task
        async def days(more: int, ats: list[datetime] = results_of(fetch), *, one: int = result_of(day)) -> list[int]:
            return [more, *(at.day for at in ats), one]

        async with Worker(queue):
            last = day.call().after(fetch.call("ccc"))
            job = await days.call(0).after(fetch.call("a"), last, fetch.call("bb")).add()
            assert await job.result(timeout=PATIENCE) == [0, 1, 2, 3]

    async def test_a_chain_runs_in_its_order(self, queue: Queue):
        @queue.task
        async def start(number: int) -> int:
            return number

        @queue.task
        async def double(number: int = result_of(start)) -> int:
            return 2 * number

        @queue.task
        async def tell(number: int = result_of(double), *, unit: str) -> str:
            return f"{number} {unit}"

        async with Worker(queue):
            job = await chain(start.call(4), double.call(), tell.call(unit="m")).add()
            assert await job.result(timeout=PATIENCE) == "8 m"

    async def test_a_result_that_there_is_not_fails_the_attempt_for_good(self, queue: Queue):
        @queue.task
        async def fetch(source: str) -> int:
            raise Unrecoverable("no luck")

        @queue.task(attempts=5)
        async def double(number: int = result_of(fetch)) -> int:
            return number

        @queue.task
        async def total(numbers: list[int] = results_of(fetch)) -> int:
            return sum(numbers)

        async with Worker(queue):
            job = await double.call().after(fetch.using(id="f").call("a"), on_child_failure="ignore").add()
            with pytest.raises(JobFailed, match=r"'number' takes the result of letters/f, which gave none.*no luck"):
                await job.result(timeout=PATIENCE)
            assert (await job.refresh()).attempts_made == 1
            none = await total.call().after(fetch.call("a"), on_child_failure="ignore").add()
            assert await none.result(timeout=PATIENCE) == 0

    async def test_children_added_at_run_time_are_not_among_the_results(self, queue: Queue):
        @queue.task
        async def fetch(number: int) -> int:
            return number

        @queue.task
        async def total(job: Job, numbers: list[int] = results_of(fetch)) -> list[int]:
            await job.add_children([fetch.using(id="late").call(3)])
            await job.wait_for_children()
            return numbers

        async with Worker(queue):
            job = await total.call().after(fetch.call(1), fetch.call(2)).add()
            assert await job.result(timeout=PATIENCE) == [1, 2]

    async def test_a_job_added_by_name_without_it_is_refused_by_its_worker(self, queue: Queue, make_queue: MakeQueue):
        @queue.task
        async def fetch(number: int) -> int:
            return number

        @queue.task
        async def double(number: int = result_of(fetch)) -> int:
            return number

        async with Worker(queue):
            job = await make_queue().add("double")
            with pytest.raises(JobFailed, match=r"result_of\(fetch\), and the job was added without that one"):
                await job.result(timeout=PATIENCE)


class TestProcesses:
    async def test_tasks_in_processes_take_results(self):
        async with flow_handlers.queue as queue, Worker(queue):
            job = await flow_handlers.double.call().after(flow_handlers.fetch.call("four")).add()
            assert await job.result(timeout=PATIENCE) == 8
            late = await flow_handlers.total.call().after(flow_handlers.fetch.call("a")).add()
            assert await late.result(timeout=PATIENCE) == [[1], 4]
            added = await queue.get("late")
            assert added is not None
            assert added.snapshot.attempts == 2

    async def test_children_have_every_option(self, queue: Queue):
        added = await run(queue, Flow("split"), {"split": in_process(flow_handlers.add_every_option)})

        late = await queue.get("late")
        assert late is not None
        assert (late.snapshot.state, late.snapshot.priority, late.snapshot.lifo) == ("delayed", 2, True)
        assert late.snapshot.due_at == datetime(2040, 1, 1, tzinfo=UTC)
        [early] = (await queue.flow(added[0])).children
        assert (early.name, early.snapshot.data if early.snapshot else None) == ("early", {"a": [1]})

    async def test_what_cannot_be_added_is_refused(self, queue: Queue):
        await queue.add("fetch", id="taken", delay="1 day")

        said = await run(queue, Flow("split"), {"split": in_process(flow_handlers.add_wrongly)})

        wanted = ("circle -> circle", "data", "taken", "attempts", "made of Flow", "several flows")
        assert all(word in text for word, text in zip(wanted, said, strict=True))
        assert (await queue.counts())["waiting"] == 0
