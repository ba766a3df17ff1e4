"""A client that costs little: HTTP/1.1 over plain sockets, for the measures of servers."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.protocol import Answer, Stopwatch, beside, percentiles

PACE = 500
"""Requests a second, where the time to their answers is measured."""


class Connection:
    """One connection, with one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        assert self._reader is not None
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
        self._writer.write(f"{head}{len(content)}\r\n\r\n".encode() + content)
        headers = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(headers.partition("content-length:")[2].partition("\r\n")[0] or 0)
        answer = await self._reader.readexactly(length) if length else b""
        if "connection: close" in headers:
            self.close()
        return int(headers[9:12]), json.loads(answer) if answer else None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


@contextmanager
def connections(port: int, number: int) -> Iterator[list[Connection]]:
    made = [Connection(port) for _ in range(number)]
    try:
        yield made
    finally:
        for each in made:
            each.close()


Request = Callable[[Connection], Awaitable[bool]]
"""Sends one request; True if it was carried out."""


async def most(port: int, seconds: float, request: Request, number: int) -> Answer:
    """As many requests as so many connections can send, one after the other on each; counts those carried out in time.

    What is answered later is left out, and so is the time that it takes: a refusal may come late.
    """
    with connections(port, number) as all_of_them:
        watch = Stopwatch(seconds)

        async def one(connection: Connection) -> None:
            while not watch.over:
                # Not `+= await`, which would forget what others count meanwhile.
                done = await request(connection)
                watch.count += done and not watch.over

        await asyncio.gather(*map(one, all_of_them))
    return {**watch.rate(), "per_second": watch.count / seconds}


async def paced(port: int, seconds: float, request: Request) -> Answer:
    """`PACE` requests a second, whether or not those before are answered; times are from when each was due."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    with connections(port, 50) as all_of_them:
        for each in all_of_them:
            free.put_nowait(each)
        times: list[float] = []

        async def one(due: float) -> None:
            connection = await free.get()
            assert await request(connection)
            times.append((time.perf_counter() - due) * 1000)
            free.put_nowait(connection)

        started = time.perf_counter()
        tasks = []
        for turn in range(int(seconds * PACE)):
            due = started + turn / PACE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(due)))
        await asyncio.gather(*tasks)
    return percentiles(times)


async def single(port: int, seconds: float, request: Request, number: int = 16) -> Answer:
    """Most requests a second from a few connections, and times at `PACE`."""
    return {**await most(port, seconds, request, number), **await paced(port, seconds, request)}


@contextmanager
def served(place: str) -> Iterator[int]:
    """The system's `serve` in a process of its own; gives its port."""
    with beside("serve", place=place) as number:
        yield int(number())
