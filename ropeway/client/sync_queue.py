"""`SyncQueue`: the twin of `Queue` for code without an event loop."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Never, Self, Unpack, overload

import msgspec

from ..errors import StoreClosed
from ..job.codec import Json
from ..job.durations import Duration
from ..job.events import Event
from ..job.flows import ChildState
from ..job.options import JobOptions
from ..job.record import NewJob
from ..store.transactions import sharing
from ..store.values import Added, Children, Counts, History, LogPage, Metric, Settings
from .adds import add_blocking
from .blocking_iteration import iterate
from .bundles import answered, bundle_of, handle_of, job_of, note_answer
from .flow_plan import Plan
from .flow_tree import DEEPEST, FlowNode
from .flows import Flow, FlowRequest
from .name_hints import ON_SYNC_QUEUES, Guided
from .new_jobs import Call, JobRequest, Named, Several, checked_call, lone_call, refuse_misplaced
from .portal import refuse_at_the_end, refuse_on_a_loop, run
from .results import R
from .schedule import Schedule, ScheduleOptions
from .sync_flows import SyncFlowHandle
from .sync_found import SyncFoundJob, SyncJobPage
from .sync_handle import SyncJobHandle
from .sync_schedules import SyncSchedules
from .timings import MinuteTimings
from .transactions import own_transaction_blocking
from .workers import WorkerInfo

if TYPE_CHECKING:
    from .queue import Queue
    from .schedules import PutOptions


class SyncQueue(Guided):
    """The twin of `Queue`: the same calls, each blocking until it is answered.

    Safe in any number of threads, beside a loop that awaits the queue itself, and after a fork. On the thread of an
    event loop its calls raise `SyncRefused`.
    """

    __slots__ = ("_queue",)

    _foreign_names = ON_SYNC_QUEUES
    _twin = "queue.sync.{}(...)"

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<SyncQueue {self.name!r} on {self._queue.store.url}>"

    @property
    def awaited(self) -> Queue:
        """The queue whose twin this is."""
        return self._queue

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
        """Most bytes of a job's data or result as JSON."""
        return self._queue.size_limit

    @property
    def defaults(self) -> JobOptions:
        return self._queue.defaults

    def close(self) -> None:
        """Closes the queue, also for its async twin; a store that was passed in by the caller stays open."""
        run(self._queue.close())

    @property
    def schedules(self) -> SyncSchedules:
        """The schedules of this queue: `list`, `get`, `pause`, `resume`, `run` and `remove`."""
        return SyncSchedules(self._queue.schedules)

    # Adding

    def add(
        self,
        name: str,
        data: Json = None,
        *misplaced: Never,
        tx: object = None,
        repeat: ScheduleOptions | None = None,
        **options: Unpack[JobOptions],
    ) -> SyncJobHandle:
        """Stores a job; when this returns, it is as durable as its store promises.

        If a job with the given `id` exists with the same name and data, that job is returned, with `created` False;
        with other data `DuplicateJob` is raised. With `tx`, your own connection or session to the store's database, the
        job is part of its transaction: it exists once you commit, and not before. With `repeat`, a schedule is stored
        instead, under the given `id` or one made of name and rule; the handle is that of its first job to come.
        """
        if misplaced:
            refuse_misplaced(misplaced)
        if repeat is not None:
            return run(self._queue.add(name, data, tx=tx, repeat=repeat, **options)).sync
        return self._add_one(Call(name, data, options), tx, "await queue.add(...)")

    def add_call(self, call: Call[R], *, tx: object = None) -> SyncJobHandle[R]:
        """Stores the job of one `task.call(...)`."""
        lone_call(checked_call(call))
        return self._add_one(call, tx, "await queue.add_call(...)")

    def _add_one(self, call: Call[R], tx: object, instead: str) -> SyncJobHandle[R]:
        job = job_of(self._queue, call)
        [answer] = self._add([job], tx, instead)
        return SyncJobHandle(note_answer(handle_of(self._queue, call, job.id), answer))

    @overload
    def add_many(self, requests: Iterable[Call[R]], *, tx: object = None) -> list[SyncJobHandle[R]]: ...
    @overload
    def add_many(self, requests: Iterable[Call[R] | Named], *, tx: object = None) -> list[SyncJobHandle[R | Any]]: ...
    @overload
    def add_many(
        self, requests: Several[JobRequest[R]] | Iterator[JobRequest[R]], *, tx: object = None
    ) -> list[SyncJobHandle[R | Any]]: ...
    def add_many(self, requests: Iterable[JobRequest], *, tx: object = None) -> list[SyncJobHandle]:
        """Stores all of the jobs or none, in one round trip.

        Items are `(name, data)`, `(name, data, options)`, `task.call(...)` or names, in any mixture; `JobRequest` is
        their type.
        """
        handles, bundle = bundle_of(self._queue, requests)
        if not bundle:
            return []
        answers = self._add(bundle, tx, "await queue.add_many(...)")
        return [SyncJobHandle(job) for job in answered(handles, answers)]

    @overload
    def add_flow(self, flow: Call[R], *, tx: object = None) -> SyncFlowHandle[R]: ...
    @overload
    def add_flow(self, flow: Flow, *, tx: object = None) -> SyncFlowHandle: ...
    def add_flow(self, flow: FlowRequest, *, tx: object = None) -> SyncFlowHandle:
        """Stores a job and its children, of any depth, or none of them; returns the parent.

        It waits until its children have ended. If the parent's own `id` exists with the same data, the flow is found,
        and nothing is added.
        """
        [handle] = self.add_flows([flow], tx=tx)
        return handle

    def add_flows(self, flows: Iterable[FlowRequest], *, tx: object = None) -> list[SyncFlowHandle]:
        """Stores several flows, all or none, in one round trip. They may share jobs."""
        plan = Plan(self._queue, flows)
        bundle = plan.bundle
        if not bundle:
            return []
        for queue in plan.undeclared:
            run(queue.webhook_settings.write())
        return [job.sync for job in plan.handles(bundle, self._add(bundle, tx, "await queue.add_flows(...)"))]

    def _add(self, bundle: list[NewJob], tx: object, instead: str) -> list[Added]:
        """Adds on this thread if the store offers that, which saves the detour over the background loop."""
        refuse_on_a_loop(instead)
        store = self._queue.twin_store
        try:
            if self._queue.webhook_settings.is_pending:
                run(self._queue.webhook_settings.write())
            if tx is not None:
                return self._add_inside(bundle, tx)
            if (adder := store.offers.blocking_adds) is not None:
                return add_blocking(adder, bundle)
            return run(self._add_there(bundle))
        except StoreClosed:
            refuse_at_the_end()
            raise

    async def _add_there(self, bundle: list[NewJob]) -> list[Added]:
        """Adds on the background loop, by its own store handle."""
        return await self._queue.adds.add(bundle)

    def _add_inside(self, bundle: list[NewJob], tx: object) -> list[Added]:
        store = sharing(self._queue.twin_store)
        inside = store.join_blocking(tx)
        for queue in dict.fromkeys(job.queue for job in bundle):
            run(store.prepare(queue))
        return inside.add(bundle)

    def transaction(self) -> AbstractContextManager[Any]:
        """Opens a transaction of the store, for your own statements and for adds with `tx`.

        On PostgreSQL it is a connection of psycopg, on SQLite an object with `tx.execute(sql, parameters)`. It is
        committed at the end of the block, and rolled back if the block raises.
        """
        refuse_on_a_loop("async with queue.transaction()")
        return own_transaction_blocking(self._queue.twin_store, self.name)

    # Looking

    def events(self, after: str = "now", *, follow: bool = True) -> Generator[Event, None, None]:
        """The queue's events in order, for as long as you iterate; without `follow`, only past ones.

        `after` is "now" (when the iteration begins), "start" for the oldest kept event (about 10,000 are), the `id` of
        an event to resume from, or what `newest_event` answered. `close()` it, or drop it, when you have seen enough.
        """
        return iterate(lambda: self._queue.events(after, follow=follow), "async for event in queue.events(...)")

    # Written by tools/twins.py: do not edit

    def schedule(self, schedule: str, /, name: str, data: Json = None, **options: Unpack[PutOptions]) -> Schedule:
        """Stores a rule that makes jobs, by `cron` or `every`, under an id; a second call with it changes the rule.

        `await queue.schedule("nightly", "report", {"kind": "daily"}, cron="0 9 * * *", tz="America/New_York")`. Job
        options are those of the jobs that it makes. However many workers and clocks there are, a tick makes one job.
        """
        return run(self._queue.schedule(schedule, name, data, **options))

    def dedupe_holder(self, key: str) -> SyncFoundJob | None:
        """The job that holds a dedupe key; None if it is free, or its job is gone."""
        found = run(self._queue.dedupe_holder(key))
        return None if found is None else found.sync

    def release_dedupe(self, key: str) -> bool:
        """Frees a dedupe key; its job goes on. False if it was free."""
        return run(self._queue.release_dedupe(key))

    def redrive(self, *ids: str, limit: int | None = None) -> int:
        """Sends dead letters in this queue back where they came from: the given ones, or all that nobody dealt with.

        A job that is still there is retried with all its attempts, otherwise it is added again; its letter is removed.
        Returns how many were sent.
        """
        return run(self._queue.redrive(*ids, limit=limit))

    def signal(self, id: str, name: str, data: Json = None) -> None:
        """Answers a `job.wait_for(name)` of the job, also one that comes later; a second signal replaces the first."""
        run(self._queue.signal(id, name, data))

    def get(self, id: str) -> SyncFoundJob | None:
        """The job with its snapshot; None if it does not exist."""
        found = run(self._queue.get(id))
        return None if found is None else found.sync

    def flow(self, id: str, *, depth: int = DEEPEST, limit: int = 1000) -> FlowNode:
        """The job with its children, theirs, and so on, as they stand, across queues.

        At most `depth` levels below it, and `limit` jobs in all; what is left out is counted in `hidden`.
        """
        return run(self._queue.flow(id, depth=depth, limit=limit))

    def children(self, id: str, *states: ChildState, after: str | None = None, limit: int = 1000) -> Children:
        """A page of the job's children as it knows them, with their results; also of children that are gone."""
        return run(self._queue.children(id, *states, after=after, limit=limit))

    def find(
        self,
        *states: str,
        name: str | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        tag: str | None = None,
        stale: bool = False,
    ) -> SyncJobPage:
        """A page of jobs in the given states (default all), state by state.

        Each state has its own order: waiting by claim order, delayed by due time, active by start, finished by end.
        With `stale`, only finished jobs that the queue's retention has marked as stale.
        """
        return run(
            self._queue.find(
                *states, name=name, limit=limit, after=after, newest_first=newest_first, tag=tag, stale=stale
            )
        ).sync

    def counts(self) -> Counts:
        """The number of jobs in each state."""
        return run(self._queue.counts())

    def counts_by_priority(self, *priorities: int) -> dict[int, int]:
        """The number of waiting jobs of each given priority."""
        return run(self._queue.counts_by_priority(*priorities))

    def metrics(self, *, since: datetime | None = None) -> list[Metric]:
        """Counts per minute, oldest first; kept for two weeks."""
        return run(self._queue.metrics(since=since))

    def timings(self, *, since: datetime | None = None) -> list[MinuteTimings]:
        """How long jobs waited and ran, as histograms per minute, oldest first; kept for two weeks.

        Workers write them every ten seconds. Those that are killed take the last ones with them.
        """
        return run(self._queue.timings(since=since))

    def history(self, id: str) -> History:
        """The job's failed attempts and log lines."""
        return run(self._queue.history(id))

    def logs(self, id: str, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the previous page's `next`, or its `newest` for later lines."""
        return run(self._queue.logs(id, after=after, limit=limit, newest_first=newest_first))

    def delivery(self, id: str) -> SyncFoundJob | None:
        """The delivery of the webhook about a job's last end: a job itself, which can be retried to send it again.

        None if nothing is reported, or retention has removed it. A job that was removed is not found either.
        """
        found = run(self._queue.delivery(id))
        return None if found is None else found.sync

    def settings(self) -> Settings:
        """The queue's settings for all workers: paused or not, paused names, global concurrency."""
        return run(self._queue.settings())

    def workers(self) -> list[WorkerInfo]:
        """The live workers of this queue."""
        return run(self._queue.workers())

    def pause_worker(self, id: str) -> None:
        """Lets one worker of this queue claim no more, from any of its queues; it obeys within seconds.

        What it runs goes on. Raises `WorkerNotFound` if it does not run.
        """
        run(self._queue.pause_worker(id))

    def resume_worker(self, id: str) -> None:
        """Ends the pause of a worker; also its draining, if it has not ended yet."""
        run(self._queue.resume_worker(id))

    def drain_worker(self, id: str) -> None:
        """Lets a worker claim no more, finish the jobs that it has, and end."""
        run(self._queue.drain_worker(id))

    def newest_event(self) -> str:
        """The current position in the event stream: an `after` with which `events` misses nothing from now on."""
        return run(self._queue.newest_event())

    def publish(self, name: str, data: Mapping[str, Json] | None = None) -> None:
        """Writes an application-defined event into the queue's stream, in order with the events of its jobs.

        A call that raised `StoreUnavailable` may have written it: a repeat may write it twice.
        """
        run(self._queue.publish(name, data))

    def trim_events(self, keep: int = 0) -> None:
        """Drops the oldest events: at most `keep` stay, but always the newest.

        Events of one move of a job, such as `added` and `waiting`, are dropped together.

        Without them, `result()` knows nothing of jobs that were removed.
        """
        run(self._queue.trim_events(keep))

    def cancel(self, id: str, reason: str | None = None, *, children: bool = False) -> bool:
        """Cancels a job that is not finished, including a running one; False if it was cancelled before.

        With `children`, those below it that are not finished are cancelled too.
        """
        return run(self._queue.cancel(id, reason, children=children))

    def retry(self, id: str, *, reset: bool = False, from_phase: str | None = None) -> None:
        """Makes a finished job run once more; `reset` restores all its attempts.

        Results of steps and completed phases stay; `from_phase` begins again at that phase of a pipeline. A completed
        pipeline runs its last phase again.
        """
        run(self._queue.retry(id, reset=reset, from_phase=from_phase))

    def promote(self, id: str) -> None:
        """Makes a delayed job wait now."""
        run(self._queue.promote(id))

    def remove(self, id: str, *, force: bool = False, children: bool = True) -> None:
        """Removes a job, and those below it in its flow unless `children` is False; active ones only with `force`.

        Looks first: if one of them is active, nothing is removed. One that a worker takes in that moment stays, and
        `InvalidMove` says so.
        """
        run(self._queue.remove(id, force=force, children=children))

    def change(
        self,
        id: str,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes a job that is not finished: all given fields, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        run(self._queue.change(id, priority=priority, lifo=lifo, delay=delay, data=data))

    def report_progress(self, id: str, progress: Json) -> None:
        """Sets a job's progress from outside its handler."""
        run(self._queue.report_progress(id, progress))

    def clear_logs(self, id: str, *, keep: int = 0) -> None:
        """Drops all but the newest `keep` log lines of a job, in any state."""
        run(self._queue.clear_logs(id, keep=keep))

    def retry_all(
        self, state: str = "failed", *, older_than: Duration = 0, limit: int | None = None, reset: bool = False
    ) -> int:
        """Retries jobs of a state that finished at least `older_than` ago, oldest first, in batches.

        Jobs that finish while it runs are left out.
        """
        return run(self._queue.retry_all(state, older_than=older_than, limit=limit, reset=reset))

    def promote_all(self, *, limit: int | None = None) -> int:
        """Makes every delayed job wait now, in batches, in the order of their due times."""
        return run(self._queue.promote_all(limit=limit))

    def drain(self, *, delayed: bool = False) -> int:
        """Removes waiting jobs, and with `delayed` also delayed ones; running and finished jobs stay."""
        return run(self._queue.drain(delayed=delayed))

    def clean(self, older_than: Duration = 0, state: str = "completed", *, limit: int | None = None) -> list[str]:
        """Removes jobs of a state that finished (or were added) at least `older_than` ago; returns their ids."""
        return run(self._queue.clean(older_than, state, limit=limit))

    def obliterate(self, *, force: bool = False) -> int:
        """Removes the queue and everything in it. If it has active jobs it is only paused, unless `force` is set."""
        return run(self._queue.obliterate(force=force))

    def pause(self, name: str | None = None) -> None:
        """Stops claims, for the whole queue or for one job name; running jobs go on."""
        run(self._queue.pause(name))

    def resume(self, name: str | None = None) -> None:
        """Ends the pause of the queue, or of one job name: the two are independent."""
        run(self._queue.resume(name))

    def set_global_concurrency(self, limit: int | None) -> None:
        """Limits how many jobs of this queue are active at once, over all workers; None removes the limit."""
        run(self._queue.set_global_concurrency(limit))

    def set_retention(self, *, stale_after: Duration | None = None, delete_after: Duration | None = None) -> None:
        """Sets after how long finished jobs of this queue become stale, and are deleted; None removes that stage.

        Any worker of the queue does that, in batches, with the events `stale` and `deleted`, and calls `on_stale` and
        `on_delete` if workers have them. Every finished job is deleted then: a job's own `remove_on_complete` and
        `remove_on_fail` can only remove it earlier.
        """
        run(self._queue.set_retention(stale_after=stale_after, delete_after=delete_after))

    def forget_callbacks(self) -> None:
        """Keeps no more stale and deleted jobs for `on_stale` and `on_delete`, until a worker that has them starts."""
        run(self._queue.forget_callbacks())

    def is_maxed(self) -> bool:
        """True if as many jobs are active as the global concurrency allows."""
        return run(self._queue.is_maxed())

    # End of what tools/twins.py writes

    # Moving one job

    # Moving many

    # Holding back
