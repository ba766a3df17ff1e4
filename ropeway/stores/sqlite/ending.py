"""The one function by which jobs become final, and the one by which they are removed, a batch at a time.

Whatever follows from the end of a job, or from its removal, belongs here, in the same transaction: what becomes of its
parents and of jobs that wait for its dedupe key, its follow-ups, and what retention removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ...job.flows import Effect
from ...job.instants import LAST_INSTANT, Instant
from ...job.moves import MOVES, MoveName
from ...job.options import readable_options
from ...job.record import NewJob
from ...job.states import FINAL, State
from .decoding import decoder
from .families import Family, News, Notes, read_families
from .finishing import NOTHING, Aftermath, Ending, Removal, apply_retention, drop, finish, keep_of_failed
from .held_keys import start_followers
from .locating import delete_state_rows, grouped
from .statements import statements
from .storing import known_ids, portions, store
from .transaction import Detail, QueueRow, Transaction, as_json

_SQL: Final = statements("flows")
_WAIT: Final = statements("promote")["wait"]


def end(
    tx: Transaction,
    row: QueueRow,
    move: MoveName,
    jobs: Sequence[Ending],
    now: Instant,
    *,
    attempts: int = 0,
    stalls: int = 0,
    detail: Detail = None,
) -> None:
    """Makes jobs final by one move, announces it, and does what follows from it.

    `attempts` and `stalls` are added to those of each job; `detail` is about all of them.
    """
    ends = Ends(tx, row, now)
    ends.end(move, jobs, attempts=attempts, stalls=stalls, detail=detail)
    ends.conclude()


def remove(tx: Transaction, row: QueueRow, jobs: Sequence[Removal], now: Instant, *, quietly: bool = False) -> None:
    """Removes jobs with everything about them, announces it unless that is to be done quietly, and tells parents."""
    ends = Ends(tx, row, now)
    ends.remove(jobs, quietly=quietly)
    ends.conclude()


class Child(msgspec.Struct, array_like=True, gc=False):
    """A child of a parent that is removed."""

    queue: str
    seq: int
    id: str
    state: State
    has: int
    token: str | None
    parents: list[tuple[str, str, int | None]]
    family: int | None


_children: Final[Callable[[bytes], list[Child]]] = decoder(list[Child])


class Ends:
    """Jobs of one queue that end in one call, and what follows from that once all of them have."""

    def __init__(self, tx: Transaction, row: QueueRow, now: Instant) -> None:
        self.tx, self.row, self.now = tx, row, now
        self._followers: list[tuple[QueueRow, Sequence[str]]] = []
        """Ids of jobs that waited for the end of others by a dedupe key. Some may end in the same call."""
        self._news: list[News] = []
        """What parents are to be told."""
        self._follow_ups: list[NewJob] = []
        """Letters to add."""
        self._ended: list[tuple[QueueRow, State, Sequence[Ending]]] = []
        """Jobs whose retention is to be applied."""
        self._awaiting: list[Family] = []
        self._notes = Notes()
        self._released: list[tuple[Family, Instant | None]] = []
        self._failed: list[tuple[Family, str]] = []
        # The verb itself notices if its own queue is drained.
        self._busy: dict[str, int] = {row.name: 0}
        """How many jobs were waiting or active in the queues of parents."""

    def end(
        self, move: MoveName, jobs: Sequence[Ending], *, attempts: int = 0, stalls: int = 0, detail: Detail = None
    ) -> None:
        self._end(self.row, move, jobs, attempts=attempts, stalls=stalls, detail=detail)

    def remove(self, jobs: Sequence[Removal], *, quietly: bool = False) -> None:
        self._note(self.row, drop(self.tx, self.row, jobs, self.now, quietly=quietly))

    def begin_to_wait(self, families: Iterable[Family]) -> None:
        """Parents wait for their children since now."""
        self._awaiting += families

    def conclude(self) -> None:
        """Tells parents, which may end too, lets followers go on, adds follow-ups, and applies retention."""
        if self._news or self._awaiting:
            self._tell_parents()
        self.start_followers()
        if self._follow_ups:
            self._add_follow_ups()
        for row, state, ended in self._ended:
            apply_retention(self.tx, row, state, ended, self.now)

    def start_followers(self) -> None:
        """Lets jobs go on that waited for a dedupe key. Call it before adds of the same call: these may find them."""
        followers, self._followers = self._followers, []
        for row, ids in followers:
            start_followers(self.tx, row, ids, self.now)

    def add_later(self, jobs: Iterable[NewJob]) -> None:
        self._follow_ups += jobs

    def _end(self, row: QueueRow, move: MoveName, jobs: Sequence[Ending], **more: Any) -> None:
        if row.stages is not None:
            jobs = [replace(job, keep=row.stages.keep(job.keep)) for job in jobs]
        self._note(row, finish(self.tx, row, move, jobs, self.now, **more))
        self._ended.append((row, MOVES[move].targets[0], jobs))

    def _note(self, row: QueueRow, after: Aftermath) -> None:
        if after is not NOTHING:
            self._news += after.news
            self._follow_ups += after.follow_ups
            if after.followers:
                self._followers.append((row, after.followers))

    def _add_follow_ups(self) -> None:
        jobs, self._follow_ups = self._follow_ups, []
        for name, group in grouped(jobs, lambda job: job.queue).items():
            row = self.tx.queue(name, create=True)
            # A job that ends twice in one instant and in the same way leaves one.
            there = known_ids(self.tx, row, [job.id for job in group])
            new = {job.id: job for job in group if job.id not in there}
            for portion in portions(list(new.values())):
                store(self.tx, row, portion, self.now, None)

    def _tell_parents(self) -> None:
        for parent in self._awaiting:
            self._notes.change(parent)
            self._judge(parent)
        self._apply()
        # Level by level, not by recursion: flows may be deep.
        while self._news:
            news, self._news = self._news, []
            families = read_families(self.tx, dict.fromkeys(one.family for one in news))
            for one in news:
                family = families.get(one.family)
                if family is not None and self._notes.take(family, one) and family.waits:
                    for gone in self._judge(family):
                        families.pop(gone, None)
            self._apply()
        for name, busy in self._busy.items():
            self.tx.notice_drained(self.tx.queue(name), busy)

    def _judge(self, family: Family) -> Sequence[int]:
        """Decides what becomes of a parent that waits; returns the families that are removed by that."""
        owed, reason = family.owed, family.owed_reason
        if owed is None and family.awaited:
            return ()
        family.waits, family.owed, family.owed_reason = False, None, ""
        effect: Effect = owed or "start"
        if effect == "fail":
            self._failed.append((family, reason))
        elif effect == "remove":
            # What was decided before comes before: it may be about descendants.
            self._apply()
            return self._remove_tree(family)
        else:
            due_at = min(self.now + family.delay, LAST_INSTANT) if family.delay else family.due_at
            self._released.append((family, due_at if due_at is not None and due_at > self.now else None))
            family.is_released, family.delay, family.due_at = True, 0, None
        return ()

    def _apply(self) -> None:
        self._notes.write(self.tx)
        released, self._released = self._released, []
        for name, group in grouped(released, lambda one: one[0].queue).items():
            self._release(self._row(name), group)
        failed, self._failed = self._failed, []
        for name, ended in grouped(failed, lambda one: one[0].queue).items():
            self._fail(self._row(name), ended)

    def _release(self, row: QueueRow, released: Sequence[tuple[Family, Instant | None]]) -> None:
        """Lets parents go on: they wait in line, or for their own delay."""
        tx, now = self.tx, self.now
        if waiting := [family for family, due_at in released if due_at is None]:
            seqs = [family.seq for family in waiting]
            tx.run(_WAIT, {"seqs": as_json(seqs)})
            delete_state_rows(tx, "waiting-children", seqs)
            row.move("waiting-children", "waiting", len(waiting))
            row.announce("release", now, "waiting", [(family.parent, None) for family in waiting])
        if delayed := [(family, due_at) for family, due_at in released if due_at is not None]:
            tx.run(_SQL["delay"], {"delayed": as_json([(family.seq, due_at) for family, due_at in delayed])})
            row.move("waiting-children", "delayed", len(delayed))
            jobs: list[tuple[str, Detail]] = [(family.parent, {"due_at": due_at}) for family, due_at in delayed]
            row.announce("release", now, "delayed", jobs)
        tx.wake("jobs", row)

    def _fail(self, row: QueueRow, failed: Sequence[tuple[Family, str]]) -> None:
        ended = [
            Ending(
                family.seq,
                family.parent,
                "waiting-children",
                keep_of_failed(readable_options(family.options)),
                {"reason": reason},
                reason,
                has=family.has,
            )
            for family, reason in failed
        ]
        self._end(row, "fail by child", ended)

    def _remove_tree(self, root: Family) -> Sequence[int]:
        """Removes a parent with its unfinished descendants, except those for which another parent waits."""
        removed = [(root.queue, Removal(root.seq, root.parent, "waiting-children", root.has))]
        level, families = [root.id], [root.id]
        while level:
            orphans = self._orphan(level)
            removed += [
                (child.queue, Removal(child.seq, child.id, child.state, child.has, child.token)) for child in orphans
            ]
            level = [child.family for child in orphans if child.family is not None]
            families += level
        for name, jobs in grouped(removed, lambda one: one[0]).items():
            row = self._row(name)
            self._note(row, drop(self.tx, row, [job for _, job in jobs], self.now))
        return families

    def _orphan(self, families: Sequence[int]) -> list[Child]:
        """Takes parents from their unfinished children; returns those that have no other."""
        found = _children(self.tx.get(_SQL["children"], {"families": as_json(families)}))
        children = {child.seq: child for child in found if child.state not in FINAL}
        left = {*families}
        for child in children.values():
            child.parents = [parent for parent in child.parents if parent[2] not in left]
        written = [(child.seq, child.parents) for child in children.values()]
        self.tx.run(_SQL["write_parents"], {"children": as_json(written)})
        return [child for child in children.values() if not child.parents]

    def _row(self, name: str) -> QueueRow:
        row = self.tx.queue(name)
        self._busy.setdefault(name, row.busy)
        return row
