"""Typed flows: `after`, `chain`, and results as parameters."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import DuplicateJob, Flow, InvalidInput, InvalidOption, Queue, chain, result_of, results_of
from ropeway.errors import InvalidArguments
from ropeway.job.options import Taken
from ropeway.store.contract import Store


class Tasks:
    """Tasks of a queue that take results of each other."""

    def __init__(self, queue: Queue) -> None:
        @queue.task
        async def fetch(source: str) -> int:
            return len(source)

        @queue.task
        async def double(number: int = result_of(fetch)) -> int:
            return 2 * number

        @queue.task(attempts=3)
        async def total(title: str, numbers: list[int] = results_of(fetch)) -> str:
            return f"{title}: {sum(numbers)}"

        self.fetch, self.double, self.total = fetch, double, total


@pytest.fixture
def tasks(queue: Queue) -> Tasks:
    return Tasks(queue)


async def takes(store: Store, queue: Queue, id: str) -> Any:
    [record] = await store.get(queue.name, [id])
    assert record is not None
    return record.read_options().takes


class TestAfter:
    async def test_a_call_is_added_with_those_before_it(self, tasks: Tasks):
        job = await tasks.total.call("sum").after(tasks.fetch.call("db"), tasks.fetch.call("api")).add()

        assert [(child.name, child.data) for child in job.children] == [
            ("fetch", {"source": "db"}),
            ("fetch", {"source": "api"}),
        ]
        assert (await job.refresh()).state == "waiting-children"
        assert (await job.refresh()).attempts == 3

    async def test_more_can_be_said_with_other_policies(self, queue: Queue, tasks: Tasks):
        call = tasks.total.call("sum").after(tasks.fetch.call("db"))
        job = await call.after(tasks.fetch.call("api"), on_child_failure="ignore").add()

        assert [child.policy for child in (await queue.children(job.id)).children] == ["fail", "ignore"]

    async def test_a_call_is_not_changed_by_it(self, tasks: Tasks):
        call = tasks.fetch.call("db")
        call.after(tasks.fetch.call("api"))

        assert (await call.add()).children == ()

    async def test_one_call_before_two_others_is_one_job(self, tasks: Tasks):
        shared = tasks.fetch.call("db")
        left, right = tasks.double.call().after(shared), tasks.double.call().after(shared)
        job = await tasks.fetch.call("root").after(left, right).add()

        one, other = job.children
        assert one.children[0].id == other.children[0].id

    async def test_options_are_those_of_the_tasks(self, tasks: Tasks):
        job = await tasks.total.using(priority=4).call("sum").after(tasks.fetch.using(delay=60).call("db")).add()

        assert (await job.refresh()).priority == 4
        assert await job.children[0].state() == "delayed"

    def test_without_a_loop(self, tasks: Tasks):
        job = tasks.double.call().after(tasks.fetch.call("db")).add_sync()

        assert (job.state(), [child.name for child in job.children]) == ("waiting-children", ["fetch"])

    @pytest.mark.parametrize("given", ["fetch", None, ("fetch", 1)])
    def test_only_calls_come_before(self, tasks: Tasks, given: Any):
        with pytest.raises(InvalidInput, match="argument 1 is"):
            tasks.double.call().after(tasks.fetch.call("db"), given)

    def test_a_task_is_no_call(self, tasks: Tasks):
        with pytest.raises(InvalidInput, match="argument 0 is"):
            tasks.double.call().after(tasks.fetch)  # type: ignore[arg-type]  # the point

    def test_an_unknown_policy_is_refused(self, tasks: Tasks):
        with pytest.raises(InvalidOption, match="on_child_failure"):
            tasks.double.call().after(tasks.fetch.call("db"), on_child_failure="explode")  # type: ignore[arg-type]  # the point


class TestChain:
    async def test_each_runs_after_the_one_before(self, tasks: Tasks):
        job = await chain(tasks.fetch.call("a"), tasks.fetch.call("b"), tasks.double.call()).add()

        [second] = job.children
        [first] = second.children
        assert [one.name for one in (job, second, first)] == ["double", "fetch", "fetch"]
        assert (second.data, first.data, first.children) == ({"source": "b"}, {"source": "a"}, ())

    async def test_of_one_step(self, tasks: Tasks):
        assert (await chain(tasks.fetch.call("a")).add()).children == ()

    async def test_may_be_long(self, queue: Queue, tasks: Tasks):
        await chain(*[tasks.fetch.call("a") for _ in range(1_000)]).add()

        assert (await queue.counts())["waiting-children"] == 999

    def test_of_nothing_is_refused(self):
        with pytest.raises(InvalidInput, match="at least one"):
            chain()

    @pytest.mark.parametrize("given", ["fetch", None])
    def test_of_other_things_is_refused(self, tasks: Tasks, given: Any):
        with pytest.raises(InvalidInput):
            chain(tasks.fetch.call("a"), given)


class TestInputs:
    async def test_a_parameter_is_taken_from_the_job_of_its_task(self, queue: Queue, store: Store, tasks: Tasks):
        fetched = tasks.fetch.using(id="f").call("db")
        job = await tasks.double.call().after(tasks.total.call("x", [1]), fetched).add()

        assert (job.data, await takes(store, queue, job.id)) == ({}, {"number": Taken(False, (("letters", "f"),))})

    async def test_results_of_all_children_are_not_listed(self, queue: Queue, store: Store, tasks: Tasks):
        job = await tasks.total.call("sum").after(tasks.fetch.call("db"), tasks.fetch.call("api")).add()

        assert await takes(store, queue, job.id) == {"numbers": Taken(True, None, 2)}

    async def test_a_value_that_is_given_is_not_taken(self, queue: Queue, store: Store, tasks: Tasks):
        job = await tasks.double.call(5).after(tasks.fetch.call("db")).add()

        assert (job.data, await takes(store, queue, job.id)) == ({"number": 5}, None)
        assert (await tasks.double.add(5)).data == {"number": 5}

    async def test_a_job_alone_is_refused(self, queue: Queue, tasks: Tasks):
        with pytest.raises(InvalidInput, match=r"double\.call\(\.\.\.\)\.after\(fetch\.call\(\.\.\.\)\)\.add\(\)"):
            await tasks.double.add()
        with pytest.raises(InvalidInput, match="takes the result of 'fetch'"):
            await queue.add_many([tasks.double.call()])
        with pytest.raises(InvalidInput, match="no such job is before it"):
            await tasks.double.call().add()
        with pytest.raises(InvalidInput, match="no such job is before it"):
            await queue.add_flow(tasks.double.call().after(tasks.total.call("x", [1])))
        assert (await queue.counts())["waiting"] == 0

    async def test_one_result_of_several_is_refused(self, tasks: Tasks):
        with pytest.raises(InvalidInput, match=r"let it take results_of\(fetch\)"):
            await tasks.double.call().after(tasks.fetch.call("a"), tasks.fetch.call("b")).add()

    async def test_a_job_of_that_name_in_another_queue_is_another(self, make_queue: Any, tasks: Tasks):
        other = Tasks(make_queue("etl"))

        with pytest.raises(InvalidInput, match="no such job is before it"):
            await tasks.double.call().after(other.fetch.call("a")).add()

    @pytest.mark.parametrize("given", ["fetch", None, len])
    @pytest.mark.parametrize("function", [result_of, results_of])
    def test_only_tasks_have_results(self, function: Any, given: Any):
        with pytest.raises(InvalidInput, match=rf"{function.__name__} takes a task"):
            function(given)

    def test_a_value_of_another_type_is_refused(self, tasks: Tasks):
        with pytest.raises(InvalidArguments):
            tasks.double.call("five")  # type: ignore[arg-type]  # the point

    def test_the_default_says_what_it_is(self, tasks: Tasks):
        assert str(tasks.total.signature.arguments) == "(title, numbers=results_of(fetch))"


class TestByName:
    async def test_a_task_that_takes_a_result_is_not_added_alone(self, queue: Queue, tasks: Tasks):
        with pytest.raises(InvalidInput, match="takes the result of 'fetch' as 'number'"):
            await queue.add("double")
        assert sum((await queue.counts()).values()) == 0

    async def test_a_flow_by_names_fills_it_too(self, queue: Queue, store: Store, tasks: Tasks):
        job = await queue.add_flow(Flow("double", children=[Flow("fetch", {"source": "db"})]))

        assert [*await takes(store, queue, job.id)] == ["number"]

    async def test_a_value_can_be_given_instead(self, queue: Queue, tasks: Tasks):
        assert (await queue.add("double", {"number": 4})).data == {"number": 4}


class TestMistakes:
    async def test_a_call_that_is_awaited_says_that_it_is_not_added(self, tasks: Tasks):
        with pytest.raises(InvalidInput, match=r"<Call 'fetch' of '\w+'> is not added yet: use `await call.add\(\)`"):
            await tasks.fetch.call("db")

    async def test_a_call_is_no_task(self, tasks: Tasks):
        with pytest.raises(InvalidInput, match="result_of takes a task"):
            result_of(tasks.fetch.call("db"))  # type: ignore[arg-type]  # that is the mistake

    async def test_a_task_instead_of_a_name_leads_to_its_call(self, queue: Queue, tasks: Tasks):
        with pytest.raises(InvalidInput, match=r"use fetch\.call\(\.\.\.\)"):
            await queue.add_flow(Flow(tasks.fetch, {"source": "db"}))  # type: ignore[arg-type]  # that is the mistake

    async def test_a_job_that_exists_cannot_become_a_child(self, queue: Queue):
        await queue.add("fetch", 1, id="there")
        with pytest.raises(DuplicateJob, match="cannot become a child"):
            await queue.add_flow(Flow("sum", children=[Flow("fetch", 1, id="there")]))
