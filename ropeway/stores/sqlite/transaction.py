"""The transaction that verbs read and write in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import apsw
import msgspec

from ...job.events import events_in
from ...job.instants import Instant
from ...job.marks import Notice
from ...job.record import NewJob
from ...job.rules import METRICS_OF
from ...job.stages import Stages
from ...job.states import STATES, State
from ...store.values import Settings, Topic
from .clock import Clock
from .placeholders import METRICS, STATE_COLUMNS
from .statements import statements

_SQL: Final = statements("queue")
_INBOX: Final = statements("inbox")
_encode: Final = msgspec.json.Encoder().encode
_names: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_numbers: Final = msgspec.json.Decoder(dict[str, int]).decode
_stages: Final = msgspec.json.Decoder(Stages).decode

EVENT_BITS: Final = 40
_NOTHING: Final[dict[str, int]] = dict.fromkeys(METRICS, 0)
MINUTE: Final = 60_000

Detail: TypeAlias = dict[str, Any] | None


def as_json(value: object) -> str:
    return _encode(value).decode()


class QueueRow:
    """A queue's settings and counters in this transaction; written before the commit."""

    __slots__ = (
        "at", "counts", "entries", "events", "events_from", "first_deadline", "id", "is_changed", "is_configured",
        "max_active", "metrics", "name", "newest_minute", "paused", "paused_names", "stages",
    )  # fmt: skip

    def __init__(self, name: str, row: Sequence[Any] | None) -> None:
        self.name = name
        self.id: int
        self.is_configured: bool
        self.paused: bool
        self.paused_names: tuple[str, ...]
        self.max_active: int | None
        self.events: int
        self.events_from: int | None
        self.at: Instant
        self.newest_minute: dict[str, int] | None
        """Metrics of the newest minute, with the minute."""
        self.first_deadline: Instant | None
        """No job expires before this instant; None if none does at all."""
        self.stages: Stages | None
        if row is None:
            # Id 0 is no queue's: whatever is looked up by it is not there.
            row = (0, 0, 0, "[]", None, 0, 0, 0, None, None, None, *(0 for _ in STATES))
        (
            self.id, configured, paused, names, self.max_active, self.events, self.events_from, self.at, newest,
            self.first_deadline, stages, *counts
        ) = row  # fmt: skip
        self.is_configured, self.paused = bool(configured), bool(paused)
        self.paused_names = () if names == "[]" else _names(names)
        self.stages = None if stages is None else _stages(stages)
        self.counts: dict[State, int] = dict(zip(STATES, counts, strict=True))
        self.newest_minute = None if newest is None else _numbers(newest)
        self.metrics: list[dict[str, int]] = []
        """Metrics to add to older minutes."""
        self.entries: list[tuple[int, str]] = []
        self.is_changed = False

    def copy(self) -> QueueRow:
        twin = QueueRow.__new__(QueueRow)
        for field in QueueRow.__slots__:
            setattr(twin, field, getattr(self, field))
        twin.counts = self.counts.copy()
        twin.metrics = self.metrics.copy()
        twin.newest_minute = self.newest_minute and self.newest_minute.copy()
        return twin

    @property
    def settings(self) -> Settings:
        return Settings(self.paused, self.paused_names, self.max_active, self.stages)

    @property
    def busy(self) -> int:
        """Number of waiting and active jobs; at 0 the queue is drained."""
        return self.counts["waiting"] + self.counts["active"]

    @property
    def first_event(self) -> int:
        return self.id << EVENT_BITS

    def move(self, source: State | None, target: State | None, number: int = 1) -> None:
        if source is not None:
            self.counts[source] -= number
        if target is not None:
            self.counts[target] += number
        self.is_changed = True

    def announce(
        self,
        what: str,
        now: Instant,
        to: State | None = None,
        jobs: Sequence[tuple[str, Detail | msgspec.Raw]] = (),
        detail: Detail | msgspec.Raw = None,
    ) -> None:
        self.events += events_in(what, to, len(jobs))
        for metric in METRICS_OF.get(what, ()):
            self._count(metric, len(jobs), now - now % MINUTE)
        self.at = max(self.at, now)
        self.entries.append((self.first_event + self.events, as_json((what, now, to, jobs, detail))))
        self.is_changed = True

    def announce_alike(self, notices: Sequence[Notice], now: Instant, ids: Sequence[str]) -> None:
        """Writes an entry for each notice, about the same jobs, which are all different."""
        if not notices:
            return
        jobs = msgspec.Raw(_encode([(id, None) for id in ids]))
        for notice in notices:
            self.events += events_in(notice.what, None, len(ids))
            entry = as_json((notice.what, now, None, jobs, msgspec.Raw(notice.detail)))
            self.entries.append((self.first_event + self.events, entry))
        self.at = max(self.at, now)
        self.is_changed = True

    def _count(self, metric: str, number: int, minute: Instant) -> None:
        newest = self.newest_minute
        if newest is None or newest["minute"] < minute:
            if newest is not None:
                self.metrics.append(newest)
            newest = self.newest_minute = {"minute": minute, **_NOTHING}
        if newest["minute"] == minute:
            newest[metric] += number
        else:
            self.metrics.append({"minute": minute, **_NOTHING, metric: number})


