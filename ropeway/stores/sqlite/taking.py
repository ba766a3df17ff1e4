"""Jobs on their way through the inbox: which may go that way, and how they come into the file."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import apsw
import msgspec

from ...errors import RopewayError, StoreCorrupt
from ...job.instants import Instant
from ...store.doubt import unknown
from ...store.values import Topic
from .adding import Bundles, Left, add_left
from .clock import Clock
from .failures import let_through, typed
from .folders import DOUBTFUL, NETWORK, filesystem
from .identity import Watch
from .lane import LOG
from .statements import statements
from .target import Target
from .transaction import Transaction
from .wake import Wakes

if TYPE_CHECKING:
    from .inbox import Inbox

MOST_JOBS: Final = 16
"""Of one round, whoever adds them. More are better written once, straight into the file."""
TAKE_IN_AT: Final = 128 * 1024
"""Bytes. A few hundred jobs: many enough to be taken in together, and few enough to take only milliseconds."""
TRY_EVERY: Final = 1.0
"""Seconds, where it could not be opened."""
TAKE_IN_AFTER: Final = 1.0
"""Seconds, for those who look at the file and do not know of its inbox, such as backups."""

_FAR: Final = 2**31
"""No priority of a client's is beyond; what a file cannot store must not be acknowledged before."""
_TOPICS: Final[tuple[Topic, ...]] = "jobs", "events"
_SQL: Final = statements("inbox")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Left]).decode


def has_inbox(path: str, target: Target) -> bool:
    """Where processes share memory and locks for certain. Takes the path that all links lead to."""
    return (
        sys.platform == "linux"
        and target.vfs is None
        and filesystem(os.path.dirname(path)) not in {"", *NETWORK, *DOUBTFUL}  # noqa: PTH120 - text is enough
    )


