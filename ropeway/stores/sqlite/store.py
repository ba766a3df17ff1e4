"""The verbs of the contract, as they are awaited. Their work is done in the threads of `SharedFile`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from ...errors import InvalidOption, StoreClosed
from ...job.codec import JsonText
from ...job.instants import Instant, Milliseconds
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.states import State
from ...store.contract import Listener
from ...store.inspection import Inspection
from ...store.transactions import Inside, InsideHere
from ...store.values import (
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
    Settings,
    Settled,
    StallRules,
    Ticked,
    Topic,
)
from . import hearing, looking, operating, remembering, updating
from .adding import add, all_created
from .claiming import claim
from .governing import clean, configure, obliterate, publish, trim_events
from .inside import InsideFile, InsideFileHere, SQLiteTransaction, SyncSQLiteTransaction, own_of
from .inspecting import inspect
from .lane import AwaitedCall, BlockingCall, nothing
from .own import Own, is_inside, refuse_to_wait_for_itself
from .settling import settle
from .shared import SharedFile, acquire, release
from .taking import taken
from .target import Target
from .threads import in_a_thread
from .ticking import tick
from .wake import FileListener

T = TypeVar("T")


class SQLiteStore:
    """Jobs in one file, which any number of processes of one machine may use at once."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._file: SharedFile | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self._acquiring = threading.Lock()
        self._listeners: set[FileListener] = set()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`sqlite:///jobs.db`, `sqlite:////srv/jobs.db?durability=fast`; see `Target` for what else it may say.

        With `durability=fast` a power cut may take the newest jobs, though never a part of them. Without `create` a
        file that is not there stays away.
        """
        return cls(Target.from_url(url, create=create))

    def sibling(self) -> Self:
        return type(self)(self._target)

    def inspect(self) -> Inspection:
        return inspect(self._target)

    async def open(self) -> None:
        await self._opened()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._pid != os.getpid():
            return
        for listener in list(self._listeners):
            listener.close()
        with self._acquiring:
            file, self._file = self._file, None
        if file is not None:
            for lane in release(file):
                await lane.end()

    def _usable(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.url, "this handle was closed: make another with connect()")
        if self._pid != os.getpid():
            self._begin_anew()

    def _begin_anew(self) -> None:
        """In a forked child: all that was open belongs to the parent."""
        if self._file is not None and self._file.has_connections:
            raise StoreClosed(
                self.url,
                f"this handle was in use by process {self._pid} when its child {os.getpid()} was forked, and could not "
                "be closed for that moment: close it before the fork, or make it in the child",
            )
        self._file = None
        # A thread of the parent's may have held it, and is not here to give it back.
        self._acquiring = threading.Lock()
        self._listeners = set()
        self._pid = os.getpid()

    async def _opened(self) -> SharedFile:
        self._usable()
        file = self._file
        if file is None or not file.is_open:
            file = await in_a_thread(self._target.path, self._open)
            # It may have been closed meanwhile.
            self._usable()
        return file

    def _open(self) -> SharedFile:
        file = self._acquire()
        file.open(self._target)
        return file

    def _acquire(self) -> SharedFile:
        with self._acquiring:
            self._usable()
            if self._file is None:
                self._file = acquire(self._target.path)
            return self._file

    async def _write(
        self,
        verb: Callable[..., T],
        *arguments: Any,
        now: Instant | None,
        must_last: bool = True,
        is_thorough: bool = False,
    ) -> T:
        """Without `must_last` it does not wait for the disk.

        A power cut may undo a claim, a renewal or a tick, and with them goes the worker that knew of it: the job
        waits again, and this start is not counted. Whatever is durable later makes durable what came before.
        """
        file = await self._opened()
        refuse_to_wait_for_itself(file.path)
        is_durable = must_last and self._target.is_durable
        call = AwaitedCall(verb, arguments, now=now, is_durable=is_durable, is_thorough=is_thorough)
        file.write(call)
        return await call.future

    async def _read(self, verb: Callable[..., T], *arguments: Any) -> T:
        """What new jobs have a part in: those of the inbox come into the file first."""
        file = await self._opened()
        if file.has_more() and not is_inside(file.path) and file.has_more(await _ask(file, taken)):
            await self._write(nothing, now=None, must_last=False)
        return await _ask(file, verb, *arguments)

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        return await self._write(add, bundles, now=now)

    def add_here(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        self._usable()
        file = self._file
        if file is None or not file.is_open:
            file = self._open()
            self._usable()
        refuse_to_wait_for_itself(file.path)
        if self._target.is_durable and file.leave_here(bundles, now):
            return all_created(bundles)
        return file.write_here(BlockingCall(add, (bundles,), now=now, is_durable=self._target.is_durable))

    # Share a transaction

    async def prepare(self, queue: str) -> None:
        await self._opened()

    def own(self) -> Inside:
        return InsideFile(self._own())

    def own_here(self) -> InsideHere:
        return InsideFileHere(self._own())

    def join(self, tx: object) -> Inside:
        return InsideFile(own_of(tx, SQLiteTransaction, self._joined_path()))

    def join_here(self, tx: object) -> InsideHere:
        return InsideFileHere(own_of(tx, SyncSQLiteTransaction, self._joined_path()))

    def _own(self) -> Own:
        self._usable()
        file = self._file
        if file is None or not file.is_open:
            file = self._open()
        refuse_to_wait_for_itself(file.path)
        return Own(file, self._target)

    def _joined_path(self) -> str:
        self._usable()
        return os.path.realpath(self._target.path)

    # Run

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        return await self._write(claim, request, now=now, must_last=False)

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        return await self._write(settle, queue, outcomes, then, now=now)

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        return await self._write(updating.renew, queue, locks, lock, now=now, must_last=False)

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]:
        return await self._write(updating.update, queue, changes, now=now)

    # Keep in order

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        return await self._write(tick, queue, rules, now=now, must_last=False, is_thorough=True)

    # Operate

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        return await self._write(operating.cancel, queue, ids, reason, now=now)

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return await self._write(operating.retry, queue, ids, reset, now=now)

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]:
        return await self._write(operating.promote, queue, ids, now=now)

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]:
        return await self._write(operating.change, queue, edits, now=now)

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return await self._write(operating.remove, queue, ids, force, now=now)

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
        return await self._write(configure, queue, pause, pause_names, resume_names, max_active, now=now)

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        return await self._write(operating.clear_log, queue, id, keep, now=None)

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        await self._write(publish, queue, name, data, now=now)

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        await self._write(trim_events, queue, keep, now=None)

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
        return await self._write(clean, queue, state, older_than, limit, now=now)

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        return await self._write(obliterate, queue, force, now=now)

    # Look

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
        return await self._read(looking.get, queue, ids)

    async def find(self, query: Query) -> Page:
        return await self._read(looking.find, query)

    async def count(self, queue: str) -> Counts:
        return await self._read(looking.count, queue)

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        return await self._read(looking.count_waiting, queue, priorities)

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        return await self._read(looking.metrics, queue, since)

    async def history(self, queue: str, id: str) -> History | None:
        return await self._read(looking.history, queue, id)

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        return await self._read(looking.log, queue, id, after, limit, newest_first)

    async def settings(self, queue: str) -> Settings:
        return await _ask(await self._opened(), looking.settings, queue)

    async def queues(self) -> list[str]:
        return await self._read(looking.queues)

    async def clock(self) -> Instant:
        return await _ask(await self._opened(), looking.clock)

    # Hear

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        return await self._read(hearing.events, queue, after, inclusive, limit)

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        return await _ask(await self._opened(), hearing.revoked, queue, after)

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        self._usable()
        listener = self._acquire().wakes.listen(topic, queues, self._data_version)
        self._listeners = {other for other in self._listeners if not other.is_closed} | {listener}
        return listener

    async def _data_version(self) -> int:
        return await self._read(looking.data_version)

    # Remember

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        return await self._write(remembering.remember, record, expect, lasting, now=now)

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        return await _ask(await self._opened(), remembering.recall, kind, key, now=now)

    async def forget(self, kind: str, key: str) -> bool:
        return await self._write(remembering.forget, kind, key, now=None)


async def _ask(file: SharedFile, verb: Callable[..., T], *arguments: Any, now: Instant | None = None) -> T:
    call = AwaitedCall(verb, arguments, now=now)
    file.read(call)
    return await call.future
