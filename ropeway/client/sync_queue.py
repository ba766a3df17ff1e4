"""The queue, for code without an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import msgspec

from ..errors import StoreClosed
from ..job.codec import Json
from ..job.durations import Duration
from ..job.events import Event
from ..job.options import JobOptions
from ..job.record import NewJob
from ..store.transactions import sharing
from ..store.values import Added, Counts, History, LogPage, Metric, Settings
from .adds import add_blocking
from .bundles import bundle_of, handle_of, handles_of, job_of
from .elsewhere import ON_SYNC_QUEUES, Guided
from .portal import dismiss, refuse_at_the_end, refuse_on_a_loop, run
from .requests import Call, JobRequest, Named, Several, checked_call
from .results import R
from .sync_found import SyncFoundJob, SyncJobPage
from .sync_handle import SyncJobHandle
from .transactions import own_transaction_blocking
from .workers import WorkerInfo

if TYPE_CHECKING:
    from .queue import Queue


class SyncQueue(Guided):
    """The twin of `Queue`: the same calls, and each waits for its answer.

    Safe in any number of threads, beside a loop that awaits the queue itself, and after a fork. On the thread of an
    event loop its calls raise `SyncRefused`.
    """

    __slots__ = ("_queue",)

    _elsewhere = ON_SYNC_QUEUES
    _twin = "queue.sync.{}(...)"

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<SyncQueue {self.name!r} on {self._queue.store.url}>"

    def __enter__(self) -> Self:
        run(self._queue.__aenter__(), "async with queue")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self._queue.name

    @property
    def size_limit(self) -> int:
        """The most bytes that data or a result may take as JSON."""
        return self._queue.size_limit

    @property
    def defaults(self) -> JobOptions:
        return self._queue.defaults

    def close(self) -> None:
        """Closes the queue, for those who await it too; a store that was given to it by its caller stays open."""
        run(self._queue.close())

    # Adding

    def add(self, name: str, data: Json = None, *, tx: object = None, **options: Unpack[JobOptions]) -> SyncJobHandle:
        """Stores a job; when this returns, it is as durable as its store promises.

        With an `id` of your own, an add that finds the id with the same name and data answers that job, with
        `created` False; with other data it raises `DuplicateJob`. With `tx`, a connection or session of yours to the
        store's database, the job is part of its transaction: it is there as soon as you commit, and not before.
        """
        return self._add_one(Call(name, data, options), tx, "await queue.add(...)")

    def add_call(self, call: Call[R], *, tx: object = None) -> SyncJobHandle[R]:
        """Stores the job of one `task.call(...)`."""
        checked_call(call)
        return self._add_one(call, tx, "await queue.add_call(...)")

    def _add_one(self, call: Call[R], tx: object, instead: str) -> SyncJobHandle[R]:
        [answer] = self._add([job_of(self._queue, call)], tx, instead)
        return SyncJobHandle(handle_of(self._queue, call, answer))

    @overload
    def add_many(self, requests: Iterable[Call[R]], *, tx: object = None) -> list[SyncJobHandle[R]]: ...
    @overload
    def add_many(self, requests: Iterable[Call[R] | Named], *, tx: object = None) -> list[SyncJobHandle[R | Any]]: ...
    @overload
    def add_many(
        self, requests: Several[JobRequest[R]] | Iterator[JobRequest[R]], *, tx: object = None
    ) -> list[SyncJobHandle[R | Any]]: ...
    def add_many(self, requests: Iterable[JobRequest], *, tx: object = None) -> list[SyncJobHandle]:
        """Stores all of them or none, in one trip.

        Items are `(name, data)`, `(name, data, options)`, `task.call(...)` or names, in any mixture; `JobRequest` is
        their type.
        """
        calls, bundle = bundle_of(self._queue, requests)
        if not calls:
            return []
        answers = self._add(bundle, tx, "await queue.add_many(...)")
        return [SyncJobHandle(job) for job in handles_of(self._queue, calls, answers)]

    def _add(self, bundle: list[NewJob], tx: object, instead: str) -> list[Added]:
        """On this thread, where the store can do that: it saves the way to the background loop and back."""
        refuse_on_a_loop(instead)
        store = self._queue.twin_store
        try:
            if tx is not None:
                return self._add_inside(bundle, tx)
            if (adder := store.offers.blocking_adds) is not None:
                return add_blocking(adder, bundle)
            return run(self._add_there(bundle))
        except StoreClosed:
            refuse_at_the_end()
            raise

    async def _add_there(self, bundle: list[NewJob]) -> list[Added]:
        """On the background loop, by that loop's own handle on the store."""
        return await self._queue.adds.add(bundle)

    def _add_inside(self, bundle: list[NewJob], tx: object) -> list[Added]:
        store = sharing(self._queue.twin_store)
        inside = store.join_blocking(tx)
        run(store.prepare(self.name))
        return inside.add(bundle)

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction of the store, for statements of your own and for adds with `tx`: all of them or none.

        On PostgreSQL it is a connection of psycopg, on SQLite an object with `tx.execute(sql, parameters)`. It is
        committed at the end of the block, and rolled back if the block raises.
        """
        refuse_on_a_loop("async with queue.transaction()")
        return own_transaction_blocking(self._queue.twin_store, self.name)

    # Looking

    def events(self, after: str = "now", *, follow: bool = True) -> Generator[Event, None, None]:
        """What happens in the queue, in order, for as long as you iterate; without `follow`, what has happened.

        `after` is "now" (when the iteration begins), "start" for the oldest kept event (about 10,000 are), the `id` of
        an event to resume from, or what `newest_event` answered. `close()` it, or drop it, when you have seen enough.
        """
        instead = "async for event in queue.events(...)"
        events = run(self._events(after, follow), instead)
        try:
            while (event := run(_next(events), instead)) is not None:
                yield event
        except GeneratorExit:
            # Perhaps by the garbage collector, on a thread that must not wait.
            dismiss(events.aclose())
            raise

    async def _events(self, after: str, follow: bool) -> AsyncGenerator[Event, None]:
        """Made on the background loop, and so from that loop's own handle on the store."""
        return self._queue.events(after, follow=follow)

    # Written by tools/twins.py: do not edit

    def get(self, id: str) -> SyncFoundJob | None:
        """The job with its snapshot; None if there is none of that id."""
        found = run(self._queue.get(id))
        return None if found is None else found.sync

    def find(
        self,
        *states: str,
        name: str | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        tag: str | None = None,
    ) -> SyncJobPage:
        """A page of jobs of the given states, or of all of them, state by state.

        Each has its own order: waiting as it will be claimed, delayed by due time, active by start, finished by end.
        """
        return run(
            self._queue.find(*states, name=name, limit=limit, after=after, newest_first=newest_first, tag=tag)
        ).sync

    def counts(self) -> Counts:
        """How many jobs are in each state."""
        return run(self._queue.counts())

    def counts_by_priority(self, *priorities: int) -> dict[int, int]:
        """How many jobs of each of these priorities wait."""
        return run(self._queue.counts_by_priority(*priorities))

    def metrics(self, *, since: datetime | None = None) -> list[Metric]:
        """What happened in each minute, oldest first; kept for two weeks."""
        return run(self._queue.metrics(since=since))

    def history(self, id: str) -> History:
        """The job's failed attempts and log lines."""
        return run(self._queue.history(id))

    def logs(self, id: str, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the `next` of the page before, or its `newest` for later lines."""
        return run(self._queue.logs(id, after=after, limit=limit, newest_first=newest_first))

    def settings(self) -> Settings:
        """What holds for every worker of the queue: whether it is paused, which names are, the global concurrency."""
        return run(self._queue.settings())

    def workers(self) -> list[WorkerInfo]:
        """The workers that are alive and serve this queue."""
        return run(self._queue.workers())

    def newest_event(self) -> str:
        """Where the events stand: an `after` for `events` that misses nothing from here on, whenever it is iterated."""
        return run(self._queue.newest_event())

    def publish(self, name: str, data: Mapping[str, Json] | None = None) -> None:
        """Tells everybody who follows `events` of something of your own, in order with what happens to the jobs.

        A call that raised `StoreUnavailable` may have told it: to repeat it may tell it twice.
        """
        run(self._queue.publish(name, data))

    def trim_events(self, keep: int = 0) -> None:
        """Forgets the oldest events: at most so many stay, but always what happened last.

        Events of one step of one job, such as `added` and `waiting`, go together.

        With them goes what `result()` knows of jobs that were removed.
        """
        run(self._queue.trim_events(keep))

    def cancel(self, id: str, reason: str | None = None) -> bool:
        """Ends a job that is not finished, a running one too; False if it was cancelled before."""
        return run(self._queue.cancel(id, reason))

    def retry(self, id: str, *, reset: bool = False) -> None:
        """Lets a finished job run once more; `reset` gives it all its attempts again."""
        run(self._queue.retry(id, reset=reset))

    def promote(self, id: str) -> None:
        """Ends a job's delay."""
        run(self._queue.promote(id))

    def remove(self, id: str, *, force: bool = False) -> None:
        """Forgets a job; one that is active only with `force`."""
        run(self._queue.remove(id, force=force))

    def change(
        self,
        id: str,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes a job that is not finished: all of what is given, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        run(self._queue.change(id, priority=priority, lifo=lifo, delay=delay, data=data))

    def report_progress(self, id: str, progress: Json) -> None:
        """Sets a job's progress from outside its handler."""
        run(self._queue.report_progress(id, progress))

    def clear_logs(self, id: str, *, keep: int = 0) -> None:
        """Forgets the job's log lines but the newest `keep`, whatever its state."""
        run(self._queue.clear_logs(id, keep=keep))

    def retry_all(
        self, state: str = "failed", *, older_than: Duration = 0, limit: int | None = None, reset: bool = False
    ) -> int:
        """Retries jobs of a state that finished at least that long ago, oldest first, in batches.

        Those that end while it is at it are left out.
        """
        return run(self._queue.retry_all(state, older_than=older_than, limit=limit, reset=reset))

    def promote_all(self, *, limit: int | None = None) -> int:
        """Ends the delay of every delayed job, in batches, the first due first."""
        return run(self._queue.promote_all(limit=limit))

    def drain(self, *, delayed: bool = False) -> int:
        """Removes what waits, and on request what is delayed; running and finished jobs stay."""
        return run(self._queue.drain(delayed=delayed))

    def clean(self, older_than: Duration = 0, state: str = "completed", *, limit: int | None = None) -> list[str]:
        """Removes jobs of a state that finished (or were added) at least that long ago; answers their ids."""
        return run(self._queue.clean(older_than, state, limit=limit))

    def obliterate(self, *, force: bool = False) -> int:
        """Removes the queue and all that is in it. With active jobs it only pauses, unless forced."""
        return run(self._queue.obliterate(force=force))

    def pause(self, name: str | None = None) -> None:
        """Nothing more is claimed, for the whole queue or for one job name; what runs goes on."""
        run(self._queue.pause(name))

    def resume(self, name: str | None = None) -> None:
        """Ends a pause; that of the queue and that of a name are two things."""
        run(self._queue.resume(name))

    def set_global_concurrency(self, limit: int | None) -> None:
        """The most jobs of this queue that may be active at once, over all workers; None for no limit."""
        run(self._queue.set_global_concurrency(limit))

    def is_maxed(self) -> bool:
        """Whether as many jobs are active as the global concurrency allows."""
        return run(self._queue.is_maxed())

    # End of what tools/twins.py writes

    # Moving one job

    # Moving many

    # Holding back


async def _next(events: AsyncGenerator[Event, None]) -> Event | None:
    return await anext(events, None)
