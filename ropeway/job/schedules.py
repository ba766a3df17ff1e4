"""Schedules: rules that make jobs at certain instants, their ticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from ..errors import InvalidOption
from .codec import JsonText
from .cron import check_cron, check_zone, cron_instants, cron_instants_back, explain_cron
from .dedupe import DedupeMode, DedupeRule
from .durations import Duration, milliseconds
from .extras import Extras, WebhookRule
from .instants import LAST_INSTANT, Instant, Milliseconds, instant_of
from .numbers import whole
from .record import NewJob

Overlap: TypeAlias = Literal["allow", "skip", "queue", "cancel"]
"""What a tick does while a job of an earlier one is not final: runs beside it, is left out, waits, or cancels it."""
Missed: TypeAlias = Literal["once", "all", "none"]
"""What becomes of ticks at which no worker ran: one job for all of them, one each (`MOST_MISSED` at most), or none."""

OVERLAPS: Final[tuple[Overlap, ...]] = get_args(Overlap)
MISSED: Final[tuple[Missed, ...]] = get_args(Missed)
DEDUPE_OF: Final[dict[Overlap, DedupeMode]] = {"skip": "until-final", "queue": "keep-last", "cancel": "supersede"}
"""Overlap is a dedupe key that the jobs of a schedule share."""
SHORTEST: Final[Milliseconds] = 1_000
MOST_MISSED: Final = 100
LATE_AFTER: Final[Milliseconds] = 60_000
"""A tick that is later than this was missed; a worker that is merely busy or restarted is not so late."""
HISTORY: Final = 30
"""How many ticks a schedule remembers."""
NOT_FINAL: Final = "an earlier job is not final"
"""Why a tick made no job, by `overlap`."""
MISSED_TICK: Final = "missed"
SCHEDULE_PREFIX: Final = "schedule:"


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a schedule fires: by a cron expression in a time zone, or every so often."""

    cron: str | None = None
    tz: str = "UTC"
    every: Milliseconds | None = None
    offset: Milliseconds = 0
    """With `every`: slots are at this distance from its multiples since 1970."""
    start: Instant | None = None
    end: Instant | None = None
    limit: int | None = None
    """Number of ticks in all."""

    def instants(self, after: Instant) -> Iterator[Instant]:
        """Its ticks after an instant, whatever its limit."""
        if self.start is not None:
            after = max(after, self.start - 1)
        last = LAST_INSTANT if self.end is None else self.end
        every = self.every
        if every is None:
            assert self.cron is not None, "it has one of the two"
            found: Iterator[Instant] = cron_instants(self.cron, self.tz, after)
        else:
            first = after + 1 + (self.offset - after - 1) % every
            found = iter(range(first, last + 1, every))
        return takewhile(lambda instant: instant <= last, found)

    def upcoming(self, after: Instant, count: int, fired: int = 0) -> list[Instant]:
        """Its next ticks after an instant, for a schedule that had `fired` ticks; fewer than `count` if it ends."""
        left = count if self.limit is None else min(count, self.limit - fired)
        return list(islice(self.instants(after), max(0, left)))

    def newest_instants(self, up_to: Instant) -> Iterator[Instant]:
        """Its ticks up to an instant, the newest first."""
        first = 0 if self.start is None else self.start
        up_to = up_to if self.end is None else min(up_to, self.end)
        if self.every is not None:
            newest = up_to - (up_to - self.offset) % self.every
            found: Iterator[Instant] = iter(range(newest, first - 1, -self.every))
        else:
            assert self.cron is not None, "it has one of the two"
            found = cron_instants_back(self.cron, self.tz, up_to)
        return takewhile(lambda instant: instant >= first, found)

    def explain(self) -> str:
        """The rule in plain words."""
        if self.every is not None:
            return f"every {_words(self.every)}" + (f", {_words(self.offset)} later" if self.offset else "")
        assert self.cron is not None, "it has one of the two"
        words = explain_cron(self.cron)
        words = words[:1].lower() + words[1:]
        return words if self.tz == "UTC" else f"{words}, {self.tz.rpartition('/')[2].replace('_', ' ')}"


