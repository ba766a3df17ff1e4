"""When a worker starts companions: with a queue that needs one, for jobs that others left, or for a job it claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ..client.workers import WorkerInfo
from ..errors import InvalidOption, RopewayError
from ..job.states import OPEN
from ..logger import log
from ..store.contract import Store
from .domains import Domain
from .job import Job
from .options import Rules
from .retiring import callbacks_of, retention_queue
from .service import cancelled
from .system_queues import SystemQueue

if TYPE_CHECKING:
    from .companions import Companions

_extras: Final = attrgetter("record.extras")


class CompanionStarter:
    """Starts the companions of a worker when they are needed, and ends them with it."""

    def __init__(self, rules: Rules, describe: Callable[[], WorkerInfo]) -> None:
        self.systems: tuple[SystemQueue, ...] = ()
        """The queues that the worker may serve without being asked to by its options."""
        self.companions: Companions | None = None
        """Those that it has; None before the first."""
        self._rules = rules
        self._describe = describe
        self._looking: set[asyncio.Task[None]] = set()

    def begin(self, domain: Domain) -> None:
        """Starts those that queues of the domain need, or that have jobs to run, left by other workers."""
        for stage, callback in callbacks_of(self._rules).items():
            for queue in domain.queues:
                self._start(retention_queue(queue.name, stage, callback), queue.store)
        for system in self.systems:
            for queue in domain.queues:
                if system.serves(queue, self._rules):
                    self._start(system, queue.store)
            for store in domain.stores.values():
                looking = asyncio.create_task(self._look_into(system, store))
                self._looking.add(looking)
                looking.add_done_callback(self._looking.discard)

    def claimed(self, jobs: list[Job]) -> None:
        """Starts those for which these jobs, claimed by the worker, will add jobs."""
        if not self.systems or not any(map(_extras, jobs)):
            return
        for job in jobs:
            extras = job.record.extras
            for system in self.systems:
                if extras is not None and system.is_fed_by(extras):
                    self._start_if_possible(system, job.queue.store)

    async def stop(self) -> None:
        """Starts no more of them for jobs that were left."""
        for looking in list(self._looking):
            await cancelled(looking)

    async def end(self, grace: float, hurried: asyncio.Event) -> None:
        if self.companions is not None:
            await self.companions.end(grace, hurried)

    async def _look_into(self, system: SystemQueue, store: Store) -> None:
        with suppress(RopewayError):  # Then it is served when this worker feeds it, or by others.
            counts = await store.count(system.name)
            if any(counts[state] for state in OPEN):
                self._start_if_possible(system, store)

    def _start(self, system: SystemQueue, store: Store) -> None:
        if self.companions is None:
            # Companions are workers themselves, and most workers have none.
            from .companions import Companions  # noqa: PLC0415

            self.companions = Companions(self._describe().name, self._rules)
        self.companions.start(system, store)

    def _start_if_possible(self, system: SystemQueue, store: Store) -> None:
        """For what a worker was not asked for by its own options: then others may serve it."""
        try:
            self._start(system, store)
        except InvalidOption as problem:
            self.systems = tuple(other for other in self.systems if other is not system)
            log.error("this worker does not serve %r: %s", system.name, problem)
