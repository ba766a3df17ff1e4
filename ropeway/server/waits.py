"""Requests that wait: long polls end with an answer, or when the client goes, the server ends or the store is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .authentication import unauthorized
from .bodies import Gone
from .routes import Call

T = TypeVar("T")


async def held(call: Call, work: Coroutine[Any, Any, T], end: Callable[[], object]) -> tuple[T, bool]:
    """The result of work that waits, and whether the client has gone meanwhile.

    `end` is called if the client or the server ends first, and must let the work end soon.
    """
    watch = call.broker.watch
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(call))
    ending = asyncio.ensure_future(call.broker.closing.wait())
    away = asyncio.ensure_future(watch.until_away())
    invalid = asyncio.ensure_future(call.broker.authenticator.until_invalid(call.principal))
    try:
        with call.broker.admission.wait():
            await asyncio.wait([task, gone, ending, away, invalid], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                if away.done():
                    raise watch.away()
                end()
            result = await task
            if invalid.done():
                raise unauthorized()
            return result, gone.done()
    finally:
        for each in (task, gone, ending, away, invalid):
            each.cancel()
            each.add_done_callback(_forget)


def _forget(task: asyncio.Future[Any]) -> None:
    """How work ends that nobody waits for is of no interest."""
    if not task.cancelled():
        task.exception()


async def _until_gone(call: Call) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass


def refuse_gone(is_gone: bool) -> None:
    if is_gone:
        raise Gone
