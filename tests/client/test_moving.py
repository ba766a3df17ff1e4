"""Moving one job by hand: what happens, and what is refused with the state that stood in the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ropeway import InvalidInput, InvalidMove, JobNotFound, PayloadTooLarge, Queue
from ropeway.errors import InvalidDuration, InvalidOption, InvalidPayload
from ropeway.job.states import FINAL, State
from ropeway.store.contract import Store
from ropeway.testing.arrange import ARRANGED, active, completed, delayed, failed, job_in, read

from .fixtures import MakeQueue

CALLS: dict[str, tuple[Any, set[State]]] = {
    "cancel": (lambda queue, id: queue.cancel(id), {"waiting", "waiting-children", "delayed", "active", "cancelled"}),
    "retry by hand": (lambda queue, id: queue.retry(id), {*FINAL}),
    "promote": (lambda queue, id: queue.promote(id), {"delayed"}),
    "remove": (lambda queue, id: queue.remove(id), {*ARRANGED} - {"active"}),
    "change priority": (lambda queue, id: queue.change(id, priority=1), {"waiting", "waiting-children", "delayed"}),
    "change lifo": (lambda queue, id: queue.change(id, lifo=True), {"waiting", "waiting-children", "delayed"}),
    "change delay": (lambda queue, id: queue.change(id, delay=5), {"delayed"}),
    "change data": (lambda queue, id: queue.change(id, data=1), {"waiting", "waiting-children", "delayed", "active"}),
    "report progress": (
        lambda queue, id: queue.report_progress(id, 1),
        {"waiting", "waiting-children", "delayed", "active"},
    ),
}
"""What can be asked of a job, and the states in which it is done."""


@pytest.mark.every_store
@pytest.mark.parametrize("state", ARRANGED)
async def test_every_move_is_made_or_refused_by_the_state_of_the_job(queue: Queue, store: Store, state: State):
    for name, (call, allowed) in CALLS.items():
        record = await job_in(state, store, now=await store.clock())
        if state in allowed:
            await call(queue, record.id)
        else:
            with pytest.raises(InvalidMove) as refused:
                await call(queue, record.id)
            told = refused.value
            assert (told.queue, told.job_id, told.state) == (queue.name, record.id, state), name
            assert state in str(told)
            assert set(told.allowed) >= allowed - {"cancelled"}, name
            assert state not in told.allowed, name
            assert told.allowed[0] in str(told)
            assert await read(store, record.id) == record, "nothing happened"
        await store.remove(queue.name, [record.id], force=True)


async def test_every_move_of_a_job_that_is_not_there_says_so(queue: Queue):
    for call, _ in CALLS.values():
        with pytest.raises(JobNotFound):
            await call(queue, "nobody")


async def test_cancel_ends_the_job_and_keeps_the_reason(queue: Queue):
    job = await queue.add("send")
    assert await job.cancel("not needed") is True
    seen = await job.refresh()
    assert (seen.state, seen.reason) == ("cancelled", "not needed")
    assert seen.finished_at is not None


async def test_a_second_cancel_says_that_it_was_cancelled_before(queue: Queue):
    job = await queue.add("send")
    assert [await job.cancel("first"), await job.cancel("second")] == [True, False]
    assert (await job.refresh()).reason == "first"


@pytest.mark.every_store
async def test_cancelling_a_running_job_revokes_its_lock(queue: Queue, store: Store):
    record = await active(store, now=await store.clock())
    cursor = (await store.revoked(queue.name)).cursor
    await queue.cancel(record.id)
    revoked = (await store.revoked(queue.name, cursor)).locks
    assert [(lock.id, lock.token) for lock in revoked] == [(record.id, record.token)]


@pytest.mark.parametrize("reason", [5, b"bytes", ["a"], "\ud800", "x" * 2_000])
async def test_a_reason_that_no_store_can_keep_is_refused(queue: Queue, reason: Any):
    job = await queue.add("send")
    with pytest.raises(InvalidInput, match="reason"):
        await job.cancel(reason)
    assert await job.state() == "waiting"


async def test_a_reason_may_hold_any_text(queue: Queue):
    job = await queue.add("send")
    await job.cancel("é\n\x00' --")
    assert (await job.refresh()).reason == "é\n\\x00' --"


async def test_retry_lets_a_finished_job_run_once_more(queue: Queue, store: Store):
    record = await failed(store, now=await store.clock())
    await queue.retry(record.id)
    seen = await read(store, record.id)
    assert (seen.state, seen.attempts_made, seen.reason, seen.finished_at) == ("waiting", 1, None, None)


async def test_retry_with_reset_gives_all_attempts_again(queue: Queue, store: Store):
    record = await failed(store, now=await store.clock())
    await queue.retry(record.id, reset=True)
    seen = await read(store, record.id)
    assert (seen.attempts_made, seen.attempts_started, seen.stalled_count) == (0, 0, 0)


async def test_a_reset_must_be_meant(queue: Queue, store: Store):
    record = await failed(store, now=await store.clock())
    not_meant: Any = "no"
    with pytest.raises(InvalidOption, match="reset"):
        await queue.retry(record.id, reset=not_meant)
    with pytest.raises(InvalidOption, match="reset"):
        await queue.retry_all(reset=not_meant)
    assert await read(store, record.id) == record


async def test_a_job_that_is_retried_stands_where_it_always_stood(queue: Queue, store: Store):
    record = await completed(store, now=await store.clock())
    newer = await queue.add("send")
    await queue.retry(record.id)
    assert [job.id for job in (await queue.find("waiting")).jobs] == [record.id, newer.id]


async def test_promote_ends_a_delay(queue: Queue):
    job = await queue.add("send", delay="1 day")
    await job.promote()
    assert await job.state() == "waiting"


async def test_an_active_job_is_removed_only_by_force(queue: Queue, store: Store):
    record = await active(store, now=await store.clock())
    with pytest.raises(InvalidMove, match="active"):
        await queue.remove(record.id)
    await queue.remove(record.id, force=True)
    assert await queue.get(record.id) is None


@pytest.mark.parametrize("force", ["no", 1, None])
async def test_force_must_be_meant(queue: Queue, store: Store, force: Any):
    record = await active(store, now=await store.clock())
    with pytest.raises(InvalidOption, match="force"):
        await queue.remove(record.id, force=force)
    with pytest.raises(InvalidOption, match="force"):
        await queue.obliterate(force=force)
    assert await read(store, record.id) == record
    assert not (await queue.settings()).paused


async def test_a_changed_priority_changes_the_place_in_the_line(queue: Queue):
    first, second, third = [await queue.add("send") for _ in range(3)]
    await queue.change(third.id, priority=-1)
    await queue.change(second.id, lifo=True)
    assert [job.id for job in (await queue.find("waiting")).jobs] == [third.id, second.id, first.id]
    await queue.change(second.id, lifo=False)
    await queue.change(third.id, priority=0)
    assert [job.id for job in (await queue.find("waiting")).jobs] == [first.id, second.id, third.id]


async def test_a_changed_delay_counts_from_now_or_is_an_instant(queue: Queue, store: Store):
    record = await delayed(store, now=await store.clock())
    before = await store.clock()
    await queue.change(record.id, delay="1 minute")
    due = (await read(store, record.id)).due_at
    assert due is not None
    assert before + 60_000 <= due <= await store.clock() + 60_000
    await queue.change(record.id, delay=datetime(2200, 1, 1, tzinfo=UTC))
    seen = await queue.get(record.id)
    assert seen is not None
    assert seen.snapshot is not None
    assert seen.snapshot.due_at == datetime(2200, 1, 1, tzinfo=UTC)
    await queue.change(record.id, delay=datetime.max.replace(tzinfo=UTC))
    assert await queue.get(record.id) is not None


async def test_a_job_is_changed_and_looked_into_by_its_handle(queue: Queue):
    job = await queue.add("send", {"to": "you"}, delay="1 day")
    await job.change(priority=3, lifo=True, delay="2 days", data={"to": "me"})
    assert job.data == {"to": "me"}
    seen = await job.refresh()
    assert (seen.priority, seen.lifo, seen.data) == (3, True, {"to": "me"})
    assert await job.history() == await queue.history(job.id)


@pytest.mark.parametrize("data", [None, {"to": "me"}, False])
async def test_changed_data_may_be_any_json(queue: Queue, data: Any):
    job = await queue.add("send", {"to": "you"})
    await queue.change(job.id, data=data)
    assert (await job.refresh()).data == data
    assert job.data == data


async def test_all_of_a_change_happens_or_nothing(queue: Queue):
    job = await queue.add("send", 1)
    with pytest.raises(InvalidMove, match="delayed"):
        await queue.change(job.id, priority=5, delay=60, data=2)
    seen = await job.refresh()
    assert (seen.priority, seen.data) == (0, 1)


async def test_a_change_that_cannot_be_meant_is_refused(make_queue: MakeQueue):
    queue = make_queue(size_limit=10)
    job = await queue.add("send", 1, delay=60)
    bad: list[tuple[dict[str, Any], type[Exception]]] = [
        ({}, InvalidInput),
        ({"priority": None, "delay": None}, InvalidInput),
        ({"priority": 2**22}, InvalidOption),
        ({"priority": "1"}, InvalidOption),
        ({"lifo": 1}, InvalidOption),
        ({"delay": float("nan")}, InvalidDuration),
        ({"delay": datetime(2200, 1, 1)}, InvalidDuration),  # noqa: DTZ001 - that is the mistake
        ({"data": {1}}, InvalidPayload),
        ({"data": "x" * 9}, PayloadTooLarge),
    ]
    before = await job.refresh()
    for change, kind in bad:
        with pytest.raises(kind):
            await queue.change(job.id, **change)
    assert await job.refresh() == before


@pytest.mark.every_store
async def test_progress_can_be_reported_from_outside(queue: Queue):
    job = await queue.add("send")
    await queue.report_progress(job.id, {"part": 1})
    assert (await job.refresh()).progress == {"part": 1}
    with pytest.raises(PayloadTooLarge):
        await queue.report_progress(job.id, "x" * 64 * 1024)
