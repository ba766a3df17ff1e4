"""Listeners: functions called on a worker's events."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from ..errors import InvalidOption
from ..job.choices import is_word
from ..job.events import EVENT_NAMES
from ..showing import shown
from .job import Job
from .service import log

OWN: Final[tuple[str, ...]] = (
    "active",
    "progress",
    "completed",
    "retrying",
    "waiting",
    "delayed",
    "waiting-children",
    "failed",
    "retries-exhausted",
    "cancelled",
    "lock-lost",
    "stalled",
    "unhandled",
    "leaked",
    "slow-loop",
    "store-reset",
    "error",
)
"""Events that a worker causes or notices itself."""

OF_QUEUES: Final[tuple[str, ...]] = tuple(name for name in EVENT_NAMES if name not in (*OWN, "gap"))
"""Events of its queues, whichever process caused them; read from their streams if there is a listener."""

HEARD: Final[tuple[str, ...]] = (*OWN, *OF_QUEUES)


class WorkerEvent(msgspec.Struct, frozen=True):
    """An event of this worker or its queues; `data` has the details, as in the store's events.

    For a failed attempt `data["error"]` is the exception itself.
    """

    name: str
    job: Job | None = None
    data: dict[str, Any] = {}


Listener: TypeAlias = Callable[[WorkerEvent], Any]
"""A function or coroutine function of one event."""


class Listeners:
    """Listeners by event name. An error raised by one does no harm: it becomes an `error` event."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Listener]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, name: str, listener: Listener) -> None:
        if not is_word(name, *HEARD):
            raise InvalidOption(
                "event",
                f"cannot be {shown(name)}; a worker emits {', '.join(HEARD)}; queue.events() has everything",
            )
        if not callable(listener):
            raise InvalidOption("listener", f"cannot be {shown(listener)}: give a function of one event")
        self._by_name.setdefault(name, []).append(listener)

    def remove(self, name: str, listener: Listener) -> None:
        listeners = self._by_name.get(name, [])
        if listener in listeners:
            listeners.remove(listener)

    def hears(self, *names: str) -> bool:
        return any(map(self._by_name.get, names))

    def emit(self, name: str, job: Job | None = None, /, **data: Any) -> None:
        for listener in (*self._by_name.get(name, ()),):
            try:
                answer = listener(WorkerEvent(name, job, data))
            except BaseException as error:  # noqa: BLE001 - SystemExit too, or the CancelledError of something it used
                self._report(name, job, listener, error)
            else:
                if inspect.isawaitable(answer):
                    task = asyncio.ensure_future(self._finish(name, job, listener, answer))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Waits for coroutine listeners that still run, and cancels those that take too long."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                log.warning("a listener did not end within %.1f s: %r", seconds, task)
                task.cancel()

    async def _finish(self, name: str, job: Job | None, listener: Listener, answer: Any) -> None:
        try:
            await answer
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - as in emit
            self._report(name, job, listener, error)

    def _report(self, name: str, job: Job | None, listener: Listener, error: BaseException) -> None:
        log.error("listener %r of %r raised", listener, name, exc_info=error)
        # An error listener that raises would otherwise call itself for ever.
        if name != "error":
            self.emit("error", job, error=error, event=name)
