"""Putting an application's own queues on a test's store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..client.queue import Queue
from ..errors import InvalidOption
from ..showing import shown
from .clock import FakeClock
from .store import FakeStore


@contextmanager
def isolated(*queues: Queue, store: FakeStore | None = None, clock: FakeClock | None = None) -> Iterator[FakeStore]:
    """Inside the block these queues are on a store of the test, whatever store they were made with.

    The objects stay the same, so nothing changes for workers, tasks and views that hold them. All of them are on one
    store: a new one, unless it is given.
    """
    if not queues or not all(isinstance(queue, Queue) for queue in queues):
        raise InvalidOption("queues", f"cannot be {shown(queues)}: name the queues of your app, as in app.queue")
    if store is not None and clock is not None:
        raise InvalidOption("clock", "and 'store' were both given: a store has its clock")
    store = store or FakeStore(clock)
    with ExitStack() as moves:
        for queue in queues:
            moves.enter_context(queue.moved_to(store))
        yield store
