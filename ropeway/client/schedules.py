"""`queue.schedules`: reading and changing the schedules of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, cast

import msgspec
from msgspec.structs import replace

from ..errors import InvalidOption, ScheduleNotFound, StoreBusy, StoreCorrupt
from ..job.choices import yes_or_no
from ..job.codec import Json
from ..job.dead_letters import check_dead_letter
from ..job.ids import new_id
from ..job.instants import Instant
from ..job.names import schedule_id
from ..job.options import JobOptions, refuse_unknown
from ..job.record import NewJob
from ..job.schedules import (
    SCHEDULE_PREFIX,
    ScheduleState,
    Template,
    TickRecord,
    job_of_tick,
    tick_id,
)
from ..job.webhooks import check_webhook
from ..logger import log
from ..store.values import ScheduleWrite, ScheduleWritten, StoredSchedule
from .bundles import job_of, note_answer
from .handle import JobHandle
from .new_jobs import Call
from .schedule import Schedule, ScheduleOptions, read_rule, schedule_of
from .skipped_ticks import correction
from .sync_schedules import SyncSchedules

if TYPE_CHECKING:
    from .queue import Queue

PAGE: Final = 1_000
TRIES: Final = 20
"""Most tries of a write that loses to others; each time it does, another caller has succeeded."""
_NOT_FOR_SCHEDULES: Final = {
    "id": "each tick makes its own",
    "delay": "jobs are added when a tick is due; use 'offset' or another rule",
    "dedupe": "'overlap' says what happens while a job of an earlier tick is not final",
}

T = TypeVar("T")
_encode: Final = msgspec.json.Encoder().encode


class Schedules:
    """The schedules of a queue: rules that make jobs, each with an id of your own."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<Schedules of {self._queue.name!r}>"

    @property
    def sync(self) -> SyncSchedules:
        """The same for code without an event loop."""
        return SyncSchedules(self)

    async def put(self, schedule: str, /, name: str, data: Json = None, **given: Unpack[PutOptions]) -> Schedule:
        """Creates a schedule, or changes the one with this id: the same as `queue.schedule`."""
        named = schedule_id(schedule)
        wanted, immediately = self._wanted(named, name, data, given)

        def change(there: ScheduleState | None, now: Instant) -> tuple[ScheduleState, tuple[NewJob, ...]] | None:
            if there is not None and _is_same(there, wanted):
                return None
            if there is None:
                state = replace(wanted, created_at=now)
            else:
                kept = {"fired": there.fired, "history": there.history, "is_paused": there.is_paused}
                state = replace(wanted, created_at=there.created_at, **kept)
            if immediately and there is None:
                return self._fired_now(named, state, now)
            return state, ()

        stored, _ = await self._change(named, change, puts=True)
        return schedule_of(self._queue.name, stored)

    async def declare(self) -> None:
        """Stores the schedules that decorators of the queue's tasks give, under the names of the tasks."""
        for task in self._queue.tasks.values():
            if task.schedule:
                await self.put(task.name, task.name, {}, **task.schedule)

    async def list(self) -> list[Schedule]:
        """All schedules of the queue, by id. Those that cannot be read are left out, and named in the log."""
        found: list[StoredSchedule] = []
        while True:
            page = await self._queue.store.schedules(
                self._queue.name, after=found[-1].id if found else None, limit=PAGE
            )
            found += page
            if len(page) < PAGE:
                break
        readable: list[Schedule] = []
        for stored in found:
            try:
                readable.append(self._read(stored))
            except StoreCorrupt as damage:
                log.error("%s", damage)
        return readable

    async def get(self, id: str) -> Schedule | None:
        """A schedule by its id; None if it does not exist."""
        found = await self._queue.store.schedules(self._queue.name, [schedule_id(id)])
        return self._read(found[0]) if found else None

    async def pause(self, id: str) -> Schedule:
        """Stops its ticks until it is resumed. Jobs that it made go on."""
        return await self._set_paused(schedule_id(id), paused=True)

    async def resume(self, id: str) -> Schedule:
        """Ends its pause. Ticks in between are not made up for."""
        return await self._set_paused(schedule_id(id), paused=False)

    async def run(self, id: str) -> JobHandle:
        """Makes a job of it now, beside its ticks, also if it is paused; `overlap` holds as for a tick."""
        named = schedule_id(id)

        def change(there: ScheduleState | None, now: Instant) -> tuple[ScheduleState, tuple[NewJob, ...]]:
            state = self._known(named, there)
            job = job_of_tick(self._queue.name, named, state, _id_by_hand(named))
            return state.noted(TickRecord(now, now, job.id)), (job,)

        stored, written = await self._change(named, change)
        schedule = schedule_of(self._queue.name, stored)
        if again := correction(self._decoded(stored), written):
            await self._queue.store.write_schedules(self._queue.name, [again])
        [added] = written.added
        return note_answer(JobHandle(self._queue, added.id, schedule.name, schedule.data), added)

    async def remove(self, id: str) -> bool:
        """Removes it with the jobs of its last ticks that have not begun; False if it does not exist."""
        named = schedule_id(id)
        for _ in range(TRIES):
            found = await self._queue.store.schedules(self._queue.name, [named])
            if not found:
                return False
            try:
                history = self._decoded(found[0]).history
            except StoreCorrupt:
                history = ()
            made = tuple(tick.job for tick in history if tick.job is not None and tick.skipped is None)
            write = ScheduleWrite(named, None, expect=found[0].version, removes=made)
            [written] = await self._queue.store.write_schedules(self._queue.name, [write])
            if written.verdict == "done":
                return True
        raise StoreBusy(self._queue.store.url, f"schedule {named!r} changes all the time")

    def _wanted(self, id: str, name: str, data: Json, given: Mapping[str, Any]) -> tuple[ScheduleState, bool]:
        """The schedule that is asked for, and whether it fires at once when it is created."""
        when = {option: given[option] for option in ScheduleOptions.__optional_keys__ if option in given}
        options = {option: value for option, value in given.items() if option not in when}
        for option, why in _NOT_FOR_SCHEDULES.items():
            if option in options:
                raise InvalidOption(option, f"is not for schedules: {why}")
        refuse_unknown(options, also=sorted(ScheduleOptions.__optional_keys__), beside_data=True)
        immediately = yes_or_no("immediately", when.pop("immediately", False))
        rule, overlap, missed = read_rule(when)
        job = job_of(self._queue, Call(name, data, job_options(options)))
        start_within = None
        dead_letter = webhook = None
        if job.extras is not None:
            if job.extras.start_by is not None:
                raise InvalidOption("expires", "is for a single job if it is an instant: give a duration")
            start_within, dead_letter = job.extras.start_within, job.extras.dead_letter
            webhook = job.extras.webhook
        if webhook is not None:
            check_webhook(self._queue.name, _id_by_hand(id))
        if dead_letter is not None:
            check_dead_letter(dead_letter, self._queue.name, _id_by_hand(id))
        template = Template(
            job.name, job.data, job.options, job.priority, job.lifo, job.tags, start_within, dead_letter, webhook
        )
        return ScheduleState(rule, template, overlap, missed), immediately

    def _fired_now(self, id: str, state: ScheduleState, now: Instant) -> tuple[ScheduleState, tuple[NewJob, ...]]:
        job = job_of_tick(self._queue.name, id, state, tick_id(id, now))
        return replace(state, fired=1).noted(TickRecord(now, now, job.id)), (job,)

    def _known(self, id: str, there: ScheduleState | None) -> ScheduleState:
        if there is None:
            raise ScheduleNotFound(self._queue.name, id)
        return there

    async def _set_paused(self, id: str, *, paused: bool) -> Schedule:
        def change(there: ScheduleState | None, _: Instant) -> tuple[ScheduleState, tuple[NewJob, ...]] | None:
            state = self._known(id, there)
            return None if state.is_paused == paused else (replace(state, is_paused=paused), ())

        stored, _ = await self._change(id, change)
        return schedule_of(self._queue.name, stored)

    def _read(self, stored: StoredSchedule) -> Schedule:
        self._decoded(stored)
        return schedule_of(self._queue.name, stored)

    def _decoded(self, stored: StoredSchedule) -> ScheduleState:
        try:
            return msgspec.json.decode(stored.value, type=ScheduleState)
        except msgspec.MsgspecError as damage:
            problem = f"schedule {stored.id!r} of {self._queue.name!r} cannot be read: remove it, or make it again"
            raise StoreCorrupt(self._queue.store.url, f"{problem} ({damage})") from None

    async def _change(
        self,
        id: str,
        change: Callable[[ScheduleState | None, Instant], tuple[ScheduleState, tuple[NewJob, ...]] | None],
        *,
        puts: bool = False,
    ) -> tuple[StoredSchedule, ScheduleWritten]:
        """Writes what `change` makes of the schedule, again if others came before; nothing if it answers None.

        Its next tick stays, unless its rule or its pause has changed: one that is due is not lost. With `puts` it must
        have a next tick, and one that cannot be read is replaced.
        """
        store, name = self._queue.store, self._queue.name
        for _ in range(TRIES):
            found = await store.schedules(name, [id])
            there = found[0] if found else None
            now = await store.clock()
            try:
                before = None if there is None else self._decoded(there)
            except StoreCorrupt:
                if not puts:
                    raise
                before = None
            changed = change(before, now)
            if changed is None:
                assert there is not None, "what is not there is created"
                return there, ScheduleWritten("done", there)
            state, jobs = changed
            if there is not None and before is not None and _has_same_ticks(before, state):
                next_at = there.next_at
            else:
                next_at = state.next_after(now)
            if puts and next_at is None and not jobs and not state.is_paused:
                raise _no_tick_left(state, now)
            version = 0 if there is None else there.version
            write = ScheduleWrite(id, _encode(state).decode(), next_at, version, jobs)
            [written] = await store.write_schedules(name, [write])
            if written.verdict == "done":
                assert written.schedule is not None, "it was written"
                return written.schedule, written
        raise StoreBusy(store.url, f"schedule {id!r} changes all the time")


