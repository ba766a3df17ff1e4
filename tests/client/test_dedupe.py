"""Dedupe keys as applications use them: what a second add finds, mode by mode."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import Dedupe, Flow, InvalidInput, Job, Queue, Worker
from ropeway.errors import InvalidName, InvalidOption
from ropeway.job.dedupe import SUPERSEDED
from tests.patience import PATIENCE
from tests.worker.watching import Gate, entered, told

from .fixtures import MakeQueue


async def waiting(queue: Queue) -> list[Any]:
    return [job.data for job in (await queue.find("waiting", "delayed")).jobs]


class TestUntilFinal:
    @pytest.mark.every_store
    async def test_a_second_add_finds_the_first_job_whatever_its_data(self, queue: Queue):
        first = await queue.add("send", {"n": 1}, dedupe="user:7")
        second = await queue.add("send", {"n": 2}, dedupe=Dedupe("user:7"))

        assert (first.created, first.deduplicated) == (True, False)
        assert (second.id, second.created, second.deduplicated) == (first.id, False, True)
        assert await waiting(queue) == [{"n": 1}]
        event = await told(queue, "deduplicated")
        assert event.job_id == first.id

    @pytest.mark.every_store
    @pytest.mark.parametrize("fails", [False, True])
    async def test_when_the_job_is_final_the_key_is_free(self, queue: Queue, fails: bool):
        async def handle(job: Job) -> None:
            if fails:
                raise ValueError("no luck")

        first = await queue.add("send", dedupe="k")
        async with Worker(queue, handle):
            await told(queue, "failed" if fails else "completed", first)
        again = await queue.add("send", dedupe="k")

        assert again.created
        assert again.id != first.id

    async def test_keys_are_those_of_one_queue(self, queue: Queue, make_queue: MakeQueue):
        await queue.add("send", dedupe="k")

        assert (await make_queue("elsewhere").add("send", dedupe="k")).created

    async def test_a_removed_or_cancelled_job_frees_its_key(self, queue: Queue):
        for end in ("remove", "cancel"):
            job = await queue.add("send", dedupe="k")
            await getattr(queue, end)(job.id)
            assert await queue.dedupe_holder("k") is None

    @pytest.mark.every_store
    async def test_of_many_at_once_one_is_created(self, queue: Queue):
        jobs = await asyncio.gather(*(queue.add("send", n, dedupe="k") for n in range(50)))

        assert sum(job.created for job in jobs) == 1
        assert len({job.id for job in jobs}) == 1

    async def test_the_key_is_shown_with_the_job(self, queue: Queue):
        job = await queue.add("send", dedupe="k")

        assert (await job.refresh()).dedupe == "k"


class TestByData:
    @pytest.mark.every_store
    async def test_the_order_of_keys_does_not_matter(self, queue: Queue):
        first = await queue.add("send", {"a": 1, "b": {"c": 2, "d": 3}}, dedupe=Dedupe.by_data())
        same = await queue.add("send", {"b": {"d": 3, "c": 2}, "a": 1}, dedupe=Dedupe.by_data())
        other = await queue.add("send", {"a": 1, "b": {"c": 2, "d": 4}}, dedupe=Dedupe.by_data())

        assert (same.id, same.deduplicated) == (first.id, True)
        assert other.created

    async def test_another_name_is_another_key(self, queue: Queue):
        await queue.add("send", 1, dedupe=Dedupe.by_data())

        assert (await queue.add("fetch", 1, dedupe=Dedupe.by_data())).created

    async def test_a_task_is_deduplicated_by_its_arguments(self, queue: Queue):
        @queue.task(dedupe=Dedupe.by_data("throttle", ttl="1 hour"))
        async def resize(path: str, width: int = 800) -> None: ...

        first = await resize.add("a.png", width=100)

        assert (await resize.add(width=100, path="a.png")).id == first.id
        assert (await resize.add("a.png", width=200)).created

    async def test_large_numbers_are_told_apart(self, queue: Queue):
        first = await queue.add("send", 2**64 - 1, dedupe=Dedupe.by_data())
        other = await queue.add("send", 2**64 - 2, dedupe=Dedupe.by_data())

        assert first.id != other.id


class TestThrottle:
    @pytest.mark.every_store
    async def test_it_runs_once_in_its_time_whatever_becomes_of_the_job(self, queue: Queue):
        throttled = Dedupe("k", "throttle", ttl="1 hour")
        first = await queue.add("send", dedupe=throttled)
        async with Worker(queue, _nothing):
            await first.result(timeout=PATIENCE)
        second = await queue.add("send", dedupe=throttled)

        assert (second.id, second.deduplicated) == (first.id, True)

    @pytest.mark.every_store
    async def test_when_its_time_is_over_the_next_is_created(self, queue: Queue):
        first = await queue.add("send", dedupe=Dedupe("k", "throttle", ttl=0.001))
        async with asyncio.timeout(PATIENCE):
            while not (again := await queue.add("send", dedupe=Dedupe("k", "throttle", ttl="1 hour"))).created:
                pass

        assert again.id != first.id


class TestDebounce:
    @pytest.mark.every_store
    async def test_the_delayed_job_gets_the_newest_data_and_begins_again_to_wait(self, queue: Queue):
        first = await queue.add("send", {"n": 1}, dedupe=Dedupe("k", "debounce", ttl="1 hour"))
        due = (await first.refresh()).due_at
        second = await queue.add("send", {"n": 2}, dedupe=Dedupe("k", "debounce", ttl="2 hours"))
        snapshot = await first.refresh()

        assert (second.id, second.deduplicated) == (first.id, True)
        assert (snapshot.state, snapshot.data) == ("delayed", {"n": 2})
        assert due is not None
        assert snapshot.due_at is not None
        assert snapshot.due_at > due

    @pytest.mark.every_store
    async def test_it_runs_with_the_newest_data_when_nobody_adds_any_more(self, queue: Queue):
        for number in range(5):
            job = await queue.add("send", number, dedupe=Dedupe("k", "debounce", ttl=0.05))
        async with Worker(queue, _answer):
            assert await job.result(timeout=PATIENCE) == 4

    async def test_its_delay_is_its_ttl(self, queue: Queue):
        with pytest.raises(InvalidOption, match=r"delay.*given by the ttl"):
            await queue.add("send", delay=5, dedupe=Dedupe("k", "debounce", ttl=1))


class TestKeepLast:
    @pytest.mark.every_store
    async def test_one_runs_and_one_waits_with_the_newest_data(self, queue: Queue):
        gate, last = Gate(), Dedupe("k", "keep-last")
        async with Worker(queue, gate, concurrency=5):
            first = await queue.add("send", 1, dedupe=last)
            await entered(gate.entered)
            followers = [await queue.add("send", number, dedupe=last) for number in (2, 3, 4)]
            assert [job.created for job in followers] == [True, False, False]
            assert len({job.id for job in followers}) == 1
            assert await waiting(queue) == [4]
            assert gate.running == [1]

            gate.opened.set()
            await followers[0].result(timeout=PATIENCE)
        assert (gate.runs, gate.most) == (2, 1)
        assert (await first.refresh()).state == "completed"

    async def test_while_it_waits_it_gets_the_newest_data(self, queue: Queue):
        for number in range(3):
            await queue.add("send", number, dedupe=Dedupe("k", "keep-last"))

        assert await waiting(queue) == [2]


class TestSupersede:
    @pytest.mark.every_store
    async def test_the_running_one_is_cancelled_and_the_new_one_runs(self, queue: Queue):
        gate, newest = Gate(), Dedupe("k", "supersede")
        async with Worker(queue, gate, concurrency=5):
            first = await queue.add("send", 1, dedupe=newest)
            await entered(gate.entered)
            second = await queue.add("send", 2, dedupe=newest)
            event = await told(queue, "cancelled", first)
            assert second.created
            async with asyncio.timeout(PATIENCE):
                while gate.running != [2]:  # noqa: ASYNC110 - the first is told to stop
                    await asyncio.sleep(0.005)
            gate.opened.set()
            await second.result(timeout=PATIENCE)

        assert event.data["reason"] == SUPERSEDED + second.id
        assert (await first.refresh()).state == "cancelled"


class TestHolders:
    @pytest.mark.every_store
    async def test_the_job_that_holds_a_key_can_be_asked_for(self, queue: Queue):
        job = await queue.add("send", {"n": 1}, dedupe="k")
        holder = await queue.dedupe_holder("k")

        assert holder is not None
        assert (holder.id, holder.data) == (job.id, {"n": 1})
        assert await queue.dedupe_holder("other") is None

    @pytest.mark.every_store
    async def test_a_released_key_is_free_and_its_job_goes_on(self, queue: Queue):
        job = await queue.add("send", dedupe="k")

        assert await queue.release_dedupe("k") is True
        assert await queue.release_dedupe("k") is False
        assert (await queue.add("send", dedupe="k")).created
        assert await job.state() == "waiting"

    async def test_code_without_a_loop_can_ask_too(self, queue: Queue):
        def use() -> None:
            job = queue.sync.add("send", dedupe="k")
            holder = queue.sync.dedupe_holder("k")
            assert holder is not None
            assert holder.id == job.id
            assert queue.sync.add("send", dedupe="k").deduplicated
            assert queue.sync.release_dedupe("k")

        await asyncio.to_thread(use)

    @pytest.mark.parametrize("key", ["", None, 5, "x" * 256, "a\nb"])
    async def test_what_is_no_key_is_refused(self, queue: Queue, key: Any):
        for call in (queue.dedupe_holder, queue.release_dedupe):
            with pytest.raises(InvalidName, match="dedupe key"):
                await call(key)


class TestBulk:
    @pytest.mark.every_store
    async def test_jobs_of_one_call_find_each_other(self, queue: Queue):
        jobs = await queue.add_many([("send", n, {"dedupe": f"k-{n % 3}"}) for n in range(9)])

        assert [job.created for job in jobs] == [True] * 3 + [False] * 6
        assert [job.deduplicated for job in jobs] == [False] * 3 + [True] * 6
        assert await waiting(queue) == [0, 1, 2]

    async def test_the_key_of_a_queue_is_a_default_of_its_jobs(self, make_queue: MakeQueue):
        queue = make_queue(dedupe=Dedupe.by_data())
        first, same, other = await queue.add_many([("send", 1), ("send", 1), ("send", 2)])

        assert (first.id == same.id, other.created) == (True, True)
        assert (await queue.add("send", 1, dedupe=None)).created

    async def test_an_id_of_ones_own_is_looked_at_before_the_key(self, queue: Queue):
        first = await queue.add("send", 1, id="mine", dedupe="k")
        again = await queue.add("send", 1, id="mine", dedupe="k")

        assert (again.id, again.created, again.deduplicated) == (first.id, False, False)


class TestFlows:
    @pytest.mark.every_store
    async def test_the_first_job_of_a_flow_may_have_a_key(self, queue: Queue):
        flow = Flow("report", dedupe="k", children=[Flow("part"), Flow("part")])
        first = await queue.add_flow(flow)
        again = await queue.add_flow(flow)

        assert (first.created, len(first.children)) == (True, 2)
        assert (again.id, again.created, again.deduplicated) == (first.id, False, True)
        assert (await queue.counts())["waiting"] == 2

    async def test_other_jobs_of_it_may_not(self, queue: Queue):
        with pytest.raises(InvalidOption, match=r"dedupe.*first job of a flow"):
            await queue.add_flow(Flow("report", children=[Flow("part", dedupe="k")]))

    @pytest.mark.parametrize("mode", ["debounce", "keep-last", "supersede"])
    async def test_modes_that_change_jobs_are_not_for_flows(self, queue: Queue, mode: Any):
        dedupe = Dedupe("k", mode, ttl=1 if mode == "debounce" else None)
        with pytest.raises(InvalidOption, match="until-final or throttle"):
            await queue.add_flow(Flow("report", dedupe=dedupe, children=[Flow("part")]))


@pytest.mark.parametrize("dedupe", [5, True, b"k", ["k"], {"id": "k"}, object()])
async def test_what_is_no_dedupe_is_refused(queue: Queue, dedupe: Any):
    with pytest.raises(InvalidInput, match="dedupe"):
        await queue.add("send", dedupe=dedupe)


@pytest.mark.parametrize("option", ["unique", "unique_key", "deduplication"])
async def test_names_of_other_queues_lead_to_it(queue: Queue, option: str):
    with pytest.raises(InvalidOption, match="did you mean 'dedupe'"):
        await queue.add("send", **{option: "k"})  # type: ignore[arg-type]


async def _nothing(_: Job) -> None: ...


async def _answer(job: Job) -> Any:
    return job.data
