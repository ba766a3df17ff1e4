"""The pytest plugin: fixtures, without effect on tests that do not use them.

None of them is a coroutine: they work with pytest-asyncio in both of its modes, with anyio's plugin, and without any.
What they are made of is imported when the first one is used, because every pytest run loads this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pytest

if TYPE_CHECKING:
    from ..client.queue import Queue
    from ..job.options import JobOptions
    from .clock import FakeClock
    from .store import FakeStore


class MakeQueue(Protocol):
    def __call__(self, name: str = "test", **defaults: Unpack[JobOptions]) -> Queue: ...


@pytest.fixture
def ropeway_clock() -> FakeClock:
    """A clock that stands still until `await ropeway_clock.advance("1 hour")`, or `advance_sync` without a loop."""
    from .clock import FakeClock  # noqa: PLC0415 - see above

    return FakeClock()


@pytest.fixture
def ropeway_store(ropeway_clock: FakeClock) -> FakeStore:
    """An empty store in memory that uses `ropeway_clock`."""
    from .store import FakeStore  # noqa: PLC0415 - see above

    return FakeStore(ropeway_clock)


@pytest.fixture
def ropeway_queue(ropeway_store: FakeStore) -> MakeQueue:
    """Makes queues on `ropeway_store`, as in `ropeway_queue("emails", attempts=3)`."""
    from ..client.queue import Queue  # noqa: PLC0415 - see above

    def make(name: str = "test", **defaults: Unpack[JobOptions]) -> Queue:
        return Queue(name, store=ropeway_store, **defaults)

    return make


@pytest.fixture
def ropeway_isolated(ropeway_store: FakeStore) -> Iterator[Callable[..., FakeStore]]:
    """Puts queues of the application on `ropeway_store` until the test ends: `ropeway_isolated(app.queue)`."""
    from .isolation import isolated  # noqa: PLC0415 - see above

    with ExitStack() as stack:

        def isolate(*queues: Any) -> FakeStore:
            return stack.enter_context(isolated(*queues, store=ropeway_store))

        yield isolate
