"""The machine with a store in memory beside the one it drives: what the model knows nothing of must be the same too."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, cast

from ropeway.job.events import expand
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.testing.factories import QUEUE
from ropeway.testing.machine import StoreMachine

_LOOKS: Final = (
    *("get", "find", "count", "count_waiting", "metrics", "history", "log"),
    *("settings", "queues", "clock", "events", "open", "close"),
)


class _Both:
    """Whatever changes a store is done to the other one as well."""

    def __init__(self, store: Store, other: Store) -> None:
        self._store = store
        self._other = other

    def __getattr__(self, verb: str) -> Any:
        call = getattr(self._store, verb)
        if verb in _LOOKS:
            return call

        async def call_both(*given: Any, **options: Any) -> Any:
            await getattr(self._other, verb)(*given, **options)
            return await call(*given, **options)

        return call_both


class MachineBeside(StoreMachine):
    def __init__(self, new_handle: NewHandle) -> None:
        self.other = connect("memory://")
        super().__init__(lambda: cast(Store, _Both(new_handle(), self.other)))

    async def _check_the_rest(self) -> None:
        await super()._check_the_rest()
        assert await _told(self.store) == await _told(self.other)
        assert await self.store.metrics(QUEUE) == await self.other.metrics(QUEUE)
        for id in self.model.jobs:
            assert await self.store.log(QUEUE, id, limit=3) == await self.other.log(QUEUE, id, limit=3)
        assert await self.store.count_waiting(QUEUE, [-1, 0, 1]) == await self.other.count_waiting(QUEUE, [-1, 0, 1])


async def _told(store: Store) -> dict[str | None, list[Any]]:
    """The events of each job, in order, and of the whole queue: stores may gather them in entries as they like."""
    told: defaultdict[str | None, list[Any]] = defaultdict(list)
    for stored in (await store.events(QUEUE, limit=100_000)).entries:
        for event in expand(QUEUE, stored.id, stored.entry):
            told[event.job_id].append((event.name, event.at, event.data))
    return told
