"""Companions: inner workers of a worker, which serve the system queues of its stores.

    Worker ── its queues ──> Runtime: dispatcher, slots
       └── Companions ── ropeway.webhooks ──> Companion: a worker with its own slots, on the same store and loop

What they do never takes a slot of the worker's jobs. A companion starts with the worker if one of its queues needs it
or jobs wait there, or when the worker first claims a job that will add some. It ends after the handlers of the worker
have ended and are settled, within what is left of the grace, and before the store is closed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from ..client.queue import Queue
from ..logger import log
from ..store.contract import Store
from .job import Job
from .options import Rules
from .reports import Reports
from .system_queues import SystemQueue
from .worker import Worker

LEAST_GRACE: Final = 0.5
"""Seconds that a companion has to finish even if the worker's own handlers took all of the grace."""


class _Reports(Reports):
    """Leaves reports about the loop to the worker, whose loop it is."""

    def on_slow_loop(self, job: Job | None, seconds: float, where: str) -> None:
        """Reported by the worker."""

    def on_blocked_loop(self, job: Job | None, seconds: float, where: str) -> None:
        """Reported by the worker."""


class Companion(Worker):
    """The worker of one system queue on one store."""

    _system_queues = ()

    def _make_reports(self) -> Reports:
        return _Reports(self._listeners, asyncio.get_running_loop())

    async def serve(self, ending: asyncio.Event) -> None:
        """Runs until `ending` is set, or it cannot go on; then shuts down."""
        async with self:
            runtime = self._runtime
            assert runtime is not None
            waits = [asyncio.ensure_future(wait()) for wait in (ending.wait, runtime.stopping.wait)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def hurry(self) -> None:
        self.stop()
        self.stop()

    def limit_grace(self, seconds: float) -> None:
        if self._runtime is not None:
            self._runtime.grace = seconds


class Companions:
    """The companions of a running worker. Belongs to its loop."""

    def __init__(self, name: str, rules: Rules) -> None:
        self._name = name
        self._rules = rules
        self._running: dict[tuple[str, int], tuple[Companion, asyncio.Task[None]]] = {}
        self._ending = asyncio.Event()

    def start(self, system: SystemQueue, store: Store) -> None:
        """Starts serving the system queue of a store, unless it is served already."""
        key = system.name, id(store)
        if key in self._running or self._ending.is_set():
            return
        handler = system.make_handler(store)
        companion = Companion(
            Queue(system.name, store=store),
            handler.run,
            concurrency=system.concurrency,
            lock_duration=self._rules.lock / 1000,
            stalled_interval=self._rules.stalled_interval,
            cancel_grace=self._rules.cancel_grace,
            name=f"{self._name}.{system.name}",
        )
        task = asyncio.create_task(companion.serve(self._ending), name=f"ropeway-companion-{system.name}")
        task.add_done_callback(partial(self._check, system))
        task.add_done_callback(lambda _: handler.close())
        self._running[key] = companion, task

    def _check(self, system: SystemQueue, task: asyncio.Task[None]) -> None:
        """Its failure is none of the worker: the application's jobs go on."""
        error = None if task.cancelled() else task.exception()
        if not self._ending.is_set() and error is not None:
            log.error("this worker no longer serves %r, others may: %s", system.name, error)

    async def end(self, grace: float, hurried: asyncio.Event) -> None:
        """Lets them finish what is under way, and hands back the rest; at once if the worker is hurried."""
        if not self._running:
            return
        self._ending.set()
        for companion, _ in self._running.values():
            companion.limit_grace(max(grace, LEAST_GRACE))
        hurry = asyncio.ensure_future(self._hurry(hurried))
        try:
            ends = await asyncio.gather(*(task for _, task in self._running.values()), return_exceptions=True)
        finally:
            hurry.cancel()
        for error in ends:
            if isinstance(error, Exception):
                log.warning("what %s did for its queues was not all finished: %s", self._name, error)

    async def _hurry(self, hurried: asyncio.Event) -> None:
        await hurried.wait()
        for companion, _ in self._running.values():
            companion.hurry()
