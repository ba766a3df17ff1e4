"""Moving jobs together with those below them in their flows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...client.queue import Queue
from ...errors import InvalidMove, JobNotFound
from ...job.states import state_named
from ...store.contract import Store
from ...store.values import DONE, MISSING, Answer
from .batches import Act


def on_trees(
    store: Store,
    alone: Callable[[str, list[str]], Awaitable[list[Answer]]],
    with_children: Callable[[Queue, str], Awaitable[None]],
) -> Act:
    """Moves jobs without children in one call, and each of the others with its tree."""

    async def act(name: str, ids: list[str]) -> list[Answer | InvalidMove]:
        queue = Queue(name, store=store)
        found = {record.id: record.children for record in await store.get(name, ids) if record is not None}
        answers: dict[str, Answer | InvalidMove] = {}
        for id in filter(found.get, ids):
            answers[id] = await _tree(with_children(queue, id), id)
        others = [id for id in ids if id not in answers]
        for id, answer in zip(others, await alone(name, others) if others else [], strict=True):
            # One that is gone meanwhile was in the tree of another.
            answers[id] = DONE if answer == MISSING and id in found else answer
        return [answers[id] for id in ids]

    return act


async def _tree(move: Awaitable[None], id: str) -> Answer | InvalidMove:
    try:
        await move
    except JobNotFound:
        # It was in the tree of one before it.
        return DONE
    except InvalidMove as refused:
        return Answer("refused", state_named(refused.state)) if refused.job_id == id else refused
    return DONE
