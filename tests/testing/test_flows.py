"""Flows in the tests of applications: what was added, and drained to the end."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ropeway import Flow, InvalidOption, Job, Queue, Unrecoverable, Worker, chain, result_of
from ropeway.job.flows import Child, Parent
from ropeway.testing import FakeStore, added, assert_added, assert_not_added, drain, drain_sync


@pytest.fixture
def etl(store: FakeStore) -> Queue:
    return Queue("etl", store=store)


async def echo(job: Job) -> Any:
    return job.data


async def bad(job: Job) -> Any:
    raise Unrecoverable("no luck")


class TestAdded:
    async def test_a_flow_is_seen_with_its_children(self, queue: Queue, etl: Queue):
        await queue.add_flow(
            Flow("report", id="r", delay=60, children=[Flow("fetch", {"from": "db"}, id="f", queue=etl, attempts=3)])
        )

        report = assert_added(queue, "report", delay=60)
        fetch = assert_added(etl, "fetch", data={"from": "db"}, attempts=3, count=1)
        assert report.children == (Child("etl", "f", "fail"),)
        assert fetch.parents == (Parent("letters", "r"),)
        assert len(added(queue)) == 1

    async def test_typed_calls_are_seen(self, queue: Queue):
        @queue.task
        async def fetch(source: str) -> int:
            return len(source)

        @queue.task
        async def double(number: int = result_of(fetch)) -> int:
            return 2 * number

        await chain(fetch.call("db"), double.call()).add()

        assert_added(double)
        assert_added(fetch, source="db")
        assert (await drain(queue)).completed[-1].result == 4

    async def test_a_flow_that_was_found_is_not_added_again(self, queue: Queue):
        for _ in range(2):
            await queue.add_flow(Flow("report", id="r", children=[Flow("fetch")]))

        assert_added(queue, "report", count=1)
        assert_added(queue, "fetch", count=1)

    async def test_children_at_run_time_are_seen_once(self, queue: Queue, etl: Queue):
        async def split(job: Job) -> Any:
            await job.add_children([Flow("fetch", id="f", queue=etl), Flow("fetch", id="g")])
            await job.wait_for_children()
            return [*await job.children_results()]

        await queue.add("split")
        drained = await drain(Worker([queue, etl], {"split": split, "fetch": echo}))

        assert_added(etl, "fetch", count=1)
        assert_added(queue, "fetch", count=1)
        assert [(one.name, one.ended) for one in drained.attempts] == [
            ("split", "postponed"),
            ("fetch", "completed"),
            ("fetch", "completed"),
            ("split", "completed"),
        ]
        assert drained.completed[-1].result == ["f", "g"]

    async def test_children_that_were_refused_are_not_seen(self, queue: Queue):
        await queue.add("fetch", id="taken", delay=60)

        async def split(job: Job) -> None:
            await job.add_children([Flow("store", id="new"), Flow("fetch", id="taken")])

        await queue.add("split")
        drained = await drain(queue, {"split": split, "fetch": echo}, raise_failures=False)

        assert "taken" in str(drained.failed[0].reason)
        assert_not_added(queue, "store")


class TestDraining:
    async def test_children_run_before_their_parents(self, queue: Queue):
        shared = Flow("download")
        await queue.add_flow(
            Flow("root", children=[Flow("left", children=[shared]), Flow("right", children=[shared], delay="1 hour")])
        )

        drained = await drain(queue, echo)

        assert [one.name for one in drained.completed] == ["download", "left", "right", "root"]
        assert not any(drained.left.values())

    async def test_a_parent_that_failed_by_its_child_was_never_run(self, queue: Queue):
        job = await queue.add_flow(Flow("report", children=[Flow("fetch")]))

        with pytest.raises(Unrecoverable, match="no luck"):
            await drain(queue, {"fetch": bad, "report": echo})

        assert await job.state() == "failed"

    async def test_a_child_in_a_queue_that_is_not_drained_is_left(self, queue: Queue, etl: Queue):
        await queue.add_flow(Flow("report", children=[Flow("fetch", queue=etl)]))

        assert (await drain(queue, echo)).left["waiting-children"] == 1
        assert (await drain(etl, echo)).left["waiting"] == 0
        assert [one.name for one in (await drain(queue, echo)).completed] == ["report"]

    def test_without_a_loop(self, queue: Queue):
        queue.sync.add_flow(Flow("report", children=[Flow("fetch", 5)]))

        assert [one.name for one in drain_sync(queue, echo).completed] == ["fetch", "report"]


class TestTransactions:
    async def test_a_flow_comes_with_the_commit(self, queue: Queue, etl: Queue):
        async with queue.transaction() as tx:
            job = await queue.add_flow(Flow("report", id="r", children=[Flow("fetch", queue=etl)]), tx=tx)
            again = await queue.add_flow(Flow("report", id="r", children=[Flow("fetch", queue=etl)]), tx=tx)
            assert (job.created, again.created) == (True, False)
            assert added(queue) == []

        assert_added(queue, "report", count=1)
        assert_added(etl, "fetch", count=1)
        assert await job.state() == "waiting-children"
        drained = await drain(Worker([queue, etl], echo))
        assert [one.name for one in drained.completed] == ["fetch", "report"]

    async def test_and_not_with_a_rollback(self, queue: Queue):
        with pytest.raises(ZeroDivisionError):
            async with queue.transaction() as tx:
                await queue.add_flow(Flow("report", children=[Flow("fetch")]), tx=tx)
                raise ZeroDivisionError

        assert_not_added(queue)

    def test_without_a_loop(self, queue: Queue):
        with queue.sync.transaction() as tx:
            queue.sync.add_flow(Flow("report", children=[Flow("fetch")]), tx=tx)

        assert len(added(queue)) == 2


def test_with_the_plugin(ropeway_queue: Callable[..., Queue]):
    queue = ropeway_queue("letters")
    queue.sync.add_flow(Flow("report", children=[Flow("fetch")]))

    assert_added(queue, "fetch")
    with pytest.raises(InvalidOption):
        assert_added(queue, "fetch", on_child_failure="fail")
