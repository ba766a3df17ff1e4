"""Detection of waiting jobs that this worker has no handler for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from ...store.commands import Find
from ...store.contract import Store
from ..service import Service

CENSUS_INTERVAL: Final = 10.0


class Census(Service):
    """Looks at the first waiting jobs now and then, and reports each unhandled name once."""

    def __init__(
        self,
        store: Store,
        queue: str,
        names: Callable[[str], tuple[str, ...] | None],
        report: Callable[[str, str, Sequence[str]], None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._names = names
        self._report = report
        self._reported: set[str] = set()

    async def step(self) -> None:
        handled = self._names(self._queue)
        if handled is not None and (await self._store.count(self._queue))["waiting"]:
            for name in await self._waiting_names() - {*handled} - self._reported:
                self._reported.add(name)
                self._report(self._queue, name, handled)
        await asyncio.sleep(CENSUS_INTERVAL)

    async def _waiting_names(self) -> set[str]:
        page = await self._store.find(Find(self._queue, ("waiting",), limit=100))
        return {record.name for record in page.jobs}