class Template(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job that each tick makes."""

    name: str
    data: JsonText = "null"
    options: JsonText = "{}"
    priority: int = 0
    lifo: bool = False
    tags: tuple[str, ...] = ()
    start_within: Milliseconds | None = None
    dead_letter: str | None = None
    webhook: WebhookRule | None = None


class TickRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tick of a schedule in its history."""

    at: Instant
    """The instant it stands for."""
    fired_at: Instant
    job: str | None = None
    """The id of the job that it made; or, if it was skipped, of the one because of which."""
    skipped: str | None = None
    """Why it made no job."""


class ScheduleState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schedule as it is stored; stores do not read it."""

    rule: Rule
    template: Template
    overlap: Overlap = "allow"
    missed: Missed = "once"
    is_paused: bool = False
    fired: int = 0
    """Number of ticks so far."""
    created_at: Instant = 0
    history: tuple[TickRecord, ...] = ()
    """The newest last."""

    def next_after(self, instant: Instant) -> Instant | None:
        """Its next tick; None if it is paused or has ended."""
        if self.is_paused or (self.rule.limit is not None and self.fired >= self.rule.limit):
            return None
        return next(self.rule.instants(instant), None)

    def noted(self, *ticks: TickRecord) -> ScheduleState:
        return replace(self, history=(*self.history, *ticks)[-HISTORY:])

    def skipping(self, holders: Sequence[str | None]) -> ScheduleState:
        """The same, where the newest ticks made no job: `holders` has the job because of which, or None, for each."""
        history = [*self.history]
        # By their distance from the newest: the history may be shorter.
        for back, holder in enumerate(reversed(holders[-len(history) :]), 1):
            if holder is not None:
                history[-back] = replace(history[-back], job=holder, skipped=NOT_FINAL)
        return replace(self, history=tuple(history))


class Firing(msgspec.Struct, frozen=True):
    """What becomes of a schedule that is due."""

    state: ScheduleState
    next_at: Instant | None
    jobs: tuple[NewJob, ...]


def fire(queue: str, id: str, state: ScheduleState, due: Instant, now: Instant) -> Firing:
    """Moves a due schedule on: the jobs of its ticks up to now, by its rule for missed ones, and its next tick."""
    ticks = _due_ticks(state, due, now)
    run, missed = _chosen(state, ticks, now)
    if state.rule.limit is not None:
        run = run[: state.rule.limit - state.fired]
    noted = [TickRecord(at, now, skipped=MISSED_TICK) for at in missed[-1:]]
    noted += [TickRecord(at, now, tick_id(id, at)) for at in run]
    moved = replace(state, fired=state.fired + len(run)).noted(*noted)
    jobs = tuple(job_of_tick(queue, id, state, tick_id(id, at)) for at in run)
    return Firing(moved, moved.next_after(now), jobs)


def tick_id(schedule: str, at: Instant) -> str:
    """The id of the job of a tick: whoever makes it, it is the same job."""
    return f"{SCHEDULE_PREFIX}{schedule}:{at}"


def job_of_tick(queue: str, id: str, state: ScheduleState, job_id: str) -> NewJob:
    template = state.template
    mode = DEDUPE_OF.get(state.overlap)
    dedupe = None if mode is None else DedupeRule(f"{SCHEDULE_PREFIX}{id}", mode)
    extras = Extras(
        start_within=template.start_within,
        dead_letter=template.dead_letter,
        dedupe=dedupe,
        schedule=id,
        webhook=template.webhook,
    )
    return NewJob(
        queue,
        job_id,
        template.name,
        template.data,
        template.options,
        template.priority,
        template.lifo,
        tags=template.tags,
        extras=extras,
    )


def _due_ticks(state: ScheduleState, due: Instant, now: Instant) -> list[Instant]:
    """Its ticks from the one that is due up to now, the oldest first; of very many only the newest."""
    newest = list(islice(takewhile(lambda at: at > due, state.rule.newest_instants(now)), MOST_MISSED))
    return [due, *reversed(newest)][-MOST_MISSED:]


def _chosen(state: ScheduleState, ticks: list[Instant], now: Instant) -> tuple[list[Instant], list[Instant]]:
    """Which of the due ticks run, and which were missed."""
    if state.missed == "all":
        return ticks, []
    if state.missed == "none" and ticks[-1] < now - LATE_AFTER:
        return [], ticks
    return ticks[-1:], ticks[:-1]


def rule_of(
    *,
    cron: str | None = None,
    tz: str | None = None,
    every: Duration | None = None,
    offset: Duration | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int | None = None,
) -> Rule:
    """Checks what users give."""
    if (cron is None) == (every is None):
        missing = "is missing: neither 'cron' nor 'every' was given"
        problem = missing if cron is None else "and 'every' were both given: give one of them"
        raise InvalidOption("cron", problem)
    if every is None and offset is not None:
        raise InvalidOption("offset", "is for 'every': a cron expression says its times itself")
    if cron is None and tz is not None:
        raise InvalidOption("tz", "is for 'cron': 'every' counts from 1970 in UTC; use 'offset' to shift it")
    rule = Rule(
        None if cron is None else check_cron(cron),
        "UTC" if tz is None else check_zone(tz),
        None if every is None else _interval(every),
        0 if offset is None else milliseconds(offset, "offset"),
        None if start is None else instant_of(start, "start"),
        None if end is None else instant_of(end, "end"),
        None if limit is None else whole("limit", limit, 1),
    )
    if rule.every is not None and rule.offset >= rule.every:
        raise InvalidOption("offset", "is as long as 'every', or longer: use a shorter one")
    if rule.end is not None and rule.end <= (rule.start or 0):
        raise InvalidOption("end", "is not after 'start'")
    return rule


def _interval(given: Duration) -> Milliseconds:
    every = milliseconds(given, "every")
    if every < SHORTEST:
        raise InvalidOption("every", f"cannot be shorter than {SHORTEST // 1000} s: let one job do more at once")
    return every


_UNITS: Final = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"), (1, "millisecond"))


def _words(length: Milliseconds) -> str:
    """A duration in words: "day", "30 seconds", "1 hour 30 minutes"."""
    parts = []
    for unit, word in _UNITS:
        number, length = divmod(length, unit)
        if number:
            parts.append(f"{number} {word}{'s' if number > 1 else ''}")
    return " ".join(parts).removeprefix("1 ") if len(parts) == 1 else " ".join(parts)
