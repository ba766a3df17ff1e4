"""Adding flows: what is stored, which ids are found, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import (
    Backoff,
    Call,
    DuplicateJob,
    Flow,
    FlowHandle,
    InvalidInput,
    InvalidOption,
    JobType,
    Queue,
    SyncFlowHandle,
    connect,
)
from ropeway.errors import InvalidName, InvalidPayload
from ropeway.job.flows import POLICIES, Parent

from .fixtures import MakeQueue


async def states(*jobs: FlowHandle[Any]) -> list[str]:
    return [await job.state() for job in jobs]


async def is_empty(*queues: Queue) -> bool:
    return sum([sum((await queue.counts()).values()) for queue in queues]) == 0


async def parents_of(job: FlowHandle[Any]) -> set[str]:
    return {parent.id for parent in (await job.refresh()).parents}


def notes(error: BaseException) -> str:
    return " ".join(error.__notes__)


class TestTrees:
    @pytest.mark.every_store
    async def test_a_parent_waits_and_the_handle_mirrors_the_tree(self, queue: Queue):
        flow = Flow("report", {"n": 42}, children=[Flow("fetch", 1), Flow("merge", children=[Flow("fetch", 2)])])

        job = await queue.add_flow(flow)

        first, merge = job.children
        [second] = merge.children
        assert (job.name, job.data, job.created) == ("report", {"n": 42}, True)
        assert [child.name for child in (first, merge, second)] == ["fetch", "merge", "fetch"]
        assert await states(job, first, merge, second) == ["waiting-children", "waiting", "waiting-children", "waiting"]
        assert (await first.refresh()).parents == (Parent(queue.name, job.id),)
        assert (await job.refresh()).children == 2

    async def test_handles_show_what_was_added_whatever_becomes_of_the_description(self, queue: Queue):
        fetch = Flow("fetch", {"n": 1})
        flow = Flow("report", children=[fetch])
        first = await queue.add_flow(flow)
        fetch.data, flow.children = {"n": 2}, [Flow("other"), fetch]
        second = await queue.add_flow(flow)

        assert [(child.name, child.data) for child in first.children] == [("fetch", {"n": 1})]
        assert [(child.name, child.data) for child in second.children] == [("other", None), ("fetch", {"n": 2})]
        assert first.children is first.children

    @pytest.mark.every_store
    async def test_children_may_be_in_other_queues(self, queue: Queue, make_queue: MakeQueue):
        etl = make_queue("etl", attempts=4)
        flow = Flow(
            "report",
            children=[
                Flow("by-object", queue=etl, children=[Flow("below")]),
                Flow("by-name", queue="files", children=[Flow("back", queue=queue)]),
                Flow("beside"),
            ],
        )

        job = await queue.add_flow(flow)

        by_object, by_name, beside = job.children
        assert [child.queue.name for child in (by_object, *by_object.children)] == ["etl", "etl"]
        assert [child.queue.name for child in (by_name, *by_name.children, beside)] == ["files", "letters", "letters"]
        assert (await by_object.refresh()).attempts == 4
        assert await states(by_object, by_name, beside) == ["waiting-children", "waiting-children", "waiting"]

    async def test_a_node_takes_every_option(self, queue: Queue):
        job = await queue.add_flow(
            Flow(
                "report",
                priority=3,
                delay=60,
                children=[Flow("fetch", id="own", attempts=3, backoff=Backoff.fixed(1), tags=["db"], delay="1 minute")],
            )
        )

        [child] = job.children
        stored, parent = await child.refresh(), await job.refresh()
        assert (child.id, stored.attempts, stored.tags, stored.state) == ("own", 3, ("db",), "delayed")
        assert (parent.priority, parent.state, parent.due_at) == (3, "waiting-children", None)

    async def test_defaults_of_the_queue_hold_for_its_nodes(self, make_queue: MakeQueue):
        job = await make_queue(attempts=5).add_flow(Flow("report", children=[Flow("fetch"), Flow("fetch", attempts=1)]))

        assert [(await child.refresh()).attempts for child in job.children] == [5, 1]

    @pytest.mark.every_store
    async def test_one_object_under_two_parents_is_one_job(self, queue: Queue):
        shared = Flow("download")
        job = await queue.add_flow(
            Flow("root", children=[Flow("left", children=[shared]), Flow("right", children=[shared, shared])])
        )

        left, right = job.children
        assert left.children[0] is right.children[0]
        assert len(right.children) == 1
        assert await parents_of(left.children[0]) == {left.id, right.id}
        assert (await queue.counts())["waiting"] == 1

    async def test_equal_objects_are_two_jobs(self, queue: Queue):
        job = await queue.add_flow(Flow("root", children=[Flow("fetch", 1), Flow("fetch", 1)]))

        assert len({child.id for child in job.children}) == 2

    async def test_a_flow_without_children_is_a_plain_job(self, queue: Queue):
        job = await queue.add_flow(Flow("send"))

        assert (await job.state(), job.children) == ("waiting", ())

    async def test_calls_and_flows_mix(self, queue: Queue):
        count = JobType("count", int, int)
        job = await queue.add_flow(Flow("root", children=[count.call(5), Flow("fetch")]))

        assert [(child.name, child.data) for child in job.children] == [("count", 5), ("fetch", None)]

    async def test_a_flow_may_be_deep_and_wide(self, queue: Queue):
        chain = Flow("link")
        for _ in range(1_500):
            chain = Flow("link", children=[chain])
        wide = Flow("wide", children=[Flow("leaf") for _ in range(1_500)])

        deep, broad = await queue.add_flows([chain, wide])

        assert (await queue.counts())["waiting-children"] == 1_501
        assert (await broad.refresh()).children == 1_500
        assert len([*(await queue.flow(deep.id, limit=2_000)).walk()]) == 1_501

    @pytest.mark.every_store
    async def test_thousands_of_children_are_added_as_a_whole(self, queue: Queue):
        taken = await queue.add("leaf", 1)
        children = [Flow("leaf") for _ in range(8_999)]
        with pytest.raises(DuplicateJob, match=taken.id):
            await queue.add_flow(Flow("root", children=[*children, Flow("leaf", 2, id=taken.id)]))
        assert sum((await queue.counts()).values()) == 1

        job = await queue.add_flow(Flow("root", children=[*children, Flow("leaf")]))

        assert (await job.children_counts())["pending"] == 9_000
        assert (await queue.counts())["waiting"] == 9_001


class TestPolicies:
    @pytest.mark.parametrize("policy", POLICIES)
    async def test_those_of_the_parent_and_of_a_child(self, queue: Queue, policy: Any):
        job = await queue.add_flow(
            Flow(
                "root",
                on_child_failure=policy,
                children=[
                    Flow("as-the-parent-says"),
                    Flow("leaf", on_child_failure="ignore"),
                    Flow("own", on_failure="continue", on_child_failure="wait"),
                    Flow("inner", on_child_failure="remove", children=[Flow("leaf")]),
                    Flow("inner", on_failure="wait", on_child_failure="remove", children=[Flow("leaf")]),
                ],
            )
        )

        listed = (await queue.children(job.id)).children
        assert [child.policy for child in listed] == [policy, "ignore", "continue", policy, "wait"]
        [inner] = (await queue.children(job.children[4].id)).children
        assert inner.policy == "remove"

    async def test_a_parent_fails_unless_it_is_said_otherwise(self, queue: Queue):
        job = await queue.add_flow(Flow("root", children=[Flow("leaf")]))

        assert [child.policy for child in (await queue.children(job.id)).children] == ["fail"]

    async def test_a_shared_child_has_a_policy_for_each_parent(self, queue: Queue):
        shared = Flow("download")
        job = await queue.add_flow(
            Flow(
                "root",
                children=[
                    Flow("left", children=[shared], on_child_failure="ignore"),
                    Flow("right", children=[shared], on_child_failure="wait"),
                ],
            )
        )

        pages = [await queue.children(child.id) for child in job.children]
        assert [child.policy for page in pages for child in page.children] == ["ignore", "wait"]


class TestIds:
    @pytest.mark.every_store
    async def test_the_same_flow_is_found(self, queue: Queue):
        def flow() -> Flow:
            return Flow("report", 1, id="r", children=[Flow("fetch", id="f"), Flow("fetch")])

        first = await queue.add_flow(flow())
        again = await queue.add_flow(flow())

        assert (first.created, again.created, again.id) == (True, False, "r")
        assert [child.id for child in again.children] == ["f"]
        assert (await queue.counts())["waiting"] == 2

    @pytest.mark.every_store
    async def test_a_flow_that_was_found_gets_no_other_children(self, queue: Queue):
        await queue.add_flow(Flow("report", id="r", children=[Flow("fetch", id="f")]))

        again = await queue.add_flow(Flow("report", id="r", children=[Flow("fetch", id="g")]))

        assert not again.created
        assert (await queue.counts())["waiting"] == 1
        assert [child.id for child in (await queue.children("r")).children] == ["f"]

    @pytest.mark.every_store
    @pytest.mark.parametrize("elsewhere", [False, True])
    async def test_an_id_that_exists_is_refused_and_nothing_is_stored(
        self, queue: Queue, make_queue: MakeQueue, elsewhere: bool
    ):
        other = make_queue("etl") if elsewhere else queue
        await other.add("fetch", id="taken")

        with pytest.raises(DuplicateJob, match="taken") as refused:
            await queue.add_flow(
                Flow("report", children=[Flow("merge", children=[Flow("fetch", id="taken", queue=other)])])
            )

        assert (refused.value.queue, refused.value.job_id) == (other.name, "taken")
        assert "Nothing of the flow was stored" in notes(refused.value)
        assert (await queue.counts())["waiting-children"] == 0

    async def test_a_parents_id_with_other_data_is_refused(self, queue: Queue):
        await queue.add("report", 1, id="r")

        with pytest.raises(DuplicateJob):
            await queue.add_flow(Flow("report", 2, id="r", children=[Flow("fetch")]))

        assert (await queue.counts())["waiting"] == 1

    async def test_two_nodes_with_one_id_are_refused(self, queue: Queue):
        with pytest.raises(InvalidInput, match="two jobs of the flow have the id 'a'"):
            await queue.add_flow(Flow("report", children=[Flow("fetch", id="a"), Flow("fetch", id="a")]))
        assert await is_empty(queue)

    async def test_one_id_in_two_queues_are_two_jobs(self, queue: Queue):
        job = await queue.add_flow(Flow("report", id="a", children=[Flow("fetch", id="a", queue="etl")]))

        assert await states(job, *job.children) == ["waiting-children", "waiting"]


class TestManyFlows:
    @pytest.mark.every_store
    async def test_all_are_added(self, queue: Queue):
        jobs = await queue.add_flows(Flow("report", n, children=[Flow("fetch")]) for n in range(3))

        assert [job.data for job in jobs] == [0, 1, 2]
        assert await states(*jobs) == ["waiting-children"] * 3

    @pytest.mark.every_store
    async def test_or_none(self, queue: Queue):
        await queue.add("fetch", id="taken")

        with pytest.raises(DuplicateJob):
            await queue.add_flows([Flow("report", children=[Flow("fetch")]), Flow("fetch", 2, id="taken")])

        assert (await queue.counts())["waiting-children"] == 0

    @pytest.mark.every_store
    async def test_they_may_share_jobs(self, queue: Queue):
        shared = Flow("download")
        left, right = await queue.add_flows([Flow("left", children=[shared]), Flow("right", children=[shared])])

        assert await parents_of(left.children[0]) == {left.id, right.id}

    async def test_a_child_of_one_may_be_added_beside_it(self, queue: Queue):
        child = Flow("fetch")
        fetch, report = await queue.add_flows([child, Flow("report", children=[child])])

        assert report.children[0].id == fetch.id
        assert await states(fetch, report) == ["waiting", "waiting-children"]

    async def test_none_are_none(self, queue: Queue):
        assert await queue.add_flows([]) == []


class TestBadInput:
    async def test_a_circle_is_refused_and_named(self, queue: Queue):
        first, second, third = Flow("first"), Flow("second"), Flow("third")
        first.children, second.children, third.children = [second], [third], [second]

        with pytest.raises(InvalidInput, match="cannot wait for itself: second -> third -> second"):
            await queue.add_flow(first)
        assert await is_empty(queue)

    async def test_a_child_that_is_its_own_parent_is_refused(self, queue: Queue):
        flow = Flow("loop")
        flow.children.append(flow)

        with pytest.raises(InvalidInput, match="loop -> loop"):
            await queue.add_flow(flow)

    async def test_a_long_circle_is_named_in_short(self, queue: Queue):
        flows = [Flow(f"n{number}") for number in range(50)]
        for above, below in zip(flows, [*flows[1:], flows[0]], strict=True):
            above.children.append(below)

        with pytest.raises(InvalidInput, match=r"n0 -> n1 -> n2 -> n3 -> n4 -> \.\.\. -> n46 .* -> n0$"):
            await queue.add_flow(flows[0])

    @pytest.mark.parametrize("option", ["on_child_failure", "on_failure"])
    @pytest.mark.parametrize("given", ["explode", "FAIL", 5, True, ["fail"]])
    def test_an_unknown_policy_is_refused(self, option: str, given: Any):
        with pytest.raises(InvalidOption, match=option):
            Flow("report", **{option: given})

    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            (Flow("wrong", object()), InvalidPayload),
            (Flow("", 1), InvalidName),
            (Flow("wrong", attempts=0), InvalidInput),
            (Flow("wrong", atempts=3), InvalidOption),  # type: ignore[call-arg]  # the point
            (Flow("wrong", id="no spaces"), InvalidName),
            (Flow("wrong", queue="no spaces"), InvalidName),
            (Flow("wrong", queue=5), InvalidOption),  # type: ignore[arg-type]  # the point
            (Call("wrong", {1, 2}), InvalidPayload),
            (Call("wrong", 1, 5), InvalidInput),  # type: ignore[arg-type]  # the point
            ("fetch", InvalidInput),
            (("fetch", 1), InvalidInput),
            (None, InvalidInput),
        ],
    )
    async def test_a_wrong_node_is_named_and_nothing_is_stored(
        self, queue: Queue, wrong: Any, error: type[InvalidInput]
    ):
        flow = Flow("root", children=[Flow("good"), Flow("merge", children=[Flow("good"), wrong])])

        with pytest.raises(error) as refused:
            await queue.add_flow(flow)

        assert "This is about root -> merge -> " in notes(refused.value)
        assert "which is child 1 of its parent" in notes(refused.value)
        assert await is_empty(queue)

    @pytest.mark.parametrize("given", ["fetch", {"a": 1}, Flow("fetch"), Call("fetch"), 5])
    def test_children_are_a_list(self, given: Any):
        with pytest.raises(InvalidOption, match="children"):
            Flow("report", children=given)

    @pytest.mark.parametrize("given", ["fetch", {"a": 1}, Flow("fetch"), Call("fetch"), 5, None])
    async def test_several_flows_are_a_list(self, queue: Queue, given: Any):
        with pytest.raises(InvalidInput, match="several flows"):
            await queue.add_flows(given)

    @pytest.mark.parametrize("given", ["fetch", 5, None, [Flow("fetch")]])
    async def test_one_flow_is_a_flow(self, queue: Queue, given: Any):
        with pytest.raises(InvalidInput, match="a flow is made of"):
            await queue.add_flow(given)

    async def test_more_than_a_hundred_thousand_nodes_are_refused(self):
        queue = Queue("letters", "memory://")

        with pytest.raises(InvalidInput, match="at most 100,000 jobs"):
            await queue.add_flow(Flow("root", children=[Flow("leaf") for _ in range(100_000)]))

        assert await is_empty(queue)

    async def test_a_queue_of_another_store_is_refused(self, queue: Queue):
        other = Queue("etl", store=connect("memory://"))

        with pytest.raises(InvalidInput, match="in another store"):
            await queue.add_flow(Flow("report", children=[Flow("fetch", queue=other)]))
        assert await is_empty(queue, other)

    @pytest.mark.parametrize("add", ["add_call", "add_many"])
    async def test_a_call_after_others_is_no_single_job(self, queue: Queue, add: str):
        call = Call("report").after(Call("fetch"))

        with pytest.raises(InvalidInput, match="it is a flow"):
            await getattr(queue, add)(call if add == "add_call" else [call])


class TestSync:
    @pytest.mark.every_store
    def test_flows_are_added_read_and_moved_without_a_loop(self, queue: Queue):
        job = queue.sync.add_flow(Flow("report", id="r", children=[Flow("fetch", id="f"), Flow("fetch", queue="etl")]))
        more = queue.sync.add_flows([Flow("report", children=[Flow("fetch")])])

        first, second = job.children
        assert isinstance(first, SyncFlowHandle)
        assert (job.state(), first.state(), second.queue.name) == ("waiting-children", "waiting", "etl")
        assert [one.state() for one in more] == ["waiting-children"]
        assert job.children_counts() == {"pending": 2, "completed": 0, "failed": 0, "cancelled": 0}
        assert (job.children_results(), job.children_failures()) == ({}, {})
        assert [child.id for child in queue.sync.children("r", "pending").children] == [first.id, second.id]
        assert [node.id for node in queue.sync.flow("r").walk()] == ["r", first.id, second.id]
        assert job.cancel(children=True)
        assert (first.state(), second.state()) == ("cancelled", "cancelled")
        job.remove()
        assert queue.sync.get("f") is None

    def test_calls_are_added_without_a_loop(self, queue: Queue):
        count = JobType("count", int, int)
        job = queue.sync.add_flow(count.call(1).after(count.call(2)))

        assert [child.data for child in job.children] == [2]


def test_a_flow_says_what_it_is():
    assert repr(Flow("report", children=[Flow("fetch")])) == "<Flow 'report' with 1 children>"


async def test_a_call_without_a_queue_cannot_add_itself():
    with pytest.raises(InvalidInput, match=r"await queue\.add_flow\(call\)"):
        await JobType("count", int, int).call(1).add()
    with pytest.raises(InvalidInput, match=r"queue\.sync\.add_flow\(call\)"):
        JobType("count", int, int).call(1).add_sync()
