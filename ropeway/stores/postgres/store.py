"""The verbs of the contract, as they are awaited. Their work is done by the functions of the `sql` folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self

from ...errors import StoreClosed
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import Added
from . import adding
from .here import Everywhere, Here
from .link import Row, Statement
from .parameters import Parameter
from .statements import in_schema
from .target import Target


class PostgresStore:
    """Jobs in a schema of one database, which any number of machines may use at once."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._everywhere = Everywhere(target)
        self._statements: dict[str, Statement] = {}
        self._pid: int | None = None
        self._is_closed = False

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`postgresql://user@host:5432/database`; see `Target` for what else it may say."""
        return cls(Target.from_url(url, create=create))

    def sibling(self) -> Self:
        return type(self)(self._target)

    async def open(self) -> None:
        await (await self._settled()).lanes.open()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._pid == os.getpid():
            await self._everywhere.close()

    def _usable(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.url, "this handle was closed: make another with connect()")
        if self._pid is None:
            self._pid = os.getpid()
        elif self._pid != os.getpid():
            raise StoreClosed(
                self.url,
                f"this handle was opened by process {self._pid} and is used in its forked child {os.getpid()}: "
                "make another there with connect() or sibling()",
            )

    async def _settled(self) -> Here:
        self._usable()
        here = self._everywhere.here()
        if not here.is_settled:
            await here.settle()
        return here

    async def _call(self, sql: str, *parameters: Parameter) -> list[Row]:
        statement = self._statements.get(sql)
        if statement is None:
            statement = self._statements[sql] = Statement(in_schema(sql, self._target.schema))
        return await (await self._settled()).lanes.call(statement, parameters)

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        if not any(bundles):
            self._usable()
            return [[] for _ in bundles]
        [(letters, _)] = await self._call(adding.ADD, *adding.parameters_of(bundles, now, may_wake=True))
        return adding.answers_of(bundles, letters)
