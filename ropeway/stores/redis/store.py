"""The verbs of the contract, as they are awaited. Their work is done by the scripts of the `lua` folder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Self

import msgspec

from ...errors import InvalidOption, StoreClosed
from ...job.codec import JsonText
from ...job.events import DOUBLE_MOVES
from ...job.ids import new_token
from ...job.instants import LAST_INSTANT, Instant, Milliseconds
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.stalls import GIVEN_UP
from ...job.states import FINAL, State
from ...store import forks
from ...store.contract import Listener
from ...store.doubt import in_doubt
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
    Why,
)
from . import adding, looking
from .claiming import ClaimingListener
from .clients import target_of
from .encoding import (
    DEFAULTS,
    answers_of,
    as_json,
    bounded,
    change_of,
    claimed_of,
    given,
    pack,
    records_or_none,
    request_of,
)
from .failures import reading
from .finding import find, oldest
from .here import Everywhere, Here
from .ids import all_shortened, shortened, text_of, texts_of
from .keys import Keys
from .link import Argument
from .scripts import SCRIPTS
from .settling import in_order, settlement
from .target import Target
from .wake import RedisListener

_ADD_ONE = SCRIPTS["add_one"]
_revoked = msgspec.msgpack.Decoder(tuple[int, int, str, str, Why]).decode


class RedisStore:
    """Jobs in Redis, which any number of machines may use at once."""

    shares_from: Final = 6
    """Measured: what is on its way over the network, or being read here, costs the server nothing."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._keys = Keys(target.prefix)
        self._everywhere = Everywhere(target)
        self._is_closed = False
        self._registered: set[str] = set()
        self._life: bytes | None = None
        """Which life of the store this handle has seen."""

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> RedisStore:  # noqa: ARG003 - a server is there or not
        """`redis://host:6379/0`; see `Target` for what else it may say."""
        return _store_at(Target.from_url(url))

    @classmethod
    def from_client(cls, client: object) -> RedisStore:
        """Connects as a client of redis-py does, and leaves the client alone."""
        return _store_at(target_of(client))

    def sibling(self) -> Self:
        return type(self)(self._target)

    async def open(self) -> None:
        await (await self._settled()).commands.open()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        forks.notice()
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

    async def _execute(self, command: str, key: str, *arguments: Argument) -> Any:
        return await (await self._settled()).commands.execute(command, key, *arguments)

    async def _run(self, verb: str, queue: str, *arguments: Any) -> Any:
        """Runs a script on one queue."""
        return await self._call(verb, (self._keys.queue(queue),), pack(arguments))

    async def _run_packed(self, queue: str, verb: str, *arguments: bytes) -> Any:
        return await self._call(verb, (self._keys.queue(queue),), *arguments)

    async def _call(self, verb: str, keys: tuple[str, ...], *arguments: Argument) -> Any:
        return await (await self._settled()).commands.run(SCRIPTS[verb], keys, *arguments)

    async def _register(self, queues: Sequence[str]) -> None:
        """Notes that these queues may exist: `queues` looks there first."""
        if new := [queue for queue in queues if queue not in self._registered]:
            await self._execute("SADD", self._keys.queues, *new)
            self._registered.update(new)

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        if job := adding.alone(bundles):
            # Written out here: for a lone job each further step is felt.
            here = self._here()
            if not here.is_settled:
                await here.settle()
            if job.queue not in self._registered:
                await self._register([job.queue])
            keys = (self._keys.queue(job.queue),)
            answer = await here.commands.run(_ADD_ONE, keys, *adding.arguments_of(job, now))
            if answer == b"c":
                return [[Added(job.id, "created")]]
            letters, new = answer
            await self._notice_new([job.queue for _ in new])
            return adding.answers_of(bundles, letters.decode())
        load = adding.Load(self._keys, bundles, now)
        if not load.queues:
            self._usable()
            return [[] for _ in bundles]
        await self._register(load.queues)
        letters, new = await self._call("add", load.keys, *load.arguments)
        await self._notice_new([load.queues[number - 1] for number in new])
        return adding.answers_of(bundles, letters.decode())

    async def _notice_new(self, queues: Sequence[str]) -> None:
        """A queue that is new although it was noted: somebody emptied the server."""
        if queues:
            self._registered.difference_update(queues)
            with in_doubt():
                await self._register(queues)

    # Run

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        answer = await self._run("claim", request.queue, given(now), request_of(request))
        with reading(self.url):
            return claimed_of(request, answer)

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        packed, ordered = settlement(outcomes, then, now)
        letters, claimed = await self._call("settle", (self._keys.queue(queue),), packed)
        answers = in_order(outcomes, ordered, answers_of(letters))
        with reading(self.url):
            return Settled(answers, claimed_of(then, claimed) if then else None)

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        held = [(shortened(lock.id), lock.token) for lock in locks]
        return answers_of(await self._run("renew", queue, given(now), held, min(lock, LAST_INSTANT)))

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]:
        packed = [change_of(change) for change in changes]
        return answers_of(await self._run("update", queue, given(now), packed))

    # Keep in order

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        return self._ticked(*await asyncio.gather(self._tick_queue(queue, rules, now), self._expire_records(now)))

    async def _tick_queue(self, queue: str, rules: StallRules, now: Instant | None) -> list[Any]:
        answer: list[Any] = await self._run(
            "tick",
            queue,
            given(now),
            rules.max_stalled_count,
            rules.on_stalled == "fail",
            rules.counts_as_attempt,
            GIVEN_UP,
            dict(rules.ends),
            DEFAULTS,
        )
        return answer

    async def _expire_records(self, now: Instant | None) -> tuple[int, bytes]:
        """How many it removed, and the name of the store's life. Records are in a slot of their own."""
        keys = self._keys.expiring, self._keys.kinds, self._keys.life
        expired, life = await self._call("expire_records", keys, pack((given(now), new_token())))
        return expired, life

    def _ticked(self, answer: list[Any], records: tuple[int, bytes] | None) -> Ticked:
        expired, life = records or (0, self._life)
        known, self._life = self._life, life
        promoted, stalled, given_up, removed, next_at, more, at, _ = answer
        return Ticked(
            promoted,
            texts_of(stalled),
            texts_of(given_up),
            removed,
            next_at,
            more=bool(more) or expired == BATCH,
            now=at,
            reset=known not in (None, life),
        )

    # Operate

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        words = (False, False) if reason is None else (reason, as_json(reason).decode())
        return answers_of(await self._run("cancel", queue, given(now), all_shortened(ids), *words, DEFAULTS))

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return answers_of(await self._run("retry", queue, given(now), all_shortened(ids), reset))

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]:
        return answers_of(await self._run("promote", queue, given(now), all_shortened(ids)))

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]:
        packed = [(shortened(edit.id), *msgspec.structs.astuple(edit)[1:]) for edit in edits]
        return answers_of(await self._run("change", queue, given(now), packed))

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return answers_of(await self._run("remove", queue, given(now), all_shortened(ids), force))

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
        to_pause, to_resume = (
            [(name, as_json(name).decode()) for name in names] for names in (pause_names, resume_names)
        )
        await self._register([queue])
        answer = await self._run("configure", queue, given(now), pause, to_pause, to_resume, max_active)
        is_paused, names, limit, is_new = answer
        await self._notice_new([queue] if is_new else [])
        return Settings(bool(is_paused), tuple(sorted(name.decode() for name in names)), limit or None)

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        [answer] = answers_of(await self._run("clear_log", queue, shortened(id), bounded(max(0, keep))))
        return answer

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        # Whoever adds the first job finds a row, and would not note the queue again after somebody emptied the server.
        await self._register([queue])
        detail = f'{{"name":{as_json(name).decode()},"data":{data}}}'
        is_new = await self._run("publish", queue, given(now), detail)
        await self._notice_new([queue] if is_new else [])

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        await self._run("trim_events", queue, bounded(max(1, keep)), DOUBLE_MOVES)

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
        limit = max(0, min(limit, BATCH))
        ids: list[str] | bool = False
        more = False
        if state not in FINAL:
            until = (now if now is not None else await self._call("clock", (self._keys.queue(queue),))) - older_than
            found = await oldest(self._run, queue, state, until, limit + 1)
            ids, more = all_shortened(found[:limit]), len(found) > limit
        removed, others = await self._run("clean", queue, given(now), state, older_than, limit, ids)
        return Cleaned(texts_of(removed), more=more or bool(others))

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        removed, more, active = await self._run("obliterate", queue, given(now), force)
        return Cleaned(texts_of(removed), more=bool(more), active=active)

    # Look

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
        packed = await self._run("get", queue, queue, all_shortened(ids))
        with reading(self.url):
            return records_or_none(packed)

    async def find(self, query: Query) -> Page:
        with reading(self.url):
            return await find(self._run, query)

    async def count(self, queue: str) -> Counts:
        return (await self._row(queue)).counts

    async def settings(self, queue: str) -> Settings:
        return (await self._row(queue)).settings

    async def _row(self, queue: str) -> looking.Row:
        stored = await self._execute("GET", self._keys.queue(queue))
        with reading(self.url):
            return looking.row_of(stored)

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        return looking.metrics_of(await self._run("metrics", queue, since, looking.METRICS))

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        numbers: list[int] = await self._run("count_waiting", queue, [bounded(priority) for priority in priorities])
        return numbers

    async def history(self, queue: str, id: str) -> History | None:
        answer = await self._run("history", queue, shortened(id))
        with reading(self.url):
            return looking.history_of(answer)

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        place = False if after is None else bounded(after)
        answer = await self._run("log", queue, shortened(id), place, bounded(limit), newest_first)
        with reading(self.url):
            return looking.log_of(answer, newest_first=newest_first)

    async def queues(self) -> list[str]:
        names = sorted(name.decode() for name in await self._execute("SMEMBERS", self._keys.queues))
        rows = await asyncio.gather(*(self._row(name) for name in names))
        return [name for name, row in zip(names, rows, strict=True) if row.exists]

    async def clock(self) -> Instant:
        return int(await self._call("clock", (self._keys.queues,)))

    # Hear

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        is_given = after not in (None, "now")
        number, epoch = looking.read_event_id(after) if is_given and after is not None else (False, False)
        most = 0 if after == "now" else limit
        return looking.entries_of(await self._run("events", queue, number, epoch, inclusive, most, is_given))

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 16
        number = int(after) if is_known and after is not None else False if after is None else 0
        locks, newest = await self._run("revoked", queue, number)
        found = [_revoked(lock) for lock in locks]
        if after is None:
            return Revoked([], newest.decode())
        revoked = [RevokedLock(text_of(id), token, why) for _, _, id, token, why in found]
        return Revoked(revoked, str(found[-1][0]) if found else after)

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        self._usable()
        channels = self._channels(topic, queues)
        if topic == "jobs" and len(queues) == 1:
            return ClaimingListener(
                lambda: self._here().ear,
                channels,
                self._usable,
                self.url,
                partial(self._run_packed, queues[0]),
                self.settle,
            )
        return RedisListener(lambda: self._here().ear, channels, self._usable, self.url)

    def _channels(self, topic: Topic, queues: Sequence[str]) -> list[str]:
        return [channel for queue in queues for channel in self._keys.channels(topic, queue)]

    # Remember

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        arguments = (
            given(now),
            record.kind,
            record.key,
            record.value,
            False if expect is None else expect,
            False if lasting is None else lasting,
        )
        keys = self._keys.kind(record.kind), self._keys.expiring
        is_done, stored = await self._call("remember", keys, pack(arguments))
        current = looking.record_of(record.kind, record.key, stored) if stored else None
        return Remembered("done" if is_done else "lost", current)

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        arguments = pack((given(now), False if key is None else key))
        place = self._keys.kind(kind)
        instant, found = await self._call("recall", (place,), arguments)
        records = []
        for name, packed in zip(found[::2], found[1::2], strict=True):
            with reading(self.url, f"the record {name.decode(errors='replace')!r} in {place}"):
                records.append(looking.record_of(kind, name.decode(), packed))
        return [record for record in records if record.expires_at is None or record.expires_at > instant]

    async def forget(self, kind: str, key: str) -> bool:
        return bool(await self._call("forget", (self._keys.kind(kind), self._keys.expiring), pack((kind, key))))