class PutOptions(ScheduleOptions, JobOptions, total=False):
    """Options of `queue.schedule`: those of the schedule, and those of its jobs."""


def job_options(given: Mapping[str, Any]) -> JobOptions:
    return cast(JobOptions, dict(given))  # read_options checks it


def _is_same(one: ScheduleState, other: ScheduleState) -> bool:
    return (one.rule, one.template, one.overlap, one.missed) == (
        other.rule,
        other.template,
        other.overlap,
        other.missed,
    )


def _has_same_ticks(one: ScheduleState, other: ScheduleState) -> bool:
    return (one.rule, one.is_paused) == (other.rule, other.is_paused)


def _no_tick_left(state: ScheduleState, now: Instant) -> InvalidOption:
    rule, none_left = state.rule, f"there is no tick left: {state.rule.explain()}"
    if rule.limit is not None and state.fired >= rule.limit:
        return InvalidOption("limit", f"cannot be {rule.limit} after {state.fired} ticks: {none_left}")
    if rule.end is not None:
        return InvalidOption(
            "end", f"{'has passed' if rule.end <= now else 'comes before the first tick'}, so {none_left}"
        )
    return InvalidOption("cron", f"never comes again: {none_left}")


def _id_by_hand(schedule: str) -> str:
    """The id of a job that `run` makes; no job of a schedule has a longer one."""
    return f"{SCHEDULE_PREFIX}{schedule}:{new_id()}"
