"""A proxy that looks like a pooler: the session that the server names is not the one that serves."""

from __future__ import annotations

import asyncio

from tests.stores.network import Proxy


class PoolerLike(Proxy):
    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(65_536)
        # BackendKeyData: a pooler names a session of its own there.
        at = data.index(b"K\x00\x00\x00\x0c")
        writer.write(data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :])
        await super()._answer(reader, writer)