class ServerStore(RedisStore):
    """Jobs in one server that is always at the same place, where a thread without a loop can find it by itself."""

    def add_here(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        # Written beside `add` and not shared with it: a signal that raises between the making of a coroutine and its
        # first step leaves one that was never awaited.
        self._usable()
        links = self._everywhere.blocking
        if job := adding.alone(bundles):
            if job.queue not in self._registered:
                self._register_here([job.queue])
            keys = (self._keys.queue(job.queue),)
            answer = links.run(_ADD_ONE, keys, *adding.arguments_of(job, now))
            if answer == b"c":
                return [[Added(job.id, "created")]]
            queues = [job.queue]
        else:
            load = adding.Load(self._keys, bundles, now)
            if not load.queues:
                return [[] for _ in bundles]
            self._register_here(load.queues)
            answer, queues = links.run(SCRIPTS["add"], load.keys, *load.arguments), load.queues
        letters, new = answer
        if new:
            emptied = [queues[number - 1] for number in new]
            self._registered.difference_update(emptied)
            with in_doubt():
                self._register_here(emptied)
        return adding.answers_of(bundles, letters.decode())

    def _register_here(self, queues: Sequence[str]) -> None:
        if new := [queue for queue in queues if queue not in self._registered]:
            self._everywhere.blocking.execute("SADD", self._keys.queues, *new)
            self._registered.update(new)


def _store_at(target: Target) -> RedisStore:
    if target.kind == "cluster":
        from .clustered import ClusterStore  # noqa: PLC0415 - it builds on this module

        return ClusterStore(target)
    return ServerStore(target) if target.kind == "server" else RedisStore(target)
