"""Dedupe keys of new jobs, and the verbs dedupe and release_dedupe.

A key that is free is taken by the insert of one row. What an add does if its key is held is decided by the table
`ACTIONS`, one job after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

import apsw
from msgspec.structs import replace

from ...job.dedupe import ACTIONS, SUPERSEDED, DedupeRule
from ...job.instants import LAST_INSTANT, Instant
from ...job.record import NewJob
from ...job.states import State
from ...store.commands import ReadDedupe, ReleaseDedupe
from ...store.values import Added, KeyHolder
from .ending import Ends
from .finishing import cancellation
from .founding import Founding, Key
from .held_keys import read_holds, start_followers, write_holds
from .locating import LocatedJob, grouped, locate, options_of
from .statements import statements
from .storing import portions, state_of, store
from .transaction import QueueRow, Transaction, as_json
from .verbs import reads, writes

_SQL: Final = statements("dedupe")
_queue: Final = attrgetter("queue")


@reads(ReadDedupe)
def dedupe(tx: Transaction, queue: str, key: str) -> KeyHolder | None:
    hold = read_holds(tx, tx.queue(queue), [key]).get(key)
    return None if hold is None or hold.is_over(tx.now()) else hold


@writes(ReleaseDedupe)
def release_dedupe(tx: Transaction, queue: str, key: str) -> bool:
    row = tx.queue(queue)
    now = tx.now()
    hold = read_holds(tx, row, [key]).get(key)
    if hold is None:
        return False
    write_holds(tx, row, {key: None})
    if hold.next is not None:
        start_followers(tx, row, [hold.next], now)
    return not hold.is_over(now)


def take_free(tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], now: Instant) -> list[str] | None:
    """Takes the dedupe keys of new jobs, and returns them; takes none and returns None if one is held."""
    # One insert for all that are held equally long, usually until their jobs end.
    holders: defaultdict[Instant | None, dict[str, str]] = defaultdict(dict)
    asked = 0
    for job in jobs:
        extras = job.extras
        if extras is None or (rule := extras.dedupe) is None:
            continue
        asked += 1
        # Most have no ttl, and the call is felt in bulks.
        holders[rule.held_until(now) if rule.ttl else None][rule.key] = job.id
    if sum(map(len, holders.values())) < asked:
        # Two of the jobs have the same key.
        return None
    taken: list[str] = []
    try:
        for until, group in holders.items():
            tx.run(_SQL["take"], {"queue": row.id, "holders": as_json(group), "until": until})
            taken += group
    except apsw.ConstraintError:
        give_back(tx, row, taken)
        return None
    return taken


def give_back(tx: Transaction, row: QueueRow, keys: Sequence[str]) -> None:
    """Frees keys that were just taken."""
    if keys:
        write_holds(tx, row, dict.fromkeys(keys))


class Placing:
    """Stores new jobs of one call, in order, unless their dedupe keys are held.

    They are stored together as far as possible: before something is done to a job that is there, and at the end.
    """

    def __init__(
        self,
        tx: Transaction,
        rows: Mapping[str, QueueRow],
        jobs: Sequence[NewJob],
        now: Instant,
        families: Founding | None,
    ) -> None:
        self._tx, self._rows, self._now, self._families = tx, rows, now, families
        self._busy = {name: row.busy for name, row in rows.items()}
        self._new: list[NewJob] = []
        """Jobs that are not stored yet."""
        self._states: dict[Key, State] = {}
        """States of jobs that this call adds."""
        self._ends: dict[str, Ends] = {}
        self._taken: dict[str, dict[str, KeyHolder | None]] = {}
        """Keys that are not written yet, by queue."""
        self._holds: dict[str, dict[str, KeyHolder | None]] = {}
        """Who holds the keys of all jobs, by queue."""
        self._located: dict[Key, LocatedJob] = {}
        """Jobs that held a key before this call."""
        self._read(jobs)

    def place(self, job: NewJob, dropped: set[Key]) -> Added:
        """Puts a job among those to be stored, unless its key is held, or all of its parents are `dropped` for that."""
        if dropped and job.parents and all((parent.queue, parent.id) in dropped for parent in job.parents):
            dropped.add((job.queue, job.id))
            return Added(job.id, "skipped")
        rule = _rule_of(job)
        if rule is not None:
            found = self._take(job, rule)
            if found is not None:
                dropped.add((job.queue, job.id))
                return Added(found, "deduplicated")
            if self._follows(job, rule):
                job = replace(job, delay=0, due_at=LAST_INSTANT)
            self._states[job.queue, job.id] = state_of(job, self._now)
        self._new.append(job)
        return Added(job.id, "created")

    def store(self) -> None:
        """Stores what was placed, with its keys and families."""
        jobs, self._new = self._new, []
        for name, group in grouped(jobs, _queue).items():
            for portion in portions(group):
                store(self._tx, self._rows[name], portion, self._now, self._families)
        if self._families:
            self._families.store(self._tx, jobs)
        for name, taken in self._taken.items():
            write_holds(self._tx, self._rows[name], taken)
        self._taken = {}

    def conclude(self) -> None:
        """Does what follows from the end of superseded jobs."""
        for ends in self._ends.values():
            ends.conclude()
            self._tx.notice_drained(ends.row, self._busy[ends.row.name])

    def _read(self, jobs: Sequence[NewJob]) -> None:
        keyed = [job for job in jobs if _rule_of(job) is not None]
        if keyed:
            # One that was added before in this transaction may hold a key, or be among those that are removed.
            self._tx.flush_arrival()
        for name, group in grouped(keyed, _queue).items():
            row = self._rows[name]
            keys = dict.fromkeys(rule.key for job in group if (rule := _rule_of(job)) is not None)
            held = read_holds(self._tx, row, keys)
            self._holds[name] = {**held}
            self._locate(row, [hold.id for hold in held.values()])

    def _locate(self, row: QueueRow, ids: Sequence[str]) -> list[LocatedJob]:
        found = locate(self._tx, row, ids) if ids else []
        self._located.update({(row.name, job.id): job for job in found})
        return found

    def _take(self, job: NewJob, rule: DedupeRule) -> str | None:
        """Takes the key for a job, or the place behind the job that holds it, and returns None.

        Otherwise returns the id of the job that is found instead.
        """
        hold = self._holds[job.queue].get(rule.key)
        if hold is not None and not hold.is_over(self._now):
            action = ACTIONS[rule.mode][self._state(job.queue, hold.id)]
            if action == "find":
                return hold.id
            if action == "follow" and hold.next is None:
                # A key with a follower has no time: it passes on when its holder ends.
                self._hold(job.queue, rule.key, KeyHolder(hold.id, next=job.id))
                return None
            self.store()
            if action == "follow":
                assert hold.next is not None, "the other case is above"
                if self._state(job.queue, hold.next) == "active":
                    # It was promoted by hand: the new job waits for its end instead.
                    self._hold(job.queue, rule.key, KeyHolder(hold.next, next=job.id))
                    return None
                self._refresh(job, hold.next)
                return hold.next
            if action in ("refresh", "postpone"):
                self._refresh(job, hold.id, self._now + rule.ttl if action == "postpone" else None)
                return hold.id
            if action == "replace":
                self._supersede(job, hold)
            elif hold.next is not None:
                # The key passes to the new job, so nothing else would let the follower go on.
                start_followers(self._tx, self._rows[job.queue], [hold.next], self._now)
                self._forget(job.queue, hold.next)
        self._hold(job.queue, rule.key, KeyHolder(job.id, rule.held_until(self._now)))
        return None

    def _follows(self, job: NewJob, rule: DedupeRule) -> bool:
        """True if the job has to wait for the end of the one that holds its key."""
        hold = self._holds[job.queue][rule.key]
        return hold is not None and hold.next == job.id

    def _hold(self, queue: str, key: str, hold: KeyHolder) -> None:
        self._holds[queue][key] = hold
        self._taken.setdefault(queue, {})[key] = hold

    def _state(self, queue: str, id: str) -> State:
        """The state of a job that holds a key; completed if it is gone."""
        new = self._states.get((queue, id))
        if new is not None:
            return new
        job = self._located.get((queue, id)) or self._locate(self._rows[queue], [id])[0]
        return job.state or "completed"

    def _forget(self, queue: str, id: str) -> None:
        """Forgets the state of a job that was changed."""
        self._states.pop((queue, id), None)
        self._located.pop((queue, id), None)

    def _refresh(self, job: NewJob, id: str, due_at: Instant | None = None) -> None:
        """Gives the data of a discarded job to one that is there, if that has the same name and is not active."""
        [there] = locate(self._tx, self._rows[job.queue], [id])
        if there.state != "active":
            self._tx.run(_SQL["refresh"], {"seq": there.seq, "name": job.name, "data": job.data})
        if due_at is not None:
            self._tx.run(_SQL["postpone"], {"seq": there.seq, "due_at": due_at})

    def _supersede(self, job: NewJob, hold: KeyHolder) -> None:
        """Cancels the job that holds a key, and before it the one that waits for its end, which must not go on."""
        row = self._rows[job.queue]
        found = locate(self._tx, row, [id for id in (hold.next, hold.id) if id is not None])
        options = options_of(self._tx, [one.seq for one in found])
        reason = SUPERSEDED + job.id
        ended = [cancellation(one, one.state, options[one.seq], reason) for one in found if one.state is not None]
        ends = self._ends.setdefault(row.name, Ends(self._tx, row, self._now))
        ends.end("cancel", ended, detail={"reason": reason})
        for one in found:
            self._forget(row.name, one.id)


def _rule_of(job: NewJob) -> DedupeRule | None:
    return None if job.extras is None else job.extras.dedupe
