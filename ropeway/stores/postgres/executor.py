"""Calls of the functions that the `sql` folder defines, on the connections of the running loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from ...errors import StoreClosed, StoreUnavailable
from ...job.instants import Instant
from ...store import forks
from .floors import Floors
from .here import Everywhere, Here
from .link import Row, Statement
from .parameters import Parameter, number, text, truth
from .statements import in_schema
from .target import Target

FOLD_AFTER: Final = 256
"""Calls of one handle on one queue after which it folds what they wrote, in case nobody else does."""


class Executor:
    """What one handle calls functions with."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.floors = Floors()
        self._everywhere = Everywhere(target)
        self._statements: dict[str, Statement] = {}
        self._steps: dict[str, int] = {}
        self._is_closed = False

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            forks.notice()
            await self._everywhere.close()

    def check(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.target.url)
        forks.notice()

    def here(self) -> Here:
        self.check()
        return self._everywhere.here()

    async def settled(self) -> Here:
        here = self.here()
        if not here.closes_with_loop:
            await here.close_with_loop()
        return here

    async def ask(self, function: str, *parameters: Parameter) -> list[Row]:
        """Calls a function that only looks, or wakes nobody."""
        return await (await self.settled()).lanes.call(self._statement(function, len(parameters)), parameters)

    async def act(
        self,
        function: str,
        queues: Sequence[str],
        now: Instant | None,
        *parameters: Parameter,
        is_repeat: bool = False,
    ) -> list[Any]:
        """Calls a function that writes a step; answers what it gave without its wakes, which come last."""
        here = await self.settled()
        may_wake = here.bell.may_ring(queues)
        whole = (*parameters, number(now), truth(may_wake))
        statement = self._statement(function, len(whole))
        [(*answer, wakes)] = await here.lanes.call(statement, whole, is_repeat=is_repeat)
        if wakes:
            here.bell.note(queues, wakes)
        return answer

    async def fold_now_and_then(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._steps[queue] = steps = self._steps.get(queue, 0) + 1
            if steps >= FOLD_AFTER:
                self._steps[queue] = 0
                # The add itself is stored, and workers fold too.
                with suppress(StoreUnavailable):
                    await self.ask("fold_soon", text(queue))

    def _statement(self, function: str, parameters: int) -> Statement:
        statement = self._statements.get(function)
        if statement is None:
            places = ", ".join(f"${n}" for n in range(1, parameters + 1))
            # The function's name is ours, and the schema was checked.
            sql = in_schema(f"SELECT * FROM ropeway.{function}({places})", self.target.schema)  # noqa: S608
            statement = self._statements[function] = Statement(sql)
        return statement
