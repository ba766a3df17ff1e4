"""Compares the indexes of a memory store with its jobs."""

from __future__ import annotations

from ropeway.job.instants import LAST_INSTANT
from ropeway.job.states import FINAL, STATES
from ropeway.stores.memory import MemoryStore
from ropeway.stores.memory.deadlines import Deadlines
from ropeway.stores.memory.keys import BLOCK, SortedKeys
from ropeway.stores.memory.queue_data import QueueData
from ropeway.stores.memory.state_index import StateIndex


def queue_data(store: MemoryStore, queue: str) -> QueueData:
    assert store._shared is not None
    return store._shared.queue(queue)


def audit(store: MemoryStore) -> None:
    """Every index holds what the jobs say, in order, in blocks that are neither empty nor too long."""
    assert store._shared is not None
    for queue in store._shared.queues.values():
        _audit_queue(queue)


def _audit_queue(queue: QueueData) -> None:
    assert not queue._original
    assert not queue._indexed
    for state in STATES:
        index = StateIndex(state, queue.jobs)
        index.add([job for job in queue.jobs.values() if job.state == state])
        _compare(queue.index(state).counted, index.counted)
        _compare(queue.index(state)._kept, index._kept)
        by_name = queue.index(state)._by_name
        if by_name is not None:
            assert by_name.keys() == index._lines().keys()
            for name, line in index._lines().items():
                _compare(by_name[name], line)
        by_age = queue.index(state)._by_age
        if by_age is not None:
            _compare(by_age, index.oldest())
    for kept, states in ((queue._locks, ("active",)), (queue._expiries, FINAL)):
        made = Deadlines(kept._instant)
        made.add([job for job in queue.jobs.values() if job.state in states])
        _compare(kept.keys, made.keys)
    assert queue.histories._histories.keys() <= queue.jobs.keys()
    late = queue.deadlines.due(LAST_INSTANT, len(queue.jobs) + 1)
    assert {queue.jobs[id].state for id in late} <= {"waiting", "waiting-children", "delayed"}
    assert sorted(late) == sorted(queue.deadlines._by_id)
    for hold in queue.held_keys.values():
        assert hold.until is not None or queue.jobs[hold.id].state not in FINAL
        assert hold.next is None or (hold.until is None and queue.jobs[hold.next].state not in FINAL)


def _compare(kept: SortedKeys, made: SortedKeys) -> None:
    assert [*kept] == [*made]
    assert len(kept) == len(made)
    assert kept._lasts == [block[-1] for block in kept._blocks]
    assert all(0 < len(block) <= 2 * BLOCK for block in kept._blocks)
