"""Which events there are, from the table of moves and the lists beside it."""

from __future__ import annotations

from typing import Final

from ropeway.job.events import NOTICES
from ropeway.job.moves import MOVES, Move
from ropeway.worker.listeners import OF_QUEUES, OWN

from .tables import code, table

MEANINGS: Final = {
    "progress": "a handler, or somebody outside, reported progress",
    "drained": "nothing waits and nothing runs any more; written once",
    "paused": "the queue, or the job name in `name`, is held back",
    "resumed": "and goes on",
    "cleaned": "`clean` removed `count` jobs of a `state`",
    "changed": "priority, order, due time or data were changed",
    "duplicated": "an add found its id there, with the same name and data",
    "deduplicated": "an add found that this job holds its dedupe key",
    "lock-lost": "a worker came with an old token, and its `move` was refused",
    "phase-started": "a [phase](pipelines.md) began: `phase`, `number` (from 1), `of` how many",
    "phase-completed": "and its result is stored",
    "signalled": "the job got a [signal](steps.md#waiting-for-a-signal) `name`",
    "webhook-delivered": "its webhook accepted the report of the job's end",
    "webhook-failed": "its webhook did not, and the delivery was given up",
    "stale": "it ended so long ago that the [queue's retention](retention.md) marks it as stale",
    "deleted": "the queue's retention deletes it; `removed` follows",
}

NOTICED: Final = {
    "lock-lost": "a lock is gone; with `move` if an outcome was refused because of it",
    "stalled": "this worker found jobs of others whose locks ran out: `queue` and `ids`",
    "unhandled": "jobs of a `job_name` wait in `queue`, for which this worker has no handler",
    "leaked": "a handler would not stop and was given up; `leaked` counts them",
    "slow-loop": (
        "something blocked the event loop for `seconds`, 0.25 or more; `job` is whose handler it was, and what is no "
        "handler may be said to have taken 0.1 s too long"
    ),
    "store-reset": "somebody emptied the store (`FLUSHALL`, a restart without a disk): the jobs it held are gone",
    "error": "a listener of `event` raised `error`",
}


def of_moves() -> str:
    """Each move announces itself, if it has a name for that, and then the state that the job enters."""
    rows = [[move.name, ", ".join(_announced(move))] for move in MOVES.values()]
    return table(["move", "events"], rows)


def _announced(move: Move) -> list[str]:
    states = " or ".join(code(state) for state in move.targets)
    return [*map(code, move.announces), *([states] if states else [])]


def notices() -> str:
    return table(["event", "means"], [[code(name), MEANINGS[name]] for name in NOTICES])


def of_workers() -> str:
    rows = [[code(name), NOTICED.get(name, "as in the queue's events")] for name in OWN]
    return table(["event", "means"], rows)


def of_queues() -> str:
    return ", ".join(map(code, OF_QUEUES))
