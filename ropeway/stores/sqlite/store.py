"""The SQLite store: commands are executed in the threads of `SharedFile`, and awaited here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeVar, cast

import msgspec

from ...errors import StoreClosed
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.commands import Claim, Command, Withdraw
from ...store.contract import Doing, Listener, Store
from ...store.inspection import Inspection
from ...store.offers import Offers
from ...store.transactions import BlockingInside, Inside
from ...store.values import Added, Claimed, Topic
from ...store.waiting import ClaimListeners, end_wait, held_by
from .adding import add, all_created
from .caller_transaction import CallerTransaction, is_inside, refuse_to_wait_for_itself
from .calls import AwaitedCall, BlockingCall, no_op
from .ingest import ingested
from .inside import AsyncInside, SQLiteTransaction, SyncInside, SyncSQLiteTransaction, transaction_of
from .inspecting import inspect
from .queries import data_version
from .shared import SharedFile, acquire, release
from .target import Target
from .threads import in_a_thread
from .verbs import VERBS, Read, Write
from .wake import FileListener

A = TypeVar("A")
T = TypeVar("T")

_INGEST: Final = Write(no_op, must_last=False)
_DATA_VERSION: Final = Read(data_version)


class SQLiteStore(Store):
    """Jobs in one file, which any number of processes of one machine may use at once."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._file: SharedFile | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self._acquiring = threading.Lock()
        self._listeners: set[FileListener] = set()
        self._claim_listeners: ClaimListeners[FileListener] = ClaimListeners()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`sqlite:///jobs.db`, `sqlite:////srv/jobs.db?durability=fast`; see `Target` for what else it may say.

        With `durability=fast` a power cut may take the newest jobs, though never a part of them. Without `create` a
        file that is not there stays away.
        """
        return cls(Target.from_url(url, create=create))

    def sibling(self) -> Self:
        return type(self)(self._target)

    @property
    def offers(self) -> Offers:
        return Offers(blocking_adds=self, transactions=self, inspection=self)

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
            for thread in release(file):
                await thread.end()

    def _usable(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.url)
        if self._pid != os.getpid():
            self._reset_after_fork()

    def _reset_after_fork(self) -> None:
        """Resets this handle in a forked child: all that was open belongs to the parent."""
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

    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        doing: Doing[Any]
        if isinstance(command, Claim) and command.wait:
            doing = self._claim_waiting(command)
        elif isinstance(command, Withdraw):
            doing = self._withdraw(command)
        else:
            verb = VERBS[type(command)]
            fields = (command,) if verb.takes_whole else msgspec.structs.astuple(command)
            if isinstance(verb, Write):
                doing = self._write(verb, *fields, now=now)
            else:
                doing = self._read(verb, *fields, now=now)
        return cast("Doing[A]", doing)

    async def _write(self, verb: Write, *fields: Any, now: Instant | None = None) -> Any:
        file = await self._opened()
        refuse_to_wait_for_itself(file.path)
        is_durable = verb.must_last and self._target.is_durable
        call = AwaitedCall(verb.verb, fields, now=now, is_durable=is_durable, is_thorough=verb.is_thorough)
        file.write(call)
        return await call.future

    async def _read(self, verb: Read, *fields: Any, now: Instant | None = None) -> Any:
        file = await self._opened()
        if (
            verb.sees_inbox
            and file.has_more()
            and not is_inside(file.path)
            and file.has_more(await _ask(file, ingested))
        ):
            await self._write(_INGEST)
        return await _ask(file, verb.verb, *fields, now=now)

    async def _claim_waiting(self, request: Claim) -> Claimed:
        await self._opened()
        return await self._claim_listeners.claim(request, self.do, lambda queue: self._listen("jobs", [queue]))

    async def _withdraw(self, command: Withdraw) -> Claimed:
        file = await self._opened()
        end_wait(command.token)
        # Its loop may be blocked.
        file.listeners.withdraw(command.queue, command.token)
        return await self.do(held_by(command))

    # Add on the calling thread

    def add_blocking(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        self._usable()
        file = self._file
        if file is None or not file.is_open:
            file = self._open()
            self._usable()
        refuse_to_wait_for_itself(file.path)
        if self._target.is_durable and file.put_blocking(bundles, now):
            return all_created(bundles)
        return file.write_blocking(BlockingCall(add, (bundles,), now=now, is_durable=self._target.is_durable))

    # Share a transaction

    async def prepare(self, queue: str) -> None:
        await self._opened()

    def own(self) -> Inside:
        return AsyncInside(self._caller_transaction())

    def own_blocking(self) -> BlockingInside:
        return SyncInside(self._caller_transaction())

    def join(self, tx: object) -> Inside:
        return AsyncInside(transaction_of(tx, SQLiteTransaction, self._joined_path()))

    def join_blocking(self, tx: object) -> BlockingInside:
        return SyncInside(transaction_of(tx, SyncSQLiteTransaction, self._joined_path()))

    def _caller_transaction(self) -> CallerTransaction:
        self._usable()
        file = self._file
        if file is None or not file.is_open:
            file = self._open()
        refuse_to_wait_for_itself(file.path)
        return CallerTransaction(file, self._target)

    def _joined_path(self) -> str:
        self._usable()
        return os.path.realpath(self._target.path)

    # Hear

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        listener = self._listen(topic, queues)
        return listener if worker is None else self._claim_listeners.note(queues[0], worker, listener)

    def _listen(self, topic: Topic, queues: Sequence[str]) -> FileListener:
        self._usable()
        listener = self._acquire().listeners.listen(topic, queues, self._data_version)
        self._listeners = {other for other in self._listeners if not other.is_closed} | {listener}
        return listener

    async def _data_version(self) -> int:
        return cast(int, await self._read(_DATA_VERSION))


async def _ask(file: SharedFile, verb: Callable[..., T], *arguments: Any, now: Instant | None = None) -> T:
    call = AwaitedCall(verb, arguments, now=now)
    file.read(call)
    return await call.future
