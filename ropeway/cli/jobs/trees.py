"""Moving jobs together with those below them in their flows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...client.queue import Queue
from ...errors import InvalidMove, JobNotFound
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
        parents = [record.id for record in await store.get(name, ids) if record is not None and record.children]
        answers: dict[str, Answer | InvalidMove] = {}
        for id in parents:
            answers[id] = await _tree(with_children(queue, id), id)
        others = [id for id in ids if id not in answers]
        if others:
            answers |= zip(others, await alone(name, others), strict=True)
        return [answers[id] for id in ids]

    return act


async def _tree(move: Awaitable[None], id: str) -> Answer | InvalidMove:
    try:
        await move
    except JobNotFound:
        # It was in the tree of one before it.
        return MISSING
    except InvalidMove as refused:
        return Answer("refused", refused.state) if refused.job_id == id else refused
    return DONE
