"""The data of one queue: jobs with their indexes, settings, events and metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from ...job.codec import decode
from ...job.events import events_in
from ...job.flows import Child
from ...job.instants import Instant
from ...job.marks import Mark, Marking, Notice
from ...job.record import JobRecord
from ...job.states import FINAL, STATES, State
from ...store.values import KeyHolder, Settings, StoredSchedule
from .deadlines import Deadlines
from .families import Family, Key
from .history import Histories
from .keys import SortedKeys
from .metrics import Metrics
from .start_deadlines import StartDeadlines
from .state_index import StateIndex
from .stream import Draft, Stream

V = TypeVar("V")

NO_SETTINGS: Final = Settings()
NoticeEntries: TypeAlias = tuple[list[list[tuple[str, Any]]], int]
"""The jobs of the entry for each notice, and the place of the last entry."""


class QueueData:
    """Changes to jobs are applied at once and can be rolled back; all other effects of a step wait for `commit`.

    The caller holds the store's lock, from `begin` to `commit` or `roll_back`.
    """

    def __init__(self, name: str, stream: Stream) -> None:
        self.name = name
        self.stream = stream
        self.jobs: dict[str, JobRecord] = {}
        self.settings = NO_SETTINGS
        self.histories = Histories()
        self.metrics = Metrics()
        self.alone: dict[str, str] = {}
        """Jobs that stalled before and now run alone, with the token of that attempt."""
        self.families: dict[str, Family] = {}
        """Parents with their children."""
        self.held_keys: dict[str, KeyHolder] = {}
        """Dedupe keys."""
        self.schedules: dict[str, StoredSchedule] = {}
        self.awaited_marks: dict[str, str] = {}
        """Delayed jobs that are postponed until there is a mark, with its name."""
        self._indexes: dict[State, StateIndex] = {state: StateIndex(state, self.jobs) for state in STATES}
        self._locks = Deadlines(attrgetter("lock_until"))
        self._expiries = Deadlines(attrgetter("expires_at"))
        self._deadlines = {"active": self._locks, **dict.fromkeys(FINAL, self._expiries)}
        self._original: dict[str, JobRecord | None] = {}
        """Jobs changed by this step, as they were before it."""
        self._indexed: dict[str, JobRecord | None] = {}
        """Jobs changed since the indexes were last updated, as the indexes have them."""
        self._drafts: dict[tuple[str, State | None], Draft] = {}
        self._notices: dict[Notice, dict[int, Draft]] = {}
        """By notice, its drafts by place."""
        self._last_notice: dict[str, int] = {}
        """By job, the place of the draft with the last notice about it."""
        self._places: dict[tuple[int, tuple[Notice, ...]], NoticeEntries] = {}
        self.marked: tuple[tuple[Mark, ...], Marking, tuple[Mark, ...]] | None = None
        """The marks of the last job of this step that was marked: before, by what, and after."""
        self._after: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        """How to undo the changes of this step to all but jobs, newest last."""
        self.deadlines = StartDeadlines(self._note_undo)
        self._was_busy = False

    @property
    def is_listed(self) -> bool:
        return bool(self.jobs) or bool(self.schedules) or self.settings != NO_SETTINGS

    @property
    def is_blank(self) -> bool:
        return not self.is_listed and not self.stream

    @property
    def is_busy(self) -> bool:
        return bool(self.index("waiting") or self.index("active"))

    @property
    def locks(self) -> SortedKeys:
        """Active jobs by `lock_until`."""
        self._put_in_order()
        return self._locks.keys

    @property
    def expiries(self) -> SortedKeys:
        """Finished jobs that are not kept for ever, by `expires_at`."""
        self._put_in_order()
        return self._expiries.keys

    def index(self, state: State) -> StateIndex:
        self._put_in_order()
        return self._indexes[state]

    def begin(self) -> None:
        self._was_busy = self.is_busy

    def put(self, job: JobRecord) -> None:
        """Adds the job, or replaces its record."""
        before = self.jobs.get(job.id)
        self._original.setdefault(job.id, before)
        self._indexed.setdefault(job.id, before)
        self.jobs[job.id] = job
        if self.awaited_marks and job.state != "delayed" and job.id in self.awaited_marks:
            self.assign(self.awaited_marks, job.id, None)

    def amend(self, job: JobRecord) -> None:
        """As `put`, for a job whose place in all indexes stays the same."""
        self._original.setdefault(job.id, self.jobs[job.id])
        self.jobs[job.id] = job

    def drop(self, id: str) -> None:
        job = self.jobs.pop(id)
        self._original.setdefault(id, job)
        self._indexed.setdefault(id, job)
        if id in self.awaited_marks:
            self.assign(self.awaited_marks, id, None)
        if id in self.families:
            self._undo.append((self.families.__setitem__, (id, self.families.pop(id))))

    def found(self, id: str, family: Family) -> None:
        """Makes a job a parent."""
        self.families[id] = family
        self._undo.append((self.families.pop, (id,)))

    def change(self, part: Struct, **fields: Any) -> None:
        """Changes a family or one of its links, until the step is rolled back."""
        for field, value in fields.items():
            self._undo.append((setattr, (part, field, getattr(part, field))))
            setattr(part, field, value)

    def assign(self, table: dict[str, V], key: str, value: V | None) -> None:
        """Changes an item of a table, or deletes it (None), until the step is rolled back."""
        if key in table:
            self._undo.append((table.__setitem__, (key, table[key])))
        else:
            self._undo.append((table.pop, (key, None)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def _note_undo(self, act: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._undo.append((act, args))

    def adopt(self, family: Family, children: Sequence[Child]) -> None:
        self._undo.append((setattr, (family, "links", dict(family.links))))
        self._undo.append((setattr, (family, "left", family.left)))
        family.add(children)

    def forget_child(self, family: Family, key: Key) -> None:
        self._undo.append((family.links.__setitem__, (key, family.links.pop(key))))

    def entry(
        self, what: str, to: State | None = None, detail: dict[str, Any] | None = None
    ) -> list[tuple[str, dict[str, Any] | None]]:
        """The list of jobs in this step's event entry for a move or notice, to append to."""
        draft = self._drafts.get((what, to))
        if draft is None:
            draft = self._drafts[what, to] = Draft(what, to, detail, [])
        return draft.jobs

    def announce(self, id: str, notices: tuple[Notice, ...]) -> None:
        """Adds a job to an entry for each notice, which comes after all others about it in this step."""
        last = self._last_notice.get(id, -1)
        entries, self._last_notice[id] = self._places.get((last, notices)) or self._place(last, notices)
        about = id, None
        for jobs in entries:
            jobs.append(about)

    def _place(self, last: int, notices: tuple[Notice, ...]) -> NoticeEntries:
        """Finds or begins entries behind a place, and remembers them: most jobs of a step announce the same."""
        entries, behind = [], last
        for notice in notices:
            drafts = self._notices.setdefault(notice, {})
            place = next((place for place in drafts if place > behind), len(self._drafts))
            if place not in drafts:
                draft = drafts[place] = Draft(notice.what, None, decode(notice.detail) or None, [])
                self._drafts[f"{notice.what} {place}", None] = draft
            entries.append(drafts[place].jobs)
            behind = place
        found = self._places[last, notices] = (entries, behind)
        return found

    def separate(self, id: str) -> None:
        """Begins new event entries if this step changed the job before: what happens to it next is announced later."""
        if id in self._original:
            self._drafts = {(f"{draft.what} {place}", None): draft for place, draft in enumerate(self._drafts.values())}

    def removals(self) -> list[tuple[str, dict[str, Any] | None]]:
        """As `entry`, for removals, which come after whatever else happened to the job in this step."""
        last = next(reversed(self._drafts.values()), None)
        if last is None or last.what != "remove":
            last = self._drafts[f"remove {len(self._drafts)}", None] = Draft("remove", None, None, [])
        return last.jobs

    def notice(self, what: str, detail: dict[str, Any] | None = None) -> None:
        """Adds an event entry about the whole queue."""
        self._drafts[f"{what} {len(self._drafts)}", None] = Draft(what, None, detail, [], is_notice=True)

    def afterwards(self, act: Callable[..., None], *args: Any) -> None:
        """Runs `act` at the commit. It must not fail, and the rest of the step does not see its effect."""
        self._after.append((act, args))

    def set_alone(self, id: str, token: str | None) -> None:
        """Records that a job runs alone under this token, or no longer does."""
        if token is None:
            self.alone.pop(id, None)
        else:
            self.alone[id] = token

    def set(self, settings: Settings) -> None:
        self.settings = settings

    def set_now(self, settings: Settings) -> None:
        """As `set`, for the rest of the step too."""
        self._undo.append((self.set, (self.settings,)))
        self.settings = settings

    def keep_quiet(self) -> None:
        """Discards the event entries of this step."""
        self._was_busy = False
        self._drafts.clear()
        self._notices, self._last_notice, self._places = {}, {}, {}

    def prepare(self, now: Instant) -> None:
        """The part of a commit that may fail: encoding event entries, whose text may be invalid."""
        if self._was_busy and not self.is_busy:
            self.notice("drained")
        for draft in self._drafts.values():
            draft.encode(now)
        self._put_in_order()

    def commit(self, now: Instant) -> bool:
        """Applies the step; True if there are new event entries."""
        drafts = [draft for draft in self._drafts.values() if draft.jobs or draft.is_notice]
        for draft in drafts:
            self.stream.append(draft.text, events_in(draft.what, draft.to, len(draft.jobs)))
            self.metrics.count(draft.what, len(draft.jobs), now)
        for act, args in self._after:
            act(*args)
        if self.histories:
            self.histories.forget(id for id in self._original if id not in self.jobs)
        if self.alone:
            for id in self._original:
                if id not in self.jobs or self.jobs[id].state != "active":
                    self.alone.pop(id, None)
        self._end()
        return bool(drafts)

    def roll_back(self) -> None:
        for undo, args in reversed(self._undo):
            undo(*args)
        for id, job in self._original.items():
            if job is not None:
                self.put(job)
            elif id in self.jobs:
                self.drop(id)
        self._put_in_order()
        self._end()

    def _end(self) -> None:
        self._original = {}
        self._drafts = {}
        self._notices, self._last_notice, self._places = {}, {}, {}
        self._after = []
        self.marked = None
        self._undo = []

    def _put_in_order(self) -> None:
        """Updates the indexes from the changed jobs, in one batch: far cheaper than one by one."""
        if not self._indexed:
            return
        indexed, self._indexed = self._indexed, {}
        leaving: defaultdict[State, list[JobRecord]] = defaultdict(list)
        entering: defaultdict[State, list[JobRecord]] = defaultdict(list)
        for id, old in indexed.items():
            new = self.jobs.get(id)
            if old is not None:
                leaving[old.state].append(old)
            if new is not None:
                entering[new.state].append(new)
        for state, jobs in leaving.items():
            self._indexes[state].remove(jobs)
            if state in self._deadlines:
                self._deadlines[state].remove(jobs)
        for state, jobs in entering.items():
            self._indexes[state].add(jobs)
            if state in self._deadlines:
                self._deadlines[state].add(jobs)
