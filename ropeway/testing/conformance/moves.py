"""The table of moves, pair by pair: an operation on a state either makes its move or changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest

from ...job.moves import MOVES, MoveName
from ...job.record import JobRecord
from ...job.states import STATES, State
from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import ARRANGED, claim, job_in, snapshot
from ..factories import DAY, FOREIGN, LOCK, NOW, QUEUE, complete, fail, hand_back, new_job, postpone, retry
from .cases import for_each

Operation: TypeAlias = Callable[[Store, JobRecord], Awaitable[object]]


def _token(job: JobRecord) -> str:
    """The current one, or one that cannot be mistaken for a repeated call."""
    return job.token if job.state == "active" and job.token else FOREIGN


OPERATIONS: Final[dict[MoveName, Operation]] = {
    "add": lambda store, job: store.add([[new_job(job.id)]], now=NOW),
    "promote": lambda store, job: store.promote(QUEUE, [job.id], now=NOW),
    "claim": lambda store, _: claim(store, 10),
    "complete": lambda store, job: store.settle(QUEUE, [complete(job, token=_token(job))], now=NOW),
    "retry": lambda store, job: store.settle(QUEUE, [retry(job, DAY, token=_token(job))], now=NOW),
    "fail": lambda store, job: store.settle(QUEUE, [fail(job, token=_token(job))], now=NOW),
    "postpone": lambda store, job: store.settle(QUEUE, [postpone(job, DAY, token=_token(job))], now=NOW),
    "hand back": lambda store, job: store.settle(QUEUE, [hand_back(job, token=_token(job))], now=NOW),
    "stall": lambda store, _: store.tick(QUEUE, StallRules(), now=NOW + LOCK),
    "give up": lambda store, _: store.tick(QUEUE, StallRules(0), now=NOW + LOCK),
    "cancel": lambda store, job: store.cancel(QUEUE, [job.id], now=NOW),
    "retry by hand": lambda store, job: store.retry(QUEUE, [job.id], now=NOW),
    "remove": lambda store, job: store.remove(QUEUE, [job.id], force=True, now=NOW),
}

STORES_MOVES: Final[set[MoveName]] = {"release", "fail by child", "expire"}
"""The store makes them by itself, when a child ends or a job expires: see `flow_policies.py` and `expiry.py`."""


class TestMoves:
    def test_every_move_and_every_state_is_asked_about(self) -> None:
        assert OPERATIONS.keys() | STORES_MOVES == MOVES.keys()
        assert ARRANGED.keys() == set(STATES)

    @pytest.mark.parametrize("operation", OPERATIONS)
    @for_each("state", ARRANGED)
    async def test_an_operation_makes_its_move_or_changes_nothing(
        self, store: Store, state: State, operation: MoveName
    ) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        await OPERATIONS[operation](store, job)

        move = MOVES[operation]
        [after] = await store.get(QUEUE, [job.id])
        if state not in move.sources:
            assert await snapshot(store) == before
        elif not move.targets:
            assert after is None
        else:
            assert after is not None
            assert after.state in move.targets

    @for_each("operation", [name for name in OPERATIONS if name != "add"])
    async def test_an_operation_on_no_job_changes_nothing(self, store: Store, operation: MoveName) -> None:
        job = await job_in("active", store)
        await store.remove(QUEUE, [job.id], force=True, now=NOW)
        before = await snapshot(store)

        await OPERATIONS[operation](store, job)

        assert await snapshot(store) == before