class WriterCache:
    """Cache of what the writer's connection read or wrote last; valid until another connection writes."""

    MOST_ROWS: Final = 100
    MOST_CLAIMED: Final = 10_000

    def __init__(self) -> None:
        self.rows: dict[str, QueueRow] = {}
        self.next_seq: int | None = None
        self.ingested: int | None = None
        """Position up to which the inbox was ingested."""
        self.claimed: dict[tuple[int, str], int] = {}
        """Sequence numbers by queue and id. While `next_seq` only grows, none comes to stand for another job."""

    def keep(self, rows: dict[str, QueueRow]) -> None:
        if len(self.rows) + len(rows) > self.MOST_ROWS:
            self.rows.clear()
        self.rows.update(rows)


class Arrival(NamedTuple):
    """A new job that was not yet inserted into `waiting`: a parked claim may take it directly."""

    job: NewJob
    values: dict[str, Any]


class Transaction:
    """The transaction of one round. A call sees what the calls before it did; other connections see all or nothing."""

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        cache: WriterCache | None = None,
        has_parked_claim: Callable[[str], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._has_parked_claim = has_parked_claim
        self.arrival: Arrival | None = None
        self._clock = clock
        self._cache = cache or WriterCache()
        self._rows: dict[str, QueueRow] = {}
        self._given: Instant | None = None
        self._now: Instant | None = None
        self._ingested: int | None = None
        self.wakes: set[tuple[Topic, str]] = set()

    def start_call(self, now: Instant | None) -> None:
        self._given, self._now = now, None

    def now(self) -> Instant:
        """The instant of the call, read once. Load the queue first: its newest instant is the clock's minimum."""
        if self._now is None:
            self._now = self._clock.read() if self._given is None else self._given
        return self._now

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> None:
        self._connection.execute(sql, values)

    def run_many(self, sql: str, values: Iterable[tuple[Any, ...]]) -> None:
        self._connection.executemany(sql, values)

    def change(self, sql: str, values: Mapping[str, Any] | None = None) -> int:
        """Executes a statement; returns how many rows it changed."""
        self._connection.execute(sql, values)
        return self._connection.changes()

    def get(self, sql: str, values: Mapping[str, Any] | None = None) -> Any:
        """Executes a query; returns its one row or value, or None if there is no row."""
        return self._connection.execute(sql, values).get

    def get_all(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Executes a query of one column; returns its values."""
        return [value for (value,) in self._connection.execute(sql, values)]

    def take_seqs(self, number: int) -> int:
        """Reserves that many sequence numbers; returns the first."""
        first = self._cache.next_seq
        if first is None:
            first = self.get(_SQL["next_seq"])
            # The newest job may have been claimed here and removed since, and its number comes again.
            self._cache.claimed.clear()
        self._cache.next_seq = first + number
        assert isinstance(first, int), "a number, or the table is not ours"
        return first

    def ingested(self) -> int:
        """Position up to which the inbox was ingested."""
        if self._ingested is None:
            self._ingested = self._cache.ingested
        if self._ingested is None:
            self._ingested = int(self.get(_INBOX["ingested"]))
        return self._ingested

    def note_ingested(self, ingested: int) -> None:
        self.run(_INBOX["note_ingested"], {"ingested": ingested})
        self._ingested = ingested

    def remember_claimed(self, row: QueueRow, jobs: Iterable[tuple[str, int]]) -> None:
        """Caches sequence numbers of claimed jobs by id: settling them then needs no look into the table of jobs."""
        claimed = self._cache.claimed
        if len(claimed) > WriterCache.MOST_CLAIMED:
            claimed.clear()
        claimed.update({(row.id, id): seq for id, seq in jobs})

    def seqs_of_claimed(self, row: QueueRow, ids: Iterable[str]) -> dict[int, str]:
        """Returns cached claims: ids by sequence number. Some may have ended since."""
        claimed = self._cache.claimed
        return {seq: id for id in ids if (seq := claimed.get((row.id, id)))}

    def forget_claimed(self, row: QueueRow, ids: Iterable[str]) -> None:
        for id in ids:
            self._cache.claimed.pop((row.id, id), None)

    def arrive(self, arrival: Arrival) -> None:
        self.flush_arrival()
        # A job with extras is claimed as those that wait, where these are read and written.
        is_plain = arrival.job.extras is None
        if is_plain and self._has_parked_claim and self._has_parked_claim(arrival.job.queue):
            self.arrival = arrival
        else:
            self.run(_SQL["arrive"], arrival.values)

    def flush_arrival(self) -> None:
        """Inserts the arrival, if there is one, into `waiting`."""
        if self.arrival is not None:
            self.run(_SQL["arrive"], self.arrival.values)
            self.arrival = None

    def queue(self, name: str, *, create: bool = False) -> QueueRow:
        row = self._rows.get(name)
        if row is None:
            # Removed from the cache until the commit: what is not committed must not be cached.
            row = self._cache.rows.pop(name, None) or QueueRow(name, self.get(_SQL["load"], {"name": name}))
            self._rows[name] = row
            self._clock.saw(row.at)
        if create and not row.id:
            row.id = self.get(_SQL["create"], {"name": name})
        return row

    def saw(self, stored: Instant) -> None:
        self._clock.saw(stored)

    def wake(self, topic: Topic, row: QueueRow) -> None:
        self.wakes.add((topic, row.name))

    def notice_drained(self, row: QueueRow, busy_before: int) -> None:
        if busy_before and not row.busy:
            row.announce("drained", self.now())

    def mark(self) -> Mark:
        """Returns a copy for `go_back`. Lists of entries are only appended to, so their length is enough."""
        rows = {name: (row.copy(), len(row.entries)) for name, row in self._rows.items()}
        return rows, self.wakes.copy()

    def go_back(self, mark: Mark) -> None:
        rows, self.wakes = mark
        self._rows = {name: row for name, (row, _) in rows.items()}
        for row, entries in rows.values():
            del row.entries[entries:]

    def flush(self) -> None:
        """Writes all changed queue rows; call it once, before the commit."""
        self.flush_arrival()
        for row in self._rows.values():
            self.save(row)

    def save(self, row: QueueRow) -> None:
        """Writes a changed queue row, for statements that read it before the commit."""
        if row.is_changed:
            self._write(row)

    def committed(self) -> None:
        self._cache.keep(self._rows)
        if self._ingested is not None:
            self._cache.ingested = self._ingested

    def _write(self, row: QueueRow) -> None:
        self.run(
            _SQL["save"],
            {
                "id": row.id,
                "is_configured": row.is_configured,
                "is_paused": row.paused,
                "paused_names": as_json(row.paused_names),
                "max_active": row.max_active,
                "events": row.events,
                "events_from": row.events_from,
                "at": row.at,
                "newest_minute": row.newest_minute and as_json(row.newest_minute),
                "stages": row.stages and as_json(row.stages),
                **dict(zip(STATE_COLUMNS, row.counts.values(), strict=True)),
            },
        )
        for numbers in row.metrics:
            self.run(_SQL["add_to_metric"], {"queue": row.id, **numbers})
        if row.entries:
            self.run_many(_SQL["write_entry"], row.entries)
            self.wake("events", row)
        row.metrics, row.entries, row.is_changed = [], [], False


Mark: TypeAlias = tuple[dict[str, tuple[QueueRow, int]], set[tuple[Topic, str]]]