class Intake:
    """A process's way to the inbox. It is open as long as the writer's connection is."""

    def __init__(
        self, path: str, clock: Clock, wakes: Wakes, watch: Watch, take_in_after: Callable[[float], None]
    ) -> None:
        self._path, self._clock, self._wakes, self._watch = path, clock, wakes, watch
        self._take_in_after = take_in_after
        self._inbox: Inbox | None = None
        self._use = threading.Lock()
        """Held by callers who add on threads of their own, one at a time: meanwhile it is not closed."""
        self._syncing = threading.Lock()
        self._is_asked_for = False
        self._is_unusable = False
        self._cannot_free = False
        self._tried_at = 0.0
        self._doubted = 0
        """Up to this position something may never have reached the disk, because a sync failed."""

    def open(self, connection: apsw.Connection) -> None:
        # Not above: Windows has no `fcntl`, and macOS not all of it.
        from .inbox import open_inbox  # noqa: PLC0415

        self._tried_at = time.monotonic()
        tag = connection.execute(_SQL["tag"]).get
        try:
            self._inbox = open_inbox(
                self._path, tag, lambda: connection.execute(_SQL["taken"]).get, is_patient=not self._is_unusable
            )
            self._watch.use_inbox(is_open=True)
            self._is_unusable = False
        except OSError as error:
            if not self._is_unusable:
                LOG.warning(
                    "%s: its -inbox cannot be used (%s); adding one job at a time takes longer", self._path, error
                )
            self._is_unusable = True

    def open_at_last(self, connection: apsw.Connection) -> None:
        """If it could not be opened before: others may have left jobs in it."""
        if self._is_unusable and time.monotonic() - self._tried_at >= TRY_EVERY:
            self.open(connection)

    def close(self) -> None:
        with self._use:
            inbox, self._inbox = self._inbox, None
            self._watch.use_inbox(is_open=False)
            self._is_asked_for = False
            if inbox is not None:
                # With a damaged file it stays as it is: it may have jobs that are nowhere else.
                inbox.close(is_kept=self._watch.is_damaged())

    @property
    def has_unfreed(self) -> bool:
        """Whether it has jobs that are not known to be on the disk in the file."""
        # Of one that was truncated, whoever tries to take them in will say so.
        return self._inbox is not None and (not self._inbox.is_whole or self._inbox.has_unfreed)

    @property
    def has_own(self) -> bool:
        """The same of what this process knows of; there is none once it is closed."""
        return self._inbox is not None and (not self._inbox.is_whole or self._inbox.unfreed > 0)

    def leave_here(self, bundles: Bundles, now: Instant | None) -> bool:
        """On a thread of the caller's, who need not wait for the writer: False if he must."""
        if self._use.locked():
            # The next round of the writer does it for all who wait.
            return False
        # By `with`: a signal behind a call of `acquire` would leave nobody to give it back.
        with self._use:
            if not self.leave([(bundles, now)]):
                return False
            self.sync()
            return True

    def leave(self, adds: Sequence[tuple[Bundles, Instant | None]]) -> bool:
        """False if they have to go straight into the file: jobs of other kinds, many, or waited for in this process."""
        inbox, left = self._inbox, _plain(adds, self._clock)
        if inbox is None or not left or self._is_in_doubt(inbox):
            return False
        queues = {job.queue for job, _ in left}
        if any(self._wakes.is_awaited(queue) for queue in queues):
            return False
        try:
            self._watch.look()
            body = _encode(left)
        except (RopewayError, msgspec.MsgspecError, UnicodeError, OverflowError, TypeError):
            # The transaction will say what is wrong.
            return False
        try:
            if not inbox.put(body):
                return False
        except OSError as error:
            let_through(error)
            # A full disk, say: the transaction will find out.
            return False
        self._wakes.wake_all([(topic, queue) for queue in queues for topic in _TOPICS])
        self._see_to_it(inbox)
        return True

    def sync(self) -> None:
        """Returns when all that was left is on the disk; otherwise raises StoreUnavailable."""
        assert self._inbox is not None, "something was left there"
        with self._syncing:
            try:
                self._inbox.sync()
            except OSError as error:
                let_through(error)
                # The system may not try again to write those blocks. What they hold must first be in the file.
                self._doubted = self._inbox.tail
                raise typed(self._path, error) from error
            if self._is_in_doubt(self._inbox):
                # Another thread's sync failed since: the system tells only the first to ask.
                raise unknown(self._path, "its -inbox could not be synced")

    def _is_in_doubt(self, inbox: Inbox) -> bool:
        return bool(self._doubted) and inbox.freed < self._doubted

    def has_more(self, taken: int) -> bool:
        """On any thread: whether there may be jobs behind a position."""
        inbox = self._inbox
        try:
            # Others may have left some while it was not open here.
            return inbox.has_more(taken) if inbox is not None else not self._is_unusable
        except (ValueError, OSError):
            # Closed in this moment, or truncated.
            return True

    def take_in_here(self, tx: Transaction) -> None:
        """On a thread that is not the writer's."""
        with self._use:
            self.take_in(tx)

    def take_in(self, tx: Transaction) -> None:
        """Before anything else in a transaction: what was acknowledged first comes first."""
        self._is_asked_for = False
        if self._inbox is None:
            return
        try:
            bodies, taken = self._inbox.read(tx.taken())
        except OSError:
            # That it was truncated is for good.
            self._watch.look(thorough=True)
            raise
        if not bodies:
            return
        add_left(tx, [one for body in bodies for one in self._jobs(body)])
        # Whatever is done next must find them.
        tx.let_wait()
        tx.take(taken)

    def _jobs(self, body: bytes) -> list[Left]:
        try:
            return _decode(body)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(
                self._path,
                f"its -inbox has jobs that cannot be read ({error}): stop every process that uses it, keep the -inbox "
                "elsewhere, and start again without it",
            ) from error

    def free(self, taken: int | None) -> None:
        """What was taken in up to there is on the disk."""
        if self._inbox is None or taken is None:
            return
        try:
            self._inbox.free(taken)
            self._cannot_free = False
        except OSError as error:
            let_through(error)
            # Then the room is freed later: nothing that was answered depends on it.
            if not self._cannot_free:
                LOG.warning("%s: room in its -inbox could not be freed (%s); it is tried again", self._path, error)
            self._cannot_free = True

    def _see_to_it(self, inbox: Inbox) -> None:
        """Somebody must take it in sooner or later; workers do it all the time."""
        if inbox.unfreed >= TAKE_IN_AT and not self._is_asked_for:
            self._is_asked_for = True
            self._take_in_after(0)
        self._take_in_after(TAKE_IN_AFTER)

    def was_tried(self) -> None:
        """It may have failed: others may write for too long, or the disk be full."""
        self._is_asked_for = False
        if self.has_own:
            self._take_in_after(TAKE_IN_AFTER)


def _plain(adds: Sequence[tuple[Bundles, Instant | None]], clock: Clock) -> list[Left]:
    """Their jobs, if nothing in the file has a say in what becomes of them."""
    left: list[Left] = []
    for bundles, now in adds:
        at = clock.read() if now is None else now
        for bundle in bundles:
            if len(left) + len(bundle) > MOST_JOBS:
                return []
            for job in bundle:
                if not job.is_fresh or job.delay or job.due_at is not None or abs(job.priority) > _FAR:
                    return []
                left.append((job, at))
    return left


def taken(tx: Transaction) -> int:
    """A verb: up to where the file has taken in."""
    return tx.taken()
