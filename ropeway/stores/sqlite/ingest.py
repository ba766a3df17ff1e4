"""This process's handle on the inbox: puts eligible jobs there, and ingests them into the database. See `inbox.py`."""

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
from ...job.extras import Extras
from ...job.instants import Instant
from ...store.doubt import unknown
from ...store.values import Topic
from .adding import Acknowledged, Bundles, add_acknowledged
from .calls import LOG
from .clock import Clock
from .errors import as_store_error, reraise_from_signal
from .folders import DOUBTFUL, NETWORK, filesystem
from .inbox_keys import InboxKeys, keys_of
from .statements import statements
from .target import Target
from .transaction import Transaction
from .wake import ListenerGroup
from .watching import Watch

if TYPE_CHECKING:
    from .inbox import Inbox

MOST_JOBS: Final = 16
"""Jobs of one round that may go through the inbox; more are cheaper to write once, straight into the file."""
INGEST_AT: Final = 128 * 1024
"""Bytes in the inbox at which it is ingested at once: a few hundred jobs, which take milliseconds."""
TRY_EVERY: Final = 1.0
"""Seconds between attempts to open an inbox that could not be opened."""
INGEST_AFTER: Final = 1.0
"""Seconds after which it is ingested, for programs that read the file alone, such as backups."""

_FAR: Final = 2**31
"""Limit of priorities: what the file cannot store must not be acknowledged."""
_TOPICS: Final[tuple[Topic, ...]] = "jobs", "events"
_SQL: Final = statements("inbox")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Acknowledged]).decode


def has_inbox(path: str, target: Target) -> bool:
    """True if all processes that can open the file share memory and locks. Takes a path without links."""
    return (
        sys.platform == "linux"
        and target.vfs is None
        and filesystem(os.path.dirname(path)) not in {"", *NETWORK, *DOUBTFUL}  # noqa: PTH120 - text is enough
    )


