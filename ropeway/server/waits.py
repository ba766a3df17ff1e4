"""Requests that wait: long polls end when there is an answer, the client goes, or the server ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any, TypeVar

from .bodies import Gone
from .routes import Call

T = TypeVar("T")


async def held(call: Call, work: Coroutine[Any, Any, T], end: Callable[[], object]) -> tuple[T, bool]:
    """The result of work that waits, and whether the client has gone meanwhile.

    `end` is called if the client or the server ends first, and must let the work end soon.
    """
    with closing(work), call.broker.admission.wait():
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_until_gone(call))
        ending = asyncio.ensure_future(call.broker.closing.wait())
        try:
            await asyncio.wait([task, gone, ending], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                end()
            return await task, gone.done()
        finally:
            for each in (task, gone, ending):
                each.cancel()


async def _until_gone(call: Call) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass


def refuse_gone(is_gone: bool) -> None:
    if is_gone:
        raise Gone
