"""Commands over HTTP: each is one request, repeated where that is safe, and split where it would be too large."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from ...job.instants import Instant
from ...store import commands
from ...store.commands import Add, Claim, Command, Settle, Update
from ...store.doubt import in_doubt, unknown
from ...store.values import Settled
from ...store.wire import decode_answer, encode_command
from .connections import Connections
from .failures import error_of, pause_before_repeat, unreadable
from .target import Target

A = TypeVar("A")
Execute: TypeAlias = Callable[[Command[Any]], Awaitable[Any]]

DO: Final = "/v1/do"
BUSY: Final = 3.0
"""Seconds for which requests are repeated that the server had no room for."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Size from which a command is split, if its parts do not depend on each other. Servers take twice as much."""
_REPEATABLE: Final[tuple[type[Command[Any]], ...]] = (
    *(commands.Get, commands.Find, commands.Count, commands.CountWaiting, commands.ReadMetrics, commands.ReadHistory),
    *(commands.ReadChildren, commands.ReadSchedules, commands.ReadDedupe, commands.ReadLog, commands.ReadSettings),
    *(commands.ListQueues, commands.ReadClock, commands.ReadEvents, commands.ReadRevoked, commands.Recall),
    *(commands.Withdraw, commands.Renew, commands.Configure, commands.ClearLog, commands.TrimEvents),
)
"""A second execution changes nothing, and has the same answer. Callers repeat others, and know what that means."""


class Calls:
    """Executes commands by the connections of one event loop."""

    def __init__(self, target: Target, connections: Connections) -> None:
        self._target = target
        self._connections = connections

    async def execute(self, command: Command[A], now: Instant | None = None) -> A:
        body = encode_command(command, now)
        if len(body) > MOST_BYTES and (halves := _halves(command)):
            return cast(A, await self._both(command, halves, now))
        try:
            return await self._once(command, body)
        except TimeoutError as error:
            raise unknown(self._target.url, f"the server did not answer within {self._target.timeout:g} s") from error
        except OSError as error:
            again = _repeat_of(command)
            if again is None:
                raise unknown(self._target.url, str(error)) from error
        with in_doubt():
            try:
                return cast(A, await self._once(again, encode_command(again, now)))
            except OSError as error:
                raise unknown(self._target.url, str(error)) from error

    async def ask(self, path: str, body: bytes, wait: float = 0.0) -> bytes:
        """The body of the answer to a request that the server may hold for `wait` seconds."""
        began = time.monotonic()
        while True:
            reply = await self._connections.ask(path, body, self._target.timeout + wait, waits=wait > 0)
            if reply.status == 200:
                return reply.body
            pause = pause_before_repeat(reply)
            if pause is None or time.monotonic() + pause > began + BUSY:
                raise error_of(self._target, reply, len(body))
            await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - spreads load

    async def _once(self, command: Command[A], body: bytes) -> A:
        answer = await self.ask(DO, body, _wait_of(command))
        try:
            return decode_answer(command, answer)
        except msgspec.MsgspecError as error:
            raise unreadable(self._target.url, error) from error

    async def _both(self, command: Command[Any], halves: Sequence[Command[Any]], now: Instant | None) -> Any:
        answers: list[Any] = []
        for half in halves:
            with in_doubt(bool(answers)):
                answers.append(await self.execute(half, now))
        one, other = answers
        return Settled(one.answers + other.answers, other.claimed) if isinstance(command, Settle) else one + other


def _wait_of(command: Command[Any]) -> float:
    """Seconds for which the server holds it."""
    return command.wait / 1000 if isinstance(command, Claim) else 0.0


def _repeat_of(command: Command[Any]) -> Command[Any] | None:
    """The command that repeats one whose answer was lost; None if a repeat is its caller's to decide."""
    if isinstance(command, Claim):
        return None if command.wait else replace(command, repeat=True)
    return command if isinstance(command, _REPEATABLE) else None


def _halves(command: Command[Any]) -> Sequence[Command[Any]]:
    """Two commands that do the same one after the other; none if it has only one part."""
    field = _PARTS.get(type(command))
    parts = getattr(command, field) if field else ()
    if field is None or len(parts) < 2:
        return ()
    middle = len(parts) // 2
    first = {field: parts[:middle], **({"then": None} if isinstance(command, Settle) else {})}
    return replace(command, **first), replace(command, **{field: parts[middle:]})


_PARTS: Final[dict[type[Command[Any]], str]] = {Add: "bundles", Settle: "outcomes", Update: "updates"}
