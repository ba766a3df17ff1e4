"""children: pages of a job's children, as it knows them."""

from __future__ import annotations

from typing import Any, Final

from ....job.flows import CHILD_STATES, ChildState, Policy
from ....job.instants import Instant
from ....store.commands import ReadChildren
from ....store.values import Children, ChildStatus
from ..constants import CHILD_CODES, POLICY_CODES
from ..encoding import bounded
from ..executor import Executor
from ..ids import shortened, text_of

_CHILD_STATES: Final[dict[bytes, ChildState]] = {CHILD_CODES[state].encode(): state for state in CHILD_STATES}
_POLICIES: Final[dict[bytes, Policy]] = {code.encode(): policy for policy, code in POLICY_CODES.items()}


async def children(on: Executor, command: ReadChildren, _: Instant | None) -> Children | None:
    after = command.after
    first = int(after) if after and after.isascii() and after.isdecimal() and len(after) < 16 else 0
    states = "".join(CHILD_CODES[state] for state in command.states)
    packed = shortened(command.id), first, states, bounded(command.limit)
    return _children_of(await on.run("children", command.queue, *packed))


def _children_of(answer: list[Any] | None) -> Children | None:
    if answer is None:
        return None
    found, after, total, completed, failed, cancelled, awaited = answer
    children = [_child(key, link) for key, link in zip(found[::2], found[1::2], strict=True)]
    pending = total - completed - failed - cancelled
    counts: dict[ChildState, int] = dict(zip(CHILD_STATES, (pending, completed, failed, cancelled), strict=True))
    return Children(children, counts, None if after is None else after.decode(), bool(awaited))


def _child(key: bytes, link: bytes) -> ChildStatus:
    queue, _, id = key.partition(b"/")
    state, policy, word = _CHILD_STATES[link[:1]], _POLICIES[link[1:2]], link[2:].decode() or None
    words = (word, None) if state == "completed" else (None, word)
    return ChildStatus(queue.decode(), text_of(id), policy, state, *words)
