"""Jobs as stores take and return them."""

from __future__ import annotations

import msgspec

from .codec import Json, JsonText, OpaqueText, decode
from .extras import Extras
from .flows import Child, Parent
from .instants import Instant, Milliseconds
from .marks import Mark
from .names import JobId
from .numbers import Priority
from .options import StoredOptions, stored_options
from .states import State


class NewJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job to be added. Its data and options are text that stores return unchanged."""

    queue: str
    id: JobId
    name: str
    data: OpaqueText
    options: OpaqueText = "{}"
    priority: Priority = 0
    lifo: bool = False
    delay: Milliseconds = 0
    due_at: Instant | None = None
    """An absolute instant instead of a delay; a past one means now."""
    is_fresh: bool = False
    """True if the id was generated for this job: no other can have it, so stores need not check."""
    tags: tuple[str, ...] = ()
    parents: tuple[Parent, ...] = ()
    """Jobs that wait for it: added in the same bundle, before it, or by the `JobUpdate` that adds it."""
    children: tuple[Child, ...] = ()
    """Jobs that it waits for, which are in the same bundle, behind it. Its delay then begins when they have ended."""
    extras: Extras | None = None


class JobRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job in a store at the moment of reading.

    `array_like`: the fields' order is the order in which stores write them out. `gc=False`: it holds only text and
    numbers, so the garbage collector need not visit a million of them.
    """

    queue: str
    id: str
    name: str
    data: JsonText
    options: JsonText
    state: State
    priority: int
    order: int
    """Its position among jobs of equal priority: a number of the store's sequence, negative for `lifo`.

    A job that is retried or postponed without delay gets the next number, i.e. goes behind those that wait.
    """
    created_at: Instant
    attempts_made: int = 0
    attempts_started: int = 0
    stalled_count: int = 0
    due_at: Instant | None = None
    token: str | None = None
    """The token of the current claim; after that, of the last one, so that a repeated settle is recognised."""
    worker: str | None = None
    started_at: Instant | None = None
    renewed_at: Instant | None = None
    lock_until: Instant | None = None
    finished_at: Instant | None = None
    expires_at: Instant | None = None
    """When retention removes it by age; the last instant if only a count removes it, None if it is kept for ever."""
    reason: str | None = None
    """The reason of the last failed attempt, of giving up, or of the cancellation."""
    progress: JsonText | None = None
    result: JsonText | None = None
    tags: tuple[str, ...] = ()
    parents: tuple[Parent, ...] = ()
    children: int = 0
    """How many children it has, including ended ones; `ReadChildren` lists them."""
    extras: Extras | None = None
    marks: tuple[Mark, ...] = ()
    """By name. `Find` leaves them out."""

    def read_data(self) -> Json:
        return decode(self.data)

    def read_options(self) -> StoredOptions:
        return stored_options(self.options)
