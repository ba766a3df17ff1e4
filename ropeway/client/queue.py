"""`Queue`: the public class by which applications add and manage jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Never, Unpack, overload

from ..errors import InvalidOption
from ..job.choices import function_or_none, one_of
from ..job.codec import LARGEST_SIZE_LIMIT, SIZE_LIMIT, Json, encode
from ..job.dedupe import dedupe_key
from ..job.marks import SIGNAL, Mark, Marking, Notice, check_bounds, mark_name
from ..job.names import job_id, queue_name
from ..job.numbers import whole
from ..job.options import JobOptions, read_options
from ..job.outcomes import Classify
from ..job.record import NewJob
from ..job.stalls import OnStalled
from ..job.states import OPEN
from ..store.contract import Store
from ..store.transactions import sharing
from ..store.values import Added, JobUpdate
from .batches import NO_LIMIT
from .bundles import answered, bundle_of, handle_of, job_of, note_answer
from .dead_letters import redrive
from .event_stream import EventStream
from .flow_plan import Plan
from .flows import Flow, FlowHandle, FlowRequest
from .found import FoundJob
from .handle import JobHandle
from .holding_back import HoldingBack
from .looking import Looking
from .moving import Moving
from .moving_many import MovingMany
from .name_hints import ON_QUEUES, STORE_ELSEWHERE, Guided
from .new_jobs import PROGRESS_LIMIT, Call, JobRequest, Named, Several, checked_call, lone_call, refuse_misplaced
from .pipelines import PipelineTask
from .repeating import add_repeating
from .results import R
from .schedule import Schedule, ScheduleOptions
from .schedules import PutOptions, Schedules
from .sync_queue import SyncQueue
from .task_decorator import TaskDecorator
from .task_maker import TaskMaker
from .tasks import Tasks
from .transactions import own_transaction
from .webhooks import WebhookWriter, queue_webhook
from .worker_orders import WorkerOrders


class Queue(Moving, MovingMany, HoldingBack, Looking, WorkerOrders, EventStream, Guided):
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
