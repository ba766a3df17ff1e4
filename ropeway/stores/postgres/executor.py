"""Calls of the functions in the `sql` folder, over the connection pool of the running event loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ...errors import StoreClosed, StoreUnavailable
from ...job.instants import Instant
from ...store import forks, loops
from .link import Row, Statement
from .parameters import Parameter, boolean, number, text
from .resources import PostgresResources
from .scan_starts import ScanStarts
from .statements import in_schema
from .target import Target

FOLD_AFTER: Final = 256
"""Adds by one handle to one queue after which it folds their steps, in case no worker does."""


class Executor:
    """Executes the commands of one handle."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.scan_starts = ScanStarts()
        self._per_loop: loops.PerLoop[PostgresResources] = loops.PerLoop(
            partial(PostgresResources, target, self.scan_starts)
        )
        self._statements: dict[str, Statement] = {}
        self._steps: dict[str, int] = {}
        self._is_closed = False

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            forks.notice()
            await self._per_loop.close()

    def check(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.target.url)
        forks.notice()

    def resources(self) -> PostgresResources:
        """Those of the running loop."""
        self.check()
        return self._per_loop.here()

    async def lasting_resources(self) -> PostgresResources:
        """Those of the running loop, which are closed when it ends."""
        resources = self.resources()
        if not resources.closes_with_loop:
            await resources.close_with_loop()
        return resources

    async def call(self, function: str, *parameters: Parameter) -> list[Row]:
        """Calls a function that writes no step, and so sends no notification."""
        return await (await self.lasting_resources()).pool.call(self._statement(function, len(parameters)), parameters)

    async def call_and_notify(
        self,
        function: str,
        queues: Sequence[str],
        now: Instant | None,
        *parameters: Parameter,
        is_repeat: bool = False,
    ) -> list[Any]:
        """Calls a function that writes a step, and passes its wakes, the last column, to the notifier."""
        resources = await self.lasting_resources()
        may_wake = resources.notifier.may_notify(queues)
        whole = (*parameters, number(now), boolean(may_wake))
        statement = self._statement(function, len(whole))
        [(*answer, wakes)] = await resources.pool.call(statement, whole, is_repeat=is_repeat)
        if wakes:
            resources.notifier.note(queues, wakes)
        return answer

    async def fold_sometimes(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._steps[queue] = steps = self._steps.get(queue, 0) + 1
            if steps >= FOLD_AFTER:
                self._steps[queue] = 0
                # The add itself is stored, and workers fold too.
                with suppress(StoreUnavailable):
                    await self.call("try_fold", text(queue))

    def _statement(self, function: str, parameters: int) -> Statement:
        statement = self._statements.get(function)
        if statement is None:
            places = ", ".join(f"${n}" for n in range(1, parameters + 1))
            # The function's name is ours, and the schema was checked.
            sql = in_schema(f"SELECT * FROM ropeway.{function}({places})", self.target.schema)  # noqa: S608
            statement = self._statements[function] = Statement(sql)
        return statement
