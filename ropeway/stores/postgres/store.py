"""The verbs of the contract, as they are awaited. Their work is done by the functions of the `sql` folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from ...errors import InvalidOption, StoreClosed, StoreUnavailable
from ...job.codec import JsonText
from ...job.events import DOUBLE_MOVES, EVENTS_KEPT
from ...job.instants import LAST_INSTANT, Instant, Milliseconds
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.states import STATES, State
from ...store import forks
from ...store.contract import Listener
from ...store.inspection import Inspection
from ...store.letters import ANSWERS, answers_of
from ...store.transactions import Inside, InsideHere
from ...store.values import (
    BATCH,
    Added,
    Answer,
    Change,
    Claimed,
    ClaimRequest,
    Cleaned,
    Counts,
    Edit,
    Entries,
    History,
    Lock,
    LogPage,
    Metric,
    Page,
    Query,
    Record,
    Remembered,
    Revoked,
    RevokedLock,
    Settings,
    Settled,
    StallRules,
    Ticked,
    Topic,
)
from . import adding, looking
from .calls import Calls
from .connection import migrate
from .drivers import driver_here_of, driver_of
from .encoding import DEFAULTS, GIVEN_UP_FOR, HELD, as_json, claimed_of, request_of
from .floors import Floors
from .here import Everywhere, Here
from .inside import Joined, JoinedHere, Own, OwnHere
from .inspecting import inspect
from .link import Row, Statement
from .parameters import NULL, Parameter, amount, number, numbers, text, texts, truth, truths
from .settling import Settlement
from .spares import SparesHere
from .statements import in_schema
from .target import Target
from .wake import Ear, PostgresListener

FOLD_AFTER: Final = 256
"""Calls of one handle on one queue after which it folds what they wrote, in case nobody else does."""

TRIM_ONCE_IN: Final = 256
"""Events that are published; by chance, because most of those who publish a few make no more calls."""


class PostgresStore:
    """Jobs in a schema of one database, which any number of machines may use at once."""

    shares_from: Final = 40
    """Measured: each call takes as long as some twenty jobs more."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._everywhere = Everywhere(target)
        self._statements: dict[str, Statement] = {}
        self._is_closed = False
        self._steps: dict[str, int] = {}
        self._calls = Calls(target)
        self._spares = SparesHere(target)
        self._prepare = Statement(in_schema("SELECT ropeway.queue_id($1), current_database()", target.schema))
        self._floors = Floors()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`postgresql://user@host:5432/database`; see `Target` for what else it may say."""
        return cls(Target.from_url(url, create=create))

    def sibling(self) -> Self:
        return type(self)(self._target)

    def inspect(self) -> Inspection:
        return inspect(self._target)

    async def migrate(self) -> None:
        """Makes or migrates the schema, also where the URL leaves that to whoever calls this."""
        self._usable()
        await migrate(self._target)

    async def open(self) -> None:
        await (await self._settled()).lanes.open()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        forks.notice()
        self._spares.close()
        await self._everywhere.close()

    def _usable(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.url, "this handle was closed: make another with connect()")
        forks.notice()

    def _here(self) -> Here:
        self._usable()
        return self._everywhere.here()

    async def _settled(self) -> Here:
        here = self._here()
        if not here.is_settled:
            await here.settle()
        return here

    def _statement(self, verb: str, parameters: int) -> Statement:
        statement = self._statements.get(verb)
        if statement is None:
            places = ", ".join(f"${n}" for n in range(1, parameters + 1))
            # The verb is a name of ours, and the schema was checked.
            sql = in_schema(f"SELECT * FROM ropeway.{verb}({places})", self._target.schema)  # noqa: S608
            statement = self._statements[verb] = Statement(sql)
        return statement

    async def _ask(self, verb: str, *parameters: Parameter) -> list[Row]:
        """Calls the function of a verb that only looks, or wakes nobody."""
        return await (await self._settled()).lanes.call(self._statement(verb, len(parameters)), parameters)

    async def _act(
        self,
        verb: str,
        queues: Sequence[str],
        now: Instant | None,
        *parameters: Parameter,
        is_repeat: bool = False,
    ) -> list[Any]:
        """Calls the function of a verb that writes a step; answers what it gave without its wakes, which come last."""
        here = await self._settled()
        may_wake = here.bell.may_ring(queues)
        whole = (*parameters, number(now), truth(may_wake))
        statement = self._statement(verb, len(whole))
        [(*answer, wakes)] = await here.lanes.call(statement, whole, is_repeat=is_repeat)
        if wakes:
            here.bell.note(queues, wakes)
        return answer

    async def _fold_now_and_then(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._steps[queue] = steps = self._steps.get(queue, 0) + 1
            if steps >= FOLD_AFTER:
                self._steps[queue] = 0
                # The add itself is stored, and workers fold too.
                with suppress(StoreUnavailable):
                    await self._ask("fold_soon", text(queue))

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        if not any(bundles):
            self._usable()
            return [[] for _ in bundles]
        arguments = adding.arguments_of(bundles)
        [letters] = await self._act("add", arguments.queues, now, *arguments.parameters())
        await self._fold_now_and_then(arguments.queues)
        return adding.answers_of(bundles, letters)

    # Share a transaction

    async def prepare(self, queue: str) -> None:
        # In a transaction of its own: made in one that stays open, the queue would hold up all who use it first.
        here = await self._settled()
        if queue not in self._calls.queue_ids:
            [(queue_id, database)] = await here.lanes.call(self._prepare, (text(queue),))
            self._calls.database = database
            self._calls.queue_ids[queue] = queue_id

    def own(self) -> Inside:
        return Own(self._calls, self._here().spares, self.url)

    def own_here(self) -> InsideHere:
        self._usable()
        return OwnHere(self._calls, self._spares, self.url)

    def join(self, tx: object) -> Inside:
        self._usable()
        return Joined(self._calls, tx, driver_of(tx))

    def join_here(self, tx: object) -> InsideHere:
        self._usable()
        return JoinedHere(self._calls, tx, driver_here_of(tx))

    # Run

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        floor = self._floors.parameters(request)
        instant, again_at, *jobs, passed = await self._act(
            "claim", [request.queue], now, text(request.queue), *request_of(request), *floor, is_repeat=request.repeat
        )
        claimed = claimed_of(request, instant, again_at, jobs)
        self._floors.note(request, claimed, passed, was_whole=floor[2] is NULL)
        return claimed

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        settlement = Settlement(outcomes)
        floor = self._floors.parameters(then)
        done, others, instant, again_at, *jobs, passed = await self._act(
            "settle", [queue], now, text(queue), *settlement.parameters, *request_of(then), *floor
        )
        answers = settlement.answers(done, others)
        if then is None:
            return Settled(answers)
        claimed = claimed_of(then, instant, again_at, jobs)
        self._floors.note(then, claimed, passed, was_whole=floor[2] is NULL)
        return Settled(answers, claimed)

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        ids, tokens = texts([held.id for held in locks]), texts([held.token for held in locks])
        [(letters,)] = await self._ask("renew", text(queue), ids, tokens, number(min(lock, LAST_INSTANT)), number(now))
        return [HELD] * len(locks) if letters is None else answers_of(letters)

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]:
        [letters] = await self._act(
            "update",
            [queue],
            now,
            text(queue),
            texts([change.id for change in changes]),
            texts([change.token for change in changes]),
            texts([change.progress for change in changes]),
            texts([change.data for change in changes]),
            texts([as_json(change.log).decode() if change.log else None for change in changes]),
            numbers([change.keep_logs for change in changes]),
            truths([change.alone for change in changes]),
        )
        return answers_of(letters)

    # Keep in order

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        ends = dict(rules.ends)
        promoted, stalled, given_up, removed, next_at, more, at = await self._act(
            "tick",
            [queue],
            now,
            text(queue),
            number(rules.max_stalled_count),
            truth(rules.on_stalled == "fail"),
            truth(rules.counts_as_attempt),
            GIVEN_UP_FOR,
            texts(list(ends)),
            texts(list(ends.values())),
            DEFAULTS,
            number(EVENTS_KEPT),
        )
        return Ticked(promoted, stalled, given_up, removed, next_at, more=more, now=at)

    # Operate

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        [letters] = await self._act("cancel", [queue], now, text(queue), texts(ids), text(reason), DEFAULTS)
        return answers_of(letters)

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        [letters] = await self._act("retry", [queue], now, text(queue), texts(ids), truth(reset))
        return answers_of(letters)

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]:
        [letters] = await self._act("promote", [queue], now, text(queue), texts(ids))
        return answers_of(letters)

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]:
        [letters] = await self._act(
            "change",
            [queue],
            now,
            text(queue),
            texts([edit.id for edit in edits]),
            numbers([edit.priority for edit in edits]),
            truths([edit.lifo for edit in edits]),
            numbers([edit.delay for edit in edits]),
            numbers([edit.due_at for edit in edits]),
            texts([edit.data for edit in edits]),
        )
        return answers_of(letters)

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        [letters] = await self._act("remove", [queue], now, text(queue), texts(ids), truth(force))
        return answers_of(letters)

    async def configure(
        self,
        queue: str,
        *,
        pause: bool | None = None,
        pause_names: Sequence[str] = (),
        resume_names: Sequence[str] = (),
        max_active: int | None = None,
        now: Instant | None = None,
    ) -> Settings:
        is_paused, names, limit = await self._act(
            "configure",
            [queue],
            now,
            text(queue),
            truth(pause),
            texts(pause_names),
            texts(resume_names),
            number(max_active),
        )
        return Settings(is_paused, tuple(names), limit)

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        [(letters,)] = await self._ask("clear_log", text(queue), text(id), amount(keep))
        return ANSWERS[letters]

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        event = text(as_json(name).decode()), text(data)
        await self._act("publish", [queue], now, text(queue), *event, number(EVENTS_KEPT), number(TRIM_ONCE_IN))

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        await self._ask("trim_events", text(queue), amount(max(1, keep)), texts(DOUBLE_MOVES))

    async def clean(
        self,
        queue: str,
        state: State,
        *,
        older_than: Milliseconds = 0,
        limit: int = 1_000,
        now: Instant | None = None,
    ) -> Cleaned:
        if state == "active":
            raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
        most = number(max(0, min(limit, BATCH)))
        ids, more = await self._act("clean", [queue], now, text(queue), text(state), number(older_than), most)
        return Cleaned(ids, more=more)

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        [(ids, more, active)] = await self._ask("obliterate", text(queue), truth(force), number(now))
        return Cleaned(ids, more=more, active=active)

    # Look

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
        known = {row[1]: JobRecord(*row) for row in await self._ask("get", text(queue), texts(ids))}
        return [known.get(id) for id in ids]

    async def find(self, query: Query) -> Page:
        return await looking.find(partial(self._find_in, query), query)

    async def _find_in(self, query: Query, state: State, most: int, first: int, second: int) -> list[Row]:
        return await self._ask(
            "find",
            text(query.queue),
            text(state),
            text(query.name),
            number(most),
            number(first),
            number(second),
            truth(query.newest_first),
        )

    async def count(self, queue: str) -> Counts:
        [counts] = await self._ask("count", text(queue))
        return {state: number or 0 for state, number in zip(STATES, counts, strict=True)}

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        return [Metric(*row) for row in await self._ask("metrics", text(queue), number(since))]

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        [(counts,)] = await self._ask("count_waiting", text(queue), numbers(priorities))
        return list(counts)

    async def history(self, queue: str, id: str) -> History | None:
        return looking.history_of(await self._ask("history", text(queue), text(id)))

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        place = NULL if after is None else amount(after)
        # One more than fits says whether there is another page.
        rows = await self._ask("log", text(queue), text(id), place, amount(limit + 1), truth(newest_first))
        return looking.log_of(rows, limit)

    async def settings(self, queue: str) -> Settings:
        for is_paused, names, limit in await self._ask("settings", text(queue)):
            return Settings(is_paused, tuple(names), limit)
        return Settings()

    async def queues(self) -> list[str]:
        [(names,)] = await self._ask("queues")
        return list(names)

    async def clock(self) -> Instant:
        [(now,)] = await self._ask("clock")
        return int(now)

    # Hear

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        place = looking.read_place(after) if after not in (None, "now") and after is not None else None
        most = 0 if after == "now" else limit + 1
        [row] = await self._ask("events", text(queue), number(None if place is None else place.step), number(most))
        found = looking.entries_of(row, after, inclusive=inclusive, limit=limit)
        if found.gap and found.cursor == after:
            # What was asked for is not there: what is there begins at the oldest.
            [row] = await self._ask("events", text(queue), number(None), number(most))
            found = looking.entries_of(row, None, inclusive=False, limit=limit)
            return Entries(found.entries, found.cursor, gap=True)
        return found

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 19
        last = int(after) if is_known and after is not None else None if after is None else 0
        [(ids, tokens, whys, newest)] = await self._ask("revoked", text(queue), number(last))
        if after is None:
            return Revoked([], str(newest))
        return Revoked(
            [RevokedLock(*lock) for lock in zip(ids or (), tokens or (), whys or (), strict=True)], str(newest)
        )

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        self._usable()
        ear = self._ear_of_worker if topic == "jobs" else lambda: self._here().ear
        return PostgresListener(ear, topic, queues, self._usable, self.url)

    def _ear_of_worker(self) -> Ear:
        """Whoever listens to jobs is going to claim some."""
        here = self._here()
        here.make_ready()
        return here.ear

    # Remember

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        [(is_done, value, version, expires_at)] = await self._ask(
            "remember",
            text(record.kind),
            text(record.key),
            text(record.value),
            number(expect),
            number(lasting),
            number(now),
        )
        stored = None if version is None else Record(record.kind, record.key, value, version, expires_at)
        return Remembered("done" if is_done else "lost", stored)

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        return [Record(kind, *row) for row in await self._ask("recall", text(kind), text(key), number(now))]

    async def forget(self, kind: str, key: str) -> bool:
        [(was_there,)] = await self._ask("forget", text(kind), text(key))
        return bool(was_there)
