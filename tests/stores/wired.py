"""A store whose commands and answers travel as bytes, in turn as MessagePack and as JSON."""

from __future__ import annotations

from itertools import cycle
from typing import TypeVar, cast

from ropeway.job.instants import Instant
from ropeway.store.commands import Command
from ropeway.store.wire import Format, decode_answer, decode_command, encode_answer, encode_command
from ropeway.testing.proxy import StoreProxy

A = TypeVar("A")
_forms = cycle(("msgpack", "json"))


class WiredStore(StoreProxy):
    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        form = cast(Format, next(_forms))
        received, at = decode_command(encode_command(command, now, form), form)
        answer = await self.inner.do(received, at)
        return decode_answer(command, encode_answer(answer, form), form)