class InboxHandle:
    """The inbox of this process's writer, open as long as its connection is."""

    def __init__(
        self, path: str, clock: Clock, wakes: ListenerGroup, watch: Watch, ingest_after: Callable[[float], None]
    ) -> None:
        self._path, self._clock, self._listeners, self._watch = path, clock, wakes, watch
        self._ingest_after = ingest_after
        self._inbox: Inbox | None = None
        self._use = threading.Lock()
        """Held by callers that add on their own threads, one at a time: meanwhile it is not closed."""
        self._syncing = threading.Lock()
        self._is_asked_for = False
        self._is_unusable = False
        self._cannot_free = False
        self._tried_at = 0.0
        self._keys = InboxKeys(self._jobs)
        self._doubted = 0
        """Position before which records may not be on the disk, because a sync failed."""

    def open(self, connection: apsw.Connection) -> None:
        # Not above: Windows has no `fcntl`, and macOS not all of it.
        from .inbox import open_inbox  # noqa: PLC0415

        self._tried_at = time.monotonic()
        key = connection.execute(_SQL["key"]).get
        try:
            self._inbox = open_inbox(
                self._path, key, lambda: connection.execute(_SQL["ingested"]).get, is_patient=not self._is_unusable
            )
            self._watch.use_inbox(is_open=True)
            self._is_unusable = False
        except OSError as error:
            if not self._is_unusable:
                LOG.warning(
                    "%s: its -inbox cannot be used (%s); adding one job at a time takes longer", self._path, error
                )
            self._is_unusable = True

    def reopen_if_unusable(self, connection: apsw.Connection) -> None:
        """Tries again to open an inbox that could not be opened: others may have put jobs into it."""
        if self._is_unusable and time.monotonic() - self._tried_at >= TRY_EVERY:
            self.open(connection)

    def close(self) -> None:
        with self._use:
            inbox, self._inbox = self._inbox, None
            self._watch.use_inbox(is_open=False)
            self._is_asked_for = False
            if inbox is not None:
                # With a damaged file it stays as it is: it may have jobs that are nowhere else.
                inbox.close(is_kept=self._watch.is_damaged() or self._watch.has_truncated_wal())

    @property
    def has_unfreed(self) -> bool:
        """True if it has jobs that may not be on the disk in the file."""
        # If it was truncated, an ingest will raise that.
        return self._inbox is not None and (not self._inbox.is_whole or self._inbox.has_unfreed)

    @property
    def has_own(self) -> bool:
        """True if it has such jobs as far as this process knows; False once it is closed."""
        return self._inbox is not None and (not self._inbox.is_whole or self._inbox.unfreed > 0)

    def put_blocking(self, bundles: Bundles, now: Instant | None) -> bool:
        """Puts and syncs jobs on the caller's thread; False if they must go through the writer."""
        if self._use.locked():
            # The next round of the writer does it for all who wait.
            return False
        # By `with`: a signal behind a call of `acquire` would leave nobody to give it back.
        with self._use:
            jobs = self.eligible([(bundles, now)])
            if not jobs or keys_of(jobs) or not self.put(jobs):
                return False
            self.sync()
            return True

    def eligible(self, adds: Sequence[tuple[Bundles, Instant | None]]) -> list[Acknowledged]:
        """Returns the jobs of all calls with their instants; none if one of them may not go through the inbox."""
        return [] if self._inbox is None else _eligible(adds, self._clock)

    def put_keyed(self, tx: Transaction, acknowledged: Sequence[Acknowledged]) -> bool:
        """`put` for jobs with dedupe keys, in a write transaction; False also if a key is held."""
        inbox = self._inbox
        if inbox is None or not self._keys.are_free(tx, inbox, acknowledged):
            return False
        return self.put(acknowledged)

    def put(self, acknowledged: Sequence[Acknowledged]) -> bool:
        """Puts eligible jobs into the inbox; False if they must go straight into the file, such as awaited ones."""
        inbox = self._inbox
        if inbox is None or self._is_in_doubt(inbox):
            return False
        queues = {job.queue for job, _ in acknowledged}
        if any(self._listeners.has_parked_claim(queue) for queue in queues):
            return False
        try:
            self._watch.look()
            body = _encode(acknowledged)
        except (RopewayError, msgspec.MsgspecError, UnicodeError, OverflowError, TypeError):
            # The transaction will say what is wrong.
            return False
        try:
            if not inbox.put(body):
                return False
        except OSError as error:
            reraise_from_signal(error)
            # A full disk, say: the transaction will find out.
            return False
        self._listeners.wake_all([(topic, queue) for queue in queues for topic in _TOPICS])
        self._schedule_ingest(inbox)
        return True

    def sync(self) -> None:
        """Returns when all that was put is on the disk; otherwise raises StoreUnavailable."""
        assert self._inbox is not None, "something was put there"
        with self._syncing:
            try:
                self._inbox.sync()
            except OSError as error:
                reraise_from_signal(error)
                # The system may not try again to write those blocks. What they hold must first be in the file.
                self._doubted = self._inbox.tail
                raise as_store_error(self._path, error) from error
            if self._is_in_doubt(self._inbox):
                # Another thread's sync failed since: the system tells only the first to ask.
                raise unknown(self._path, "its -inbox could not be synced")

    def _is_in_doubt(self, inbox: Inbox) -> bool:
        return bool(self._doubted) and inbox.freed < self._doubted

    def has_more(self, ingested: int) -> bool:
        """True if there may be jobs behind a position. On any thread."""
        inbox = self._inbox
        try:
            # Others may have put some while it was not open in this process.
            return inbox.has_more(ingested) if inbox is not None else not self._is_unusable
        except (ValueError, OSError):
            # Closed in this moment, or truncated.
            return True

    def ingest_beside(self, tx: Transaction) -> None:
        """Ingests on a thread that is not the writer's."""
        with self._use:
            self.ingest(tx)

    def ingest(self, tx: Transaction) -> None:
        """Adds the inbox's jobs to the tables. First in a transaction, since they were acknowledged before."""
        self._is_asked_for = False
        if self._inbox is None:
            return
        try:
            bodies, ingested = self._inbox.read(tx.ingested())
        except OSError:
            # That it was truncated is for good.
            self._watch.look(thorough=True)
            raise
        if not bodies:
            return
        add_acknowledged(tx, [one for body in bodies for one in self._jobs(body)])
        # Whatever is done next must find them.
        tx.flush_arrival()
        tx.note_ingested(ingested)

    def _jobs(self, body: bytes) -> list[Acknowledged]:
        try:
            return _decode(body)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(
                self._path,
                f"its -inbox has jobs that cannot be read ({error}): stop every process that uses it, keep the -inbox "
                "elsewhere, and start again without it",
            ) from error

    def free(self, ingested: int | None) -> None:
        """Frees the room up to a position: what was ingested up to there is on the disk in the file."""
        if self._inbox is None or ingested is None:
            return
        try:
            self._inbox.free(ingested)
            self._cannot_free = False
        except OSError as error:
            reraise_from_signal(error)
            # Then the room is freed later: nothing that was answered depends on it.
            if not self._cannot_free:
                LOG.warning("%s: room in its -inbox could not be freed (%s); it is tried again", self._path, error)
            self._cannot_free = True

    def _schedule_ingest(self, inbox: Inbox) -> None:
        """Schedules an ingest by the writer, in case no worker does it before."""
        if inbox.unfreed >= INGEST_AT and not self._is_asked_for:
            self._is_asked_for = True
            self._ingest_after(0)
        self._ingest_after(INGEST_AFTER)

    def retry_later(self) -> None:
        """Schedules another ingest if one failed, because others wrote for too long or the disk was full."""
        self._is_asked_for = False
        if self.has_own:
            self._ingest_after(INGEST_AFTER)


def _eligible(adds: Sequence[tuple[Bundles, Instant | None]], clock: Clock) -> list[Acknowledged]:
    acknowledged: list[Acknowledged] = []
    for bundles, now in adds:
        at = clock.read() if now is None else now
        for bundle in bundles:
            if len(acknowledged) + len(bundle) > MOST_JOBS:
                return []
            for job in bundle:
                if not job.is_fresh or job.delay or job.due_at is not None or abs(job.priority) > _FAR:
                    return []
                if job.parents or job.children or not (job.extras is None or _is_lasting_key(job.extras)):
                    return []
                acknowledged.append((job, at))
    return acknowledged


def _is_lasting_key(extras: Extras) -> bool:
    """True if nothing is rare about a job but a dedupe key, which it holds until it ends."""
    rule = extras.dedupe
    return rule is not None and not rule.ttl and extras == Extras(None, None, None, rule)


def ingested(tx: Transaction) -> int:
    """Verb that returns the position up to which the inbox was ingested."""
    return tx.ingested()
