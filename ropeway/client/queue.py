"""`Queue`: the public class by which applications add and manage jobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Final, Never, Unpack, overload

import msgspec

from ..errors import InvalidInput, InvalidMove, InvalidOption, JobNotFound, WorkerNotFound
from ..job.choices import function_or_none, one_of, yes_or_no
from ..job.codec import LARGEST_SIZE_LIMIT, SIZE_LIMIT, Json, encode
from ..job.dedupe import dedupe_key
from ..job.durations import Duration, milliseconds
from ..job.events import EVENTS_KEPT, Event
from ..job.flows import CHILD_STATES, ChildState
from ..job.instants import instant_of
from ..job.marks import SIGNAL, Mark, Marking, Notice, check_bounds, mark_name
from ..job.moves import MOVES, MoveName
from ..job.names import job_id, job_name, queue_name, tag_name
from ..job.numbers import whole
from ..job.options import JobOptions, priority_of, read_options
from ..job.outcomes import Classify
from ..job.phases import phases_from
from ..job.record import JobRecord, NewJob
from ..job.stages import stage_ages
from ..job.stalls import OnStalled
from ..job.states import FINAL, OPEN, STATES, State, state_named
from ..showing import shown
from ..store.commands import Find
from ..store.contract import Store
from ..store.transactions import sharing
from ..store.values import (
    BATCH,
    Added,
    Answer,
    Children,
    Counts,
    History,
    JobChange,
    JobUpdate,
    LogPage,
    Metric,
    Settings,
)
from .attached import Attached
from .batches import NO_LIMIT, clean_all, move_all, obliterate_all
from .bundles import answered, bundle_of, handle_of, job_of, note_answer
from .dead_letters import redrive
from .events import newest_event, read_events
from .flow_plan import MOST_NODES, Plan
from .flow_tree import DEEPEST, FlowNode, by_queue, descendants, read_tree, unfinished
from .flows import Flow, FlowHandle, FlowRequest
from .found import FoundJob, JobPage, found_job
from .handle import JobHandle
from .name_hints import ON_QUEUES, STORE_ELSEWHERE, Guided
from .new_jobs import (
    PROGRESS_LIMIT,
    Call,
    JobRequest,
    Named,
    Several,
    checked_call,
    lone_call,
    reason_text,
    refuse_misplaced,
)
from .pipelines import PipelineTask
from .publishing import event_data, own_event
from .repeating import add_repeating
from .results import R
from .schedule import Schedule, ScheduleOptions
from .schedules import PutOptions, Schedules
from .sync_queue import SyncQueue
from .task_decorator import TaskDecorator
from .task_maker import TaskMaker
from .tasks import Tasks
from .timings import MinuteTimings, read_timings
from .transactions import own_transaction
from .webhooks import WebhookWriter, delivery, queue_webhook
from .workers import Order, WorkerInfo, order_worker, read_worker, read_workers

MOST_LINES: Final = 2**53
"""The largest line number that every store can hold."""
MOST_PRIORITIES: Final = 1_000
"""Most items of one call: a server executes it in one step, in which other callers wait."""
NOT_ACTIVE: Final[tuple[State, ...]] = ("waiting", "waiting-children", "delayed", *FINAL)


class Queue(Attached, Guided):
    """A named queue of jobs. The constructor does not connect.

    Job options are defaults for the jobs added through this object: `Queue("mail", attempts=3)`. `classify` and
    `on_stalled` apply to workers that are given this object, unless they have their own.
    """

    _foreign_names = ON_QUEUES
    _twin = "queue.sync.{}(...)"

    def __init__(
        self,
        name: str,
        url: str | None = None,
        *,
        store: Store | None = None,
        size_limit: int = SIZE_LIMIT,
        classify: Classify | None = None,
        on_stalled: OnStalled | None = None,
        **defaults: Unpack[JobOptions],
    ) -> None:
        for one_job_only in ("id", "delay", "version"):
            if one_job_only in defaults:
                raise InvalidOption(one_job_only, "is for a single job, not a default of the queue")
        for word in defaults.keys() & STORE_ELSEWHERE:
            raise InvalidOption(
                word, "is unknown: name the store by 'url', or give what connect(url) answers as 'store'"
            )
        read_options(defaults)
        self.webhook = queue_webhook(defaults.pop("webhook", None))
        """Where the ends of its jobs are reported, unless they have their own webhook."""
        self.size_limit = whole("size_limit", size_limit, 2, LARGEST_SIZE_LIMIT)
        """Most bytes of a job's data or result as JSON."""
        self.classify = function_or_none("classify", classify)
        """Decides, in workers of this object, per error whether it may be retried."""
        self.on_stalled = None if on_stalled is None else one_of("requeue", "fail")("on_stalled", on_stalled)
        """What workers of this object do with stalled jobs, unless they have their own setting."""
        self.defaults = defaults
        self.tasks = Tasks()
        """Tasks made by `@queue.task`, by job name; `Worker(queue)` runs them."""
        self.webhook_settings = WebhookWriter(self)
        self.pipelines: dict[str, PipelineTask] = {}
        """Pipelines given to `queue.task`, by job name; `Worker(queue)` runs them."""
        super().__init__(queue_name(name), url, store)

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} on {self.store.url}>"

    @property
    def sync(self) -> SyncQueue:
        """The same queue for code without an event loop: `queue.sync.add(...)` blocks until it is answered."""
        return SyncQueue(self)

    # Adding

    @property
    def task(self) -> TaskDecorator:
        """Makes a task of a function: `@queue.task`, or with options for its jobs, `@queue.task(attempts=3)`.

        `name` defaults to the function's name; `run_in="process"` runs it in processes that can be killed. A first
        parameter that is a `Job` (`SyncJob` of a `def`, `ProcessJob` in a process), or any with `context=True`,
        receives the running job, and callers of `add` do not pass it.
        """
        return TaskDecorator(TaskMaker(self))

    async def add(
        self,
        name: str,
        data: Json = None,
        *misplaced: Never,
        tx: object = None,
        repeat: ScheduleOptions | None = None,
        **options: Unpack[JobOptions],
    ) -> JobHandle:
        """Stores a job; when this returns, it is as durable as its store promises.

        If a job with the given `id` exists with the same name and data, that job is returned, with `created` False;
        with other data `DuplicateJob` is raised. With `tx`, your own connection or session to the store's database, the
        job is part of its transaction: it exists once you commit, and not before. With `repeat`, a schedule is stored
        instead, under the given `id` or one made of name and rule; the handle is that of its first job to come.
        """
        if misplaced:
            refuse_misplaced(misplaced)
        if repeat is not None:
            return await add_repeating(self, name, data, repeat, options, tx)
        # Not by `add_call`, which would cost one more coroutine per add.
        call: Call[Json] = Call(name, data, options)
        job = job_of(self, call)
        [answer] = await self._add([job], tx)
        return note_answer(handle_of(self, call, job.id), answer)

    async def add_call(self, call: Call[R], *, tx: object = None) -> JobHandle[R]:
        """Stores the job of one `task.call(...)`."""
        job = job_of(self, lone_call(checked_call(call)))
        [answer] = await self._add([job], tx)
        return note_answer(handle_of(self, call, job.id), answer)

    @overload
    async def add_many(self, requests: Iterable[Call[R]], *, tx: object = None) -> list[JobHandle[R]]: ...
    @overload
    async def add_many(self, requests: Iterable[Call[R] | Named], *, tx: object = None) -> list[JobHandle[R | Any]]: ...
    @overload
    async def add_many(
        self, requests: Several[JobRequest[R]] | Iterator[JobRequest[R]], *, tx: object = None
    ) -> list[JobHandle[R | Any]]: ...
    async def add_many(self, requests: Iterable[JobRequest], *, tx: object = None) -> list[JobHandle]:
        """Stores all of the jobs or none, in one round trip.

        Items are `(name, data)`, `(name, data, options)`, `task.call(...)` or names, in any mixture; `JobRequest` is
        their type.
        """
        handles, bundle = bundle_of(self, requests)
        return answered(handles, await self._add(bundle, tx)) if bundle else []

    @overload
    async def add_flow(self, flow: Call[R], *, tx: object = None) -> FlowHandle[R]: ...
    @overload
    async def add_flow(self, flow: Flow, *, tx: object = None) -> FlowHandle: ...
    async def add_flow(self, flow: FlowRequest, *, tx: object = None) -> FlowHandle:
        """Stores a job and its children, of any depth, or none of them; returns the parent.

        It waits until its children have ended. If the parent's own `id` exists with the same data, the flow is found,
        and nothing is added.
        """
        [handle] = await self.add_flows([flow], tx=tx)
        return handle

    async def add_flows(self, flows: Iterable[FlowRequest], *, tx: object = None) -> list[FlowHandle]:
        """Stores several flows, all or none, in one round trip. They may share jobs."""
        plan = Plan(self, flows)
        bundle = plan.bundle
        for queue in plan.undeclared:
            await queue.webhook_settings.write()
        return plan.handles(bundle, await self._add(bundle, tx)) if bundle else []

    def _add(self, bundle: list[NewJob], tx: object) -> Awaitable[list[Added]]:
        if self.webhook is not None and self.webhook_settings.is_pending:
            return self._declare_and_add(bundle, tx)
        return self.adds.add(bundle) if tx is None else self._add_inside(bundle, tx)

    async def _declare_and_add(self, bundle: list[NewJob], tx: object) -> list[Added]:
        await self.webhook_settings.write()
        return await self._add(bundle, tx)

    async def _add_inside(self, bundle: list[NewJob], tx: object) -> list[Added]:
        store = sharing(self.store)
        inside = store.join(tx)
        for queue in dict.fromkeys(job.queue for job in bundle):
            await store.prepare(queue)
        return await inside.add(bundle)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Opens a transaction of the store, for your own statements and for adds with `tx`.

        On PostgreSQL it is a connection of psycopg, on SQLite an object with `await tx.execute(sql, parameters)`. It is
        committed at the end of the block, and rolled back if the block raises.
        """
        return own_transaction(self.store, self.name)

    # Schedules

    async def schedule(self, schedule: str, /, name: str, data: Json = None, **options: Unpack[PutOptions]) -> Schedule:
        """Stores a rule that makes jobs, by `cron` or `every`, under an id; a second call with it changes the rule.

        `await queue.schedule("nightly", "report", {"kind": "daily"}, cron="0 9 * * *", tz="America/New_York")`. Job
        options are those of the jobs that it makes. However many workers and clocks there are, a tick makes one job.
        """
        return await self.schedules.put(schedule, name, data, **options)

    @property
    def schedules(self) -> Schedules:
        """The schedules of this queue: `list`, `get`, `pause`, `resume`, `run` and `remove`."""
        return Schedules(self)

    # Dedupe keys and dead letters

    async def dedupe_holder(self, key: str) -> FoundJob | None:
        """The job that holds a dedupe key; None if it is free, or its job is gone."""
        holder = await self.store.dedupe(self.name, dedupe_key(key))
        return None if holder is None else await self.get(holder.id)

    async def release_dedupe(self, key: str) -> bool:
        """Frees a dedupe key; its job goes on. False if it was free."""
        return await self.store.release_dedupe(self.name, dedupe_key(key))

    async def redrive(self, *ids: str, limit: int | None = None) -> int:
        """Sends dead letters in this queue back where they came from: the given ones, or all that nobody dealt with.

        A job that is still there is retried with all its attempts, otherwise it is added again; its letter is removed.
        Returns how many were sent.
        """
        most = NO_LIMIT if limit is None else whole("limit", limit, 1)
        return await redrive(self, [job_id(id) for id in ids], most)

    # Signals

    async def signal(self, id: str, name: str, data: Json = None) -> None:
        """Answers a `job.wait_for(name)` of the job, also one that comes later; a second signal replaces the first."""
        mark = SIGNAL + mark_name(name, SIGNAL)
        detail = encode({"name": name}, "name", PROGRESS_LIMIT)
        signal = Mark(mark, encode(data, "data", self.size_limit))
        check_bounds({each.name: each.value for each in (await self._record(id)).marks}, [signal])
        marking = Marking((signal,), notices=(Notice("signalled", detail),))
        [answer] = await self.store.update(self.name, [JobUpdate(job_id(id), marking=marking)])
        self._expect(id, "signal", answer, OPEN)

    # Looking

    async def get(self, id: str) -> FoundJob | None:
        """The job with its snapshot; None if it does not exist."""
        [record] = await self.store.get(self.name, [job_id(id)])
        return None if record is None else found_job(self, record)

    async def flow(self, id: str, *, depth: int = DEEPEST, limit: int = 1_000) -> FlowNode:
        """The job with its children, theirs, and so on, as they stand, across queues.

        At most `depth` levels below it, and `limit` jobs in all; what is left out is counted in `hidden`.
        """
        levels, most = whole("depth", depth, 0, DEEPEST), whole("limit", limit, 1, MOST_NODES)
        return await read_tree(self, await self._record(id), levels, most)

    async def children(self, id: str, *states: ChildState, after: str | None = None, limit: int = 1_000) -> Children:
        """A page of the job's children as it knows them, with their results; also of children that are gone."""
        wanted = tuple(one_of(*CHILD_STATES)("state", state) for state in states) or CHILD_STATES
        most = whole("limit", limit, 1, BATCH)
        page = await self.store.children(self.name, job_id(id), states=wanted, after=after, limit=most)
        if page is None:
            raise JobNotFound(self.name, id)
        return page

    async def _record(self, id: str) -> JobRecord:
        [record] = await self.store.get(self.name, [job_id(id)])
        if record is None:
            raise JobNotFound(self.name, id)
        return record

    async def find(
        self,
        *states: str,
        name: str | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        tag: str | None = None,
        stale: bool = False,
    ) -> JobPage:
        """A page of jobs in the given states (default all), state by state.

        Each state has its own order: waiting by claim order, delayed by due time, active by start, finished by end.
        With `stale`, only finished jobs that the queue's retention has marked as stale.
        """
        query = Find(
            self.name,
            tuple(state_named(state) for state in states) or STATES,
            None if name is None else job_name(name),
            whole("limit", limit, 1, BATCH),
            after,
            yes_or_no("newest_first", newest_first),
            None if tag is None else tag_name(tag),
            yes_or_no("stale", stale),
        )
        page = await self.store.find(query)
        return JobPage([found_job(self, record) for record in page.jobs], page.next)

    async def counts(self) -> Counts:
        """The number of jobs in each state."""
        counts = await self.store.count(self.name)
        return {state: counts[state] for state in STATES}

    async def counts_by_priority(self, *priorities: int) -> dict[int, int]:
        """The number of waiting jobs of each given priority."""
        wanted = [*dict.fromkeys(priority_of(priority) for priority in priorities)]
        if not 0 < len(wanted) <= MOST_PRIORITIES:
            raise InvalidOption("priorities", f"cannot be {len(wanted)} of them: name 1 to {MOST_PRIORITIES:,}")
        return dict(zip(wanted, await self.store.count_waiting(self.name, wanted), strict=True))

    async def metrics(self, *, since: datetime | None = None) -> list[Metric]:
        """Counts per minute, oldest first; kept for two weeks."""
        return await self.store.metrics(self.name, since=0 if since is None else instant_of(since, "since"))

    async def timings(self, *, since: datetime | None = None) -> list[MinuteTimings]:
        """How long jobs waited and ran, as histograms per minute, oldest first; kept for two weeks.

        Workers write them every ten seconds. Those that are killed take the last ones with them.
        """
        return await read_timings(self.store, self.name, 0 if since is None else instant_of(since, "since"))

    async def history(self, id: str) -> History:
        """The job's failed attempts and log lines."""
        history = await self.store.history(self.name, job_id(id))
        if history is None:
            raise JobNotFound(self.name, id)
        return history

    async def logs(self, id: str, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the previous page's `next`, or its `newest` for later lines."""
        position = None if after is None else whole("after", after, 0, MOST_LINES)
        lines = whole("limit", limit, 1, BATCH)
        backwards = yes_or_no("newest_first", newest_first)
        page = await self.store.log(self.name, job_id(id), position, limit=lines, newest_first=backwards)
        if page is None:
            raise JobNotFound(self.name, id)
        return page

    async def delivery(self, id: str) -> FoundJob | None:
        """The delivery of the webhook about a job's last end: a job itself, which can be retried to send it again.

        None if nothing is reported, or retention has removed it. A job that was removed is not found either.
        """
        return await delivery(self, await self._record(id))

    async def settings(self) -> Settings:
        """The queue's settings for all workers: paused or not, paused names, global concurrency."""
        return await self.store.settings(self.name)

    async def workers(self) -> list[WorkerInfo]:
        """The live workers of this queue."""
        return [worker for worker in await read_workers(self.store) if self.name in worker.queues]

    async def pause_worker(self, id: str) -> None:
        """Lets one worker of this queue claim no more, from any of its queues; it obeys within seconds.

        What it runs goes on. Raises `WorkerNotFound` if it does not run.
        """
        await self._order(id, "pause")

    async def resume_worker(self, id: str) -> None:
        """Ends the pause of a worker; also its draining, if it has not ended yet."""
        await self._order(id, "resume")

    async def drain_worker(self, id: str) -> None:
        """Lets a worker claim no more, finish the jobs that it has, and end."""
        await self._order(id, "drain")

    async def _order(self, id: str, order: Order) -> None:
        worker = await read_worker(self.store, id)
        if self.name not in worker.queues:
            raise WorkerNotFound(id)
        await order_worker(self.store, worker, order)

    def events(self, after: str = "now", *, follow: bool = True) -> AsyncGenerator[Event, None]:
        """The queue's events in order, for as long as you iterate; without `follow`, only past ones.

        `after` is "now" (when the iteration begins), "start" for the oldest kept event (about 10,000 are kept), the
        `id` of an event to resume from, or the result of `newest_event`.
        """
        return read_events(self.store, self.name, after, follow=follow)

    async def newest_event(self) -> str:
        """The current position in the event stream: an `after` with which `events` misses nothing from now on."""
        return await newest_event(self.store, self.name)

    async def publish(self, name: str, data: Mapping[str, Json] | None = None) -> None:
        """Writes an application-defined event into the queue's stream, in order with the events of its jobs.

        A call that raised `StoreUnavailable` may have written it: a repeat may write it twice.
        """
        await self.store.publish(self.name, own_event(name), event_data(data))

    async def trim_events(self, keep: int = 0) -> None:
        """Drops the oldest events: at most `keep` stay, but always the newest.

        Events of one move of a job, such as `added` and `waiting`, are dropped together.

        Without them, `result()` knows nothing of jobs that were removed.
        """
        await self.store.trim_events(self.name, keep=whole("keep", keep, 0, EVENTS_KEPT))

    # Moving one job

    async def cancel(self, id: str, reason: str | None = None, *, children: bool = False) -> bool:
        """Cancels a job that is not finished, including a running one; False if it was cancelled before.

        With `children`, those below it that are not finished are cancelled too.
        """
        text = reason_text(reason)
        record = await self._record(id) if yes_or_no("children", children) else None
        [answer] = await self.store.cancel(self.name, [job_id(id)], text)
        was_open = self._expect(id, "cancel", answer) != "cancelled"
        if record is not None and record.children:
            # The parent first: nothing starts it then.
            for queue, ids in by_queue(unfinished(await descendants(self, record))).items():
                for start in range(0, len(ids), BATCH):
                    await self.store.cancel(queue, ids[start : start + BATCH], text)
        return was_open

    async def retry(self, id: str, *, reset: bool = False, from_phase: str | None = None) -> None:
        """Makes a finished job run once more; `reset` restores all its attempts.

        Results of steps and completed phases stay; `from_phase` begins again at that phase of a pipeline.
        """
        forgets = () if from_phase is None else phases_from(await self._record(id), from_phase)
        retried = self.store.retry(self.name, [job_id(id)], reset=yes_or_no("reset", reset), forgets=forgets)
        [answer] = await retried
        self._expect(id, "retry by hand", answer)

    async def promote(self, id: str) -> None:
        """Makes a delayed job wait now."""
        [answer] = await self.store.promote(self.name, [job_id(id)])
        self._expect(id, "promote", answer)

    async def remove(self, id: str, *, force: bool = False, children: bool = True) -> None:
        """Removes a job, and those below it in its flow unless `children` is False; active ones only with `force`.

        Looks first: if one of them is active, nothing is removed. One that a worker takes in that moment stays, and
        `InvalidMove` says so.
        """
        by_force = yes_or_no("force", force)
        below: list[FlowNode] = []
        if yes_or_no("children", children) and (record := await self._record(id)).children:
            below = await descendants(self, record)
            for node in below:
                if node.state == "active" and not by_force:
                    raise InvalidMove(node.queue, node.id, "remove", "active", NOT_ACTIVE)
        [answer] = await self.store.remove(self.name, [job_id(id)], force=by_force)
        self._expect(id, "remove", answer, NOT_ACTIVE)
        # The parent was first: it would start if its children were gone.
        for queue, ids in by_queue(below).items():
            for start in range(0, len(ids), BATCH):
                part = ids[start : start + BATCH]
                for one, answer in zip(part, await self.store.remove(queue, part, force=by_force), strict=True):
                    if answer.verdict == "refused":
                        raise InvalidMove(queue, one, "remove", "active", NOT_ACTIVE)

    async def change(
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
        named = job_id(id)
        options = {"priority": priority, "lifo": lifo, "delay": delay}
        if data is msgspec.UNSET and not any(value is not None for value in options.values()):
            raise InvalidInput("change was given nothing to change: give it a priority, lifo, a delay or data")
        placement, _ = read_options({option: value for option, value in options.items() if value is not None})
        edit = JobChange(
            named,
            None if priority is None else placement.priority,
            None if lifo is None else placement.lifo,
            None if delay is None or placement.due_at is not None else placement.delay,
            placement.due_at,
            None if data is msgspec.UNSET else encode(data, "data", self.size_limit),
        )
        [answer] = await self.store.change(self.name, [edit])
        if delay is not None:
            allowed: tuple[State, ...] = ("delayed",)
        elif priority is not None or lifo is not None:
            allowed = ("waiting", "delayed", "waiting-children")
        else:
            allowed = OPEN
        self._expect(id, "change", answer, allowed)

    async def report_progress(self, id: str, progress: Json) -> None:
        """Sets a job's progress from outside its handler."""
        change = JobUpdate(job_id(id), progress=encode(progress, "progress", PROGRESS_LIMIT))
        [answer] = await self.store.update(self.name, [change])
        self._expect(id, "update", answer, OPEN)

    async def clear_logs(self, id: str, *, keep: int = 0) -> None:
        """Drops all but the newest `keep` log lines of a job, in any state."""
        answer = await self.store.clear_log(self.name, job_id(id), keep=whole("keep", keep, 0, MOST_LINES))
        self._expect(id, "clear logs", answer)

    # Moving many

    async def retry_all(
        self, state: str = "failed", *, older_than: Duration = 0, limit: int | None = None, reset: bool = False
    ) -> int:
        """Retries jobs of a state that finished at least `older_than` ago, oldest first, in batches.

        Jobs that finish while it runs are left out.
        """

        async def retry(ids: list[str]) -> list[Answer]:
            return await self.store.retry(self.name, ids, reset=reset)

        yes_or_no("reset", reset)
        named = state_named(state)
        if named not in FINAL:
            raise InvalidOption("state", f"cannot be {shown(state)}: retry is for jobs that are {' or '.join(FINAL)}")
        age = milliseconds(older_than, "older_than")
        last = await self.store.clock() - age
        return await move_all(
            self.store, self.name, named, limit, retry, lambda record: (record.finished_at or 0) <= last
        )

    async def promote_all(self, *, limit: int | None = None) -> int:
        """Makes every delayed job wait now, in batches, in the order of their due times."""

        async def promote(ids: list[str]) -> list[Answer]:
            return await self.store.promote(self.name, ids)

        started = await self.store.clock()
        return await move_all(
            self.store, self.name, "delayed", limit, promote, lambda record: record.created_at <= started
        )

    async def drain(self, *, delayed: bool = False) -> int:
        """Removes waiting jobs, and with `delayed` also delayed ones; running and finished jobs stay."""
        states = ("waiting", "delayed") if yes_or_no("delayed", delayed) else ("waiting",)
        return sum([len(await self.clean(0, state)) for state in states])

    async def clean(self, older_than: Duration = 0, state: str = "completed", *, limit: int | None = None) -> list[str]:
        """Removes jobs of a state that finished (or were added) at least `older_than` ago; returns their ids."""
        age = milliseconds(older_than, "older_than")
        return await clean_all(self.store, self.name, state_named(state), age, limit)

    async def obliterate(self, *, force: bool = False) -> int:
        """Removes the queue and everything in it. If it has active jobs it is only paused, unless `force` is set."""
        return await obliterate_all(self.store, self.name, force=yes_or_no("force", force))

    # Holding back

    async def pause(self, name: str | None = None) -> None:
        """Stops claims, for the whole queue or for one job name; running jobs go on."""
        if name is None:
            await self.store.configure(self.name, pause=True)
        else:
            await self.store.configure(self.name, pause_names=[job_name(name)])

    async def resume(self, name: str | None = None) -> None:
        """Ends the pause of the queue, or of one job name: the two are independent."""
        if name is None:
            await self.store.configure(self.name, pause=False)
        else:
            await self.store.configure(self.name, resume_names=[job_name(name)])

    async def set_global_concurrency(self, limit: int | None) -> None:
        """Limits how many jobs of this queue are active at once, over all workers; None removes the limit."""
        value = 0 if limit is None else whole("limit", limit, 1)
        await self.store.configure(self.name, max_active=value)

    async def set_retention(self, *, stale_after: Duration | None = None, delete_after: Duration | None = None) -> None:
        """Sets after how long finished jobs of this queue become stale, and are deleted; None removes that stage.

        Any worker of the queue does that, in batches, with the events `stale` and `deleted`, and calls `on_stale` and
        `on_delete` if workers have them. Every finished job is deleted then: a job's own `remove_on_complete` and
        `remove_on_fail` can only remove it earlier.
        """
        stale, delete = stage_ages(stale_after, delete_after)
        await self.store.configure_stages(self.name, stale_after=stale, delete_after=delete)

    async def forget_callbacks(self) -> None:
        """Keeps no more stale and deleted jobs for `on_stale` and `on_delete`, until a worker that has them starts."""
        await self.store.configure_stages(self.name, callbacks=())

    async def is_maxed(self) -> bool:
        """True if as many jobs are active as the global concurrency allows."""
        limit = (await self.settings()).max_active
        return limit is not None and (await self.counts())["active"] >= limit

    # Helpers

    def _expect(self, id: str, move: MoveName | str, answer: Answer, allowed: tuple[State, ...] = ()) -> State | None:
        """The state before a move that was made; raises the matching error for one that was not."""
        if answer.verdict == "missing":
            raise JobNotFound(self.name, id)
        if answer.verdict == "refused":
            assert answer.state is not None
            sources = allowed or MOVES[move].sources
            raise InvalidMove(self.name, id, move, answer.state, sources)
        return answer.state
