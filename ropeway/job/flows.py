"""Flows: jobs that wait for other jobs, and the table that says what becomes of a parent when a child ends."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import msgspec

from .choices import one_of

Policy: TypeAlias = Literal["fail", "ignore", "remove", "continue", "wait"]
"""What becomes of a parent when one of its children fails."""
ChildEnd: TypeAlias = Literal["completed", "failed", "cancelled", "removed"]
"""How a child ended, as its parents are told."""
ChildState: TypeAlias = Literal["pending", "completed", "failed", "cancelled"]
"""What a parent knows of a child. One that was removed before its end is no longer listed."""
Effect: TypeAlias = Literal["done", "fail", "remove", "start", "hold", "forget"]
"""What the end of a child does to a parent that waits.

`done`: one child less to wait for; the end is recorded. `fail`: the parent fails. `remove`: the parent is removed with
its unfinished descendants. `start`: the parent starts now. `hold`: recorded, and still waited for. `forget`: one child
less to wait for; nothing is recorded.
"""

POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
CHILD_STATES: Final[tuple[ChildState, ...]] = get_args(ChildState)
DEFAULT_POLICY: Final = "fail"

ENDS: Final[dict[str, ChildEnd]] = {
    "complete": "completed",
    "fail": "failed",
    "give up": "failed",
    "fail by child": "failed",
    "expire": "failed",
    "cancel": "cancelled",
    "remove": "removed",
}
"""How parents see the moves that end a job. `remove` counts only for a job that was not final."""

_FAILED: Final[dict[Policy, Effect]] = {
    "fail": "fail",
    "ignore": "done",
    "remove": "remove",
    "continue": "start",
    "wait": "hold",
}
EFFECTS: Final[dict[ChildEnd, dict[Policy, Effect]]] = {
    "completed": dict.fromkeys(POLICIES, "done"),
    "failed": _FAILED,
    "cancelled": _FAILED,
    "removed": dict.fromkeys(POLICIES, "forget"),
}
"""The table: by how a child ended and the policy it was added with."""

OWED: Final[tuple[Effect, ...]] = ("start", "remove", "fail")
"""Effects that a parent that does not wait owes until it waits, weakest first. Only the strongest is kept."""

CHILD_FAILED: Final = "failed: "
CHILD_CANCELLED: Final = "was cancelled"
CHILD_NOT_ADDED: Final = "could not be added: another job has its id"
"""Where queues are on different servers, that can come to light after the parent was added."""


class Parent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job that waits for this one."""

    queue: str
    id: str


class Child(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job that this one waits for."""

    queue: str
    id: str
    policy: Policy = DEFAULT_POLICY


def policy_or_none(option: str, given: object) -> Policy | None:
    """Checks a policy that a user gave."""
    return None if given is None else one_of(*POLICIES)(option, given)


def reason_for_parents(queue: str, id: str, move: str, reason: str | None) -> str:
    """The reason with which parents fail: it names the descendant that failed first, at any depth."""
    if move == "fail by child":
        return reason or ""
    if move == "cancel":
        return f"child {queue}/{id} {CHILD_CANCELLED}" + (f": {reason}" if reason else "")
    return f"child {queue}/{id} {CHILD_FAILED}{reason or ''}"


def is_awaited(policy: Policy, state: ChildState) -> bool:
    """True if a parent waits for a child that it knows in this state."""
    return state == "pending" or (policy == "wait" and state != "completed")
