"""The loop of a worker's services: how they repeat, retry while the store is unavailable, and stop."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Final, NoReturn, TypeVar

from .. import logger
from ..errors import StoreUnavailable

log: Final = logger.log

T = TypeVar("T")

OF_WORKER: Final[ContextVar[bool]] = ContextVar("ropeway_of_worker", default=False)
"""Set in a worker's own services, so that tests can tell their timers from those of the application."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0


class RetryPause:
    """Exponential pause between retries of an unavailable store, with jitter, so that workers do not retry at once."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE

    def next(self) -> float:
        pause = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return pause

    def reset(self) -> None:
        self._pause = FIRST_PAUSE


class Service:
    """Repeats `step` until it is cancelled. It retries while the store is unavailable; other errors end it.

    A `CancelledError` that was not meant for this task (something it awaited was cancelled) does not end it either.
    """

    async def step(self) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        patience = RetryPause()
        while True:
            try:
                await self.step()
                patience.reset()
            except (StoreUnavailable, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                pause = patience.next()
                why = str(error) or "what it waited for was cancelled"
                log.warning("%s: %s; trying again in %.1f s", type(self).__name__, why, pause)
                await asyncio.sleep(pause)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Services:
    """A growing group of services, run until `run` is cancelled; an error of one ends all."""

    def __init__(self, services: Iterable[Service] = ()) -> None:
        self._group = asyncio.TaskGroup()
        self._first = [*services]
        self._is_running = False

    def add(self, services: Iterable[Service]) -> None:
        if not self._is_running:
            self._first += services
            return
        for service in services:
            running = service.run()
            try:
                self._group.create_task(running, name=type(service).__name__)
            except RuntimeError:
                # It is just ending.
                running.close()

    async def run(self) -> None:
        OF_WORKER.set(True)
        try:
            async with self._group:
                self._is_running = True
                self.add(self._first)
                await asyncio.get_running_loop().create_future()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


async def until_answered(
    call: Callable[[bool], Awaitable[T]], what: str, *, unless: Callable[[], bool] = lambda: False
) -> T:
    """Retries a store call until it is answered; `call` is given True on a repeat. `unless` ends the retries."""
    patience = RetryPause()
    repeat = False
    while True:
        try:
            return await call(repeat)
        except StoreUnavailable as error:
            if unless():
                raise
            repeat = True
            pause = patience.next()
            log.warning("%s: %s; trying again in %.1f s", what, error, pause)
            await asyncio.sleep(pause)


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        # It was reported before.
        log.debug("%s ended with %r", task.get_name(), error)


def end_forked_child() -> NoReturn:
    """Ends a forked child that returned from its handler: it would go on as a second worker."""
    log.error("a process that a handler forked returned from the handler: it is ended by os._exit(1)")
    os._exit(1)
