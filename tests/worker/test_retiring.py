"""Retention of a queue in two stages: what its workers do, and whom they call."""

from __future__ import annotations

import pytest

from ropeway import InvalidOption, Queue, Worker
from tests.client.fixtures import MakeQueue

from .callbacks import Callback, handle
from .watching import Gate


@pytest.mark.every_store
async def test_callbacks_are_called_for_each_job_with_all_that_is_known_of_it(queue: Queue):
    stale, deleted = Callback(), Callback()
    await queue.set_retention(stale_after=0.001, delete_after=0.2)
    async with Worker(queue, handle, on_stale=stale, on_delete=deleted, stalled_interval=0.05):
        sent = await queue.add("send", "you")
        failed = await queue.add("fail", "me")
        jobs = {job.id: job for job in [await stale.next(), await stale.next()]}
        gone = {job.id: job for job in [await deleted.next(), await deleted.next()]}

    assert (jobs[sent.id].name, jobs[sent.id].data, jobs[sent.id].state) == ("send", "you", "completed")
    assert (jobs[sent.id].queue, jobs[sent.id].result, jobs[sent.id].reason) == (queue.name, "sent to you", None)
    assert (jobs[failed.id].state, jobs[failed.id].attempts_made) == ("failed", 1)
    assert jobs[failed.id].reason == "ValueError: no luck"
    assert gone == jobs
    assert await queue.get(sent.id) is None
    assert (stale.calls, deleted.calls) == (2, 2)


async def test_it_goes_on_while_handlers_take_every_slot(queue: Queue):
    gate, stale = Gate(), Callback()
    async with Worker(queue, {"send": handle, "hold": gate}, concurrency=1, on_stale=stale, stalled_interval=0.05):
        sent = await queue.add("send", "you")
        await queue.add("hold")
        await gate.holds(1)
        await queue.set_retention(stale_after=0.001)
        try:
            assert (await stale.next()).id == sent.id
        finally:
            gate.opened.set()


class TestRefusals:
    @pytest.mark.parametrize("option", ["on_stale", "on_delete"])
    async def test_what_is_no_function(self, queue: Queue, option: str):
        with pytest.raises(InvalidOption, match=option):
            Worker(queue, handle, **{option: "log"})  # type: ignore[arg-type]  # a mistake

    async def test_a_queue_whose_name_leaves_no_room(self, make_queue: MakeQueue):
        queue = make_queue("x" * 120)

        with pytest.raises(InvalidOption, match="too long for callbacks, by 8 characters"):
            Worker(queue, handle, on_stale=Callback())

    async def test_jobs_that_would_be_deleted_before_they_are_stale(self, queue: Queue):
        with pytest.raises(InvalidOption, match="'delete_after' cannot be less than stale_after"):
            await queue.set_retention(stale_after="2 days", delete_after="1 day")

    async def test_an_age_of_nothing(self, queue: Queue):
        with pytest.raises(InvalidOption, match="'stale_after' cannot be 0: use at least 1 ms, or None for never"):
            await queue.set_retention(stale_after=0)
