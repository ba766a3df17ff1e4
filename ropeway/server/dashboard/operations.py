"""Operations on many jobs: one task each, with its progress, a bound and a result."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias

from ...client.found import FoundJob
from ...client.moving import NOT_ACTIVE
from ...client.queue import Queue
from ...errors import RopewayError
from ...job.ids import new_token
from ...job.instants import Instant, instant_of
from ...job.states import OPEN, State
from ...store.values import Answer
from .filters import Filter, matching
from .redacting import Redact

Action: TypeAlias = Literal["retry", "cancel", "promote", "remove"]
STATES_OF: Final[dict[Action, tuple[State, ...]]] = {
    "retry": ("failed", "cancelled", "completed"),
    "cancel": OPEN,
    "promote": ("delayed",),
    "remove": NOT_ACTIVE,
}
"""From which states jobs can be moved so."""
MOST: Final = 100_000
"""Jobs that one operation looks at; the page says that there are more."""
KEPT: Final = 100


def states_for(action: Action, wanted: Filter) -> tuple[State, ...]:
    """The states in which an action moves the jobs of a filter; completed ones run again only if they were named."""
    if wanted.states:
        return tuple(state for state in wanted.states if state in STATES_OF[action])
    return tuple(state for state in STATES_OF[action] if (action, state) != ("retry", "completed"))


async def act(queue: Queue, action: Action, ids: list[str]) -> list[Answer]:
    store, name = queue.store, queue.name
    calls: dict[Action, Callable[[], Awaitable[list[Answer]]]] = {
        "retry": lambda: store.retry(name, ids, reset=True),
        "cancel": lambda: store.cancel(name, ids, "cancelled from the dashboard"),
        "promote": lambda: store.promote(name, ids),
        "remove": lambda: store.remove(name, ids),
    }
    return await calls[action]()


class Operation:
    def __init__(self, action: Action, who: str) -> None:
        self.id: Final = new_token()
        self.action: Final = action
        self.who: Final = who
        self.looked_at = 0
        self.done = 0
        self.left = 0
        """Jobs that could not be moved, as they had moved meanwhile."""
        self.is_over = False
        self.has_more = False
        self.problem = ""

    async def run(self, queues: Sequence[Queue], wanted: Filter, redact: Redact | None, started: Instant) -> None:
        try:
            states = states_for(self.action, wanted)
            async for queue, jobs, looked_at in matching(queues if states else [], wanted, redact, states):
                # What was added or ended since is not what was asked for; and it would never end.
                ids = [job.id for job in jobs if _instant(job) <= started]
                if ids:
                    answers = await act(queue, self.action, ids)
                    moved = sum(answer.verdict == "done" for answer in answers)
                    self.done += moved
                    self.left += len(answers) - moved
                self.looked_at += looked_at
                if self.looked_at >= MOST:
                    self.has_more = True
                    break
        except RopewayError as error:
            self.problem = str(error)
        finally:
            self.is_over = True


def _instant(job: FoundJob) -> Instant:
    found = job.snapshot
    return instant_of(found.finished_at or found.created_at)


class Operations:
    """The last ones of this server, by id."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Operation] = OrderedDict()
        self._running: set[asyncio.Task[None]] = set()

    def start(self, operation: Operation, work: Awaitable[None]) -> None:
        self._known[operation.id] = operation
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def get(self, id: str) -> Operation | None:
        return self._known.get(id)
