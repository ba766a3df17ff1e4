"""Right uses of typed tasks: both type checkers accept every line, and know these types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

from ropeway import (
    Backoff,
    Call,
    Dedupe,
    Flow,
    FlowHandle,
    FlowNode,
    FoundJob,
    Job,
    JobHandle,
    JobOptions,
    JobRequest,
    JobType,
    Phase,
    PhaseContext,
    Pipeline,
    ProcessJob,
    ProcessPhaseContext,
    Queue,
    Schedule,
    Snapshot,
    SyncFlowHandle,
    SyncFoundJob,
    SyncJob,
    SyncJobHandle,
    SyncPhaseContext,
    Task,
    Worker,
    chain,
    in_process,
    result_of,
    results_of,
)

queue = Queue("typed", "memory://")


@dataclass
class Email:
    to: str
    when: datetime | None = None


@dataclass
class Receipt:
    id: int


@queue.task
async def resize(path: str, width: int = 800) -> str:
    return f"{path}@{width}"


@queue.task(attempts=3, backoff=Backoff.exponential(1), timeout="1 minute", remove_on_complete=True)
async def fetch(url: str, *, limit: float = 1.5) -> list[Receipt]:
    return [Receipt(int(limit))]


@queue.task
def shrink(path: str) -> int:
    return len(path)


@queue.task(name="shrink-all")
def shrink_all(paths: list[str], /) -> None: ...


@queue.task
async def report(job: Job, title: str, copies: int = 1) -> Receipt:
    await job.progress(50)
    return Receipt(copies)


@queue.task(priority=5)
def send(job: SyncJob, email: Email) -> Receipt:
    job.progress(len(email.to))
    return Receipt(1)


@queue.task(run_in="process")
def crunch(job: ProcessJob, number: int) -> float:
    job.log(str(number))
    return number / 2


@queue.task(context=True, attempts=2)
async def sweep(job: Any, folder: str) -> int:
    return len(folder) + int(job.attempt)


@queue.task
async def ping() -> None: ...


@queue.task(cron="*/5 * * * *", tz="Europe/Berlin", overlap="skip", missed="none", attempts=3)
async def tidy(deep: bool = False) -> int:
    return int(deep)


@queue.task(every="30 seconds", context=True, expires="1 hour", dead_letter="graves", dedupe=Dedupe.by_data())
def beat(job: Any) -> None: ...


@queue.task
def anything(data: Any, more: int = 0) -> int:
    return more


@queue.task
def whatever(path: str) -> Any:
    return path


async def adds() -> None:
    job = await resize.add("a.png", width=100)
    assert_type(job, JobHandle[str])
    assert_type(await job.result(timeout=60), str)
    assert_type(await resize.add(path="a.png"), JobHandle[str])
    assert_type(await (await fetch.add("a", limit=2)).result(), list[Receipt])
    assert_type(await shrink.add("a.png"), JobHandle[int])
    assert_type(await shrink_all.add(["a.png"]), JobHandle[None])
    assert_type(await ping.add(), JobHandle[None])
    # The job is the worker's to give.
    assert_type(await report.add("Title", copies=2), JobHandle[Receipt])
    assert_type(await send.add(Email("you")), JobHandle[Receipt])
    assert_type(await crunch.add(number=3), JobHandle[float])
    assert_type(await sweep.add("tmp"), JobHandle[int])
    await anything.add({"a": 1}, more=2)
    await anything.add(data=[1])
    await whatever.add("a")


async def options() -> None:
    later = resize.using(delay=60, priority=-1, id="one")
    assert_type(await later.add("a.png", 100), JobHandle[str])
    assert_type(await later.using(attempts=2).add("a.png"), JobHandle[str])
    assert_type(await report.using(delay="5 minutes").add("Title"), JobHandle[Receipt])


async def bulks(options: JobOptions) -> None:
    assert_type(resize.call("a.png", 3), Call[str])
    assert_type(
        await queue.add_many([resize.call("a.png"), resize.using(lifo=True).call("b.png")]), list[JobHandle[str]]
    )
    assert_type(await queue.add_many(shrink.call(path) for path in "ab"), list[JobHandle[int]])
    assert_type(await queue.add_many(["a", ("b", 1), ("c", 2, {"attempts": 2})]), list[JobHandle[Any]])
    await queue.add_many([resize.call("a.png"), shrink.call("b"), ("plain", {"a": 1}), Call("other", 1)])
    either: list[JobHandle[str | Any]] = await queue.add_many([("b", 1), resize.call("a")])
    any_of: list[JobHandle[str | int | Any]] = await queue.add_many(["a", resize.call("a"), shrink.call("a"), ("b", 1)])
    print(either, any_of)
    assert_type(await queue.add_many([("a", 1), ("b", [2]), ("c", {"d": 3}, {"delay": 5})]), list[JobHandle[Any]])
    assert_type(await queue.add_many(("a", number) for number in range(5)), list[JobHandle[Any]])
    assert_type(await queue.add_many(("a", 1, options) for _ in range(5)), list[JobHandle[Any]])
    assert_type(await queue.add_many({"a": 1, "b": 2}.items()), list[JobHandle[Any]])
    assert_type(await queue.add_many(["a"] * 5), list[JobHandle[Any]])
    assert_type(await queue.add_many(("a", "b")), list[JobHandle[Any]])
    assert_type(await queue.add_many(name for name in ("a", "b")), list[JobHandle[Any]])
    assert_type(await queue.add_many(resize.call(path) for path in ("a", "b")), list[JobHandle[str]])
    assert_type(await queue.add_many([]), list[JobHandle[Any]])
    gathered: list[JobRequest] = [resize.call("a"), ("b", 1)]
    gathered.append("c")
    assert_type(await queue.add_many(gathered), list[JobHandle[Any]])
    assert_type(queue.sync.add_many(gathered), list[SyncJobHandle[Any]])


async def direct_calls(job: Job, sync_job: SyncJob) -> None:
    assert_type(await resize("a.png", width=3), str)
    assert_type(shrink("a.png"), int)
    assert_type(await report(job, "Title"), Receipt)
    assert_type(send(sync_job, Email("you")), Receipt)
    print(whatever("a")["key"])


async def schedules(moment: datetime) -> None:
    assert_type(await tidy.add(deep=True), JobHandle[int])
    assert_type(await beat.add(), JobHandle[None])
    made = await queue.schedule("nightly", "report", {"kind": "daily"}, cron="0 9 * * *", tz="UTC", attempts=3)
    assert_type(made, Schedule)
    assert_type(made.upcoming(3, after=moment), list[datetime])
    assert_type(made.next_at, datetime | None)
    every = await queue.schedule("pulse", "ping", every=30, offset="5 s", start=moment, end=moment, limit=100)
    assert_type(every.history[0].skipped, str | None)
    assert_type(await queue.schedules.put("pulse", "ping", every=30, overlap="cancel", immediately=True), Schedule)
    assert_type(await queue.schedules.list(), list[Schedule])
    assert_type(await queue.schedules.get("pulse"), Schedule | None)
    assert_type(await queue.schedules.pause("pulse"), Schedule)
    assert_type(await queue.schedules.run("pulse"), JobHandle[Any])
    assert_type(await queue.schedules.remove("pulse"), bool)
    assert_type(await queue.add("report", {}, repeat={"cron": "0 9 * * *", "tz": "UTC"}, attempts=3), JobHandle[Any])
    assert_type(queue.sync.schedule("pulse", "ping", every=30), Schedule)
    assert_type(queue.sync.schedules.list(), list[Schedule])
    assert_type(queue.sync.schedules.run("pulse"), SyncJobHandle[Any])


async def keys() -> None:
    job = await queue.add("send", dedupe=Dedupe("user:7", "throttle", ttl="5 minutes"), expires=60)
    assert_type(job.deduplicated, bool)
    assert_type(await queue.add("send", dedupe="user:7", dead_letter="graves"), JobHandle[Any])
    assert_type(await queue.dedupe_holder("user:7"), FoundJob[Any] | None)
    assert_type(await queue.release_dedupe("user:7"), bool)
    assert_type(await queue.redrive("a", "b", limit=5), int)
    assert_type(queue.sync.redrive(), int)


def takes_any_task(task: Task[..., str]) -> None:
    print(task.name)


takes_any_task(resize)
takes_any_task(resize.using(delay=1))

SEND = JobType("send-email", Email, Receipt, attempts=3)
COUNT = JobType("count", dict[str, int])
FORGET = JobType("forget", str, None)
worker = Worker(queue)


@worker.handler(SEND)
async def send_email(email: Email) -> Receipt:
    return Receipt(len(email.to))


@worker.handler(SEND)
async def send_with_progress(job: Job, email: Email) -> Receipt:
    await job.progress(50)
    return Receipt(len(email.to))


@worker.handler(SEND)
def send_in_a_thread(email: Email) -> Receipt:
    return Receipt(len(email.to))


@worker.handler(SEND)
def send_in_a_thread_with_progress(job: SyncJob, email: Email) -> Receipt:
    job.progress(50)
    return Receipt(len(email.to))


@worker.handler(COUNT)
async def count(counts: dict[str, int]) -> object:
    return sum(counts.values())


@worker.handler("plain")
async def plain(job: Job) -> None:
    print(job.data)


async def job_types() -> None:
    assert_type(SEND, JobType[Email, Receipt])
    assert_type(COUNT, JobType[dict[str, int], Any])
    assert_type(FORGET, JobType[str, None])
    assert_type(await SEND.add(queue, Email("you"), delay=60), JobHandle[Receipt])
    assert_type(await COUNT.add(queue, {"a": 1}), JobHandle[Any])
    assert_type(SEND.call(Email("you"), priority=1), Call[Receipt])
    assert_type(await queue.add_many([FORGET.call("a")]), list[JobHandle[None]])


async def transactions(job: Job, tx: object) -> None:
    assert_type(await queue.add("name", {"a": 1}, tx=tx, attempts=2), JobHandle[Any])
    assert_type(await queue.add_many([resize.call("a.png")], tx=tx), list[JobHandle[str]])
    assert_type(await resize.using(tx=tx, delay=60).add("a.png", width=3), JobHandle[str])
    assert_type(await SEND.add(queue, Email("you"), tx=tx), JobHandle[Receipt])
    async with queue.transaction() as own:
        assert_type(own, Any)
        await own.execute("SELECT 1")
    async with job.transaction() as own, job.transaction(using=tx):
        await own.execute("SELECT 1")
        job.complete_with({"a": 1})


def transactions_without_a_loop(job: SyncJob, tx: object) -> None:
    assert_type(queue.sync.add("name", tx=tx), SyncJobHandle[Any])
    assert_type(resize.using(tx=tx).add_sync("a.png"), SyncJobHandle[str])
    assert_type(SEND.add_sync(queue, Email("you"), tx=tx), SyncJobHandle[Receipt])
    with queue.sync.transaction() as own, job.transaction(tx):
        own.execute("SELECT 1")
        job.complete_with(1)


async def untyped(handles: list[JobHandle]) -> None:
    job = await queue.add("name", {"a": 1}, attempts=2)
    assert_type(job, JobHandle[Any])
    handles.append(job)
    assert_type(await job.result(), Any)


async def found() -> None:
    for job in await queue.find("failed"):
        assert_type(job.snapshot, Snapshot)
    one = await resize.get("id")
    assert_type(one, FoundJob[str] | None)
    assert one is not None
    assert_type(one.snapshot.reason, str | None)
    assert_type(await one.result(), str)
    assert_type(one.sync, SyncFoundJob[str])
    assert_type((await queue.add("name")).snapshot, Snapshot | None)


def found_without_a_loop() -> None:
    for job in queue.sync.find("failed"):
        assert_type(job.snapshot, Snapshot)


def without_a_loop() -> None:
    assert_type(resize.add_sync("a.png", width=100), SyncJobHandle[str])
    assert_type(resize.using(delay=60).add_sync("a.png").result(timeout=5), str)
    assert_type(SEND.add_sync(queue, Email("you")), SyncJobHandle[Receipt])
    assert_type(resize.get_sync("id"), SyncFoundJob[str] | None)
    assert_type(SEND.get_sync(queue, "id"), SyncFoundJob[Receipt] | None)
    assert_type(queue.sync.add("name"), SyncJobHandle[Any])
    assert_type(queue.sync.add_many([resize.call("a.png")]), list[SyncJobHandle[str]])


@queue.task
async def download(url: str) -> bytes:
    return url.encode()


@queue.task
async def measure(content: bytes = result_of(download), *, unit: str = "B") -> int:
    return len(content)


@queue.task
def add_up(sizes: list[int] = results_of(measure)) -> float:
    return sum(sizes)


async def flows(job: Job, process_job: ProcessJob) -> None:
    flow = Flow("report", {"n": 1}, queue="etl", attempts=3, on_child_failure="ignore", children=[download.call("a")])
    assert_type(await queue.add_flow(flow), FlowHandle[Any])
    assert_type(await queue.add_flow(Flow("report", queue=queue, children=[flow], on_failure="wait")), FlowHandle[Any])
    assert_type(await queue.add_flow(measure.call()), FlowHandle[int])
    assert_type(await queue.add_flows([flow, measure.call()]), list[FlowHandle[Any]])
    call = measure.call(unit="KiB").after(download.call("a"), on_child_failure="continue")
    assert_type(call, Call[int])
    added = await add_up.call().after(call, measure.call(b"")).add()
    assert_type(added, FlowHandle[float])
    assert_type(await added.result(), float)
    assert_type(added.children, tuple[FlowHandle[Any], ...])
    assert_type(chain(download.call("a"), measure.call()), Call[int])
    assert_type(await chain(download.call("a"), measure.call(), add_up.call()).add(), FlowHandle[float])
    assert_type(await job.add_children([flow, call], on_child_failure="wait"), list[FlowHandle[Any]])
    assert_type(await job.children_failures(), dict[str, str])
    assert_type(process_job.add_children([flow]), list[str])
    assert_type(await queue.flow("id", depth=3), FlowNode)


def flows_without_a_loop(job: SyncJob) -> None:
    assert_type(queue.sync.add_flow(measure.call()), SyncFlowHandle[int])
    assert_type(queue.sync.add_flow(Flow("report")), SyncFlowHandle[Any])
    assert_type(measure.call().after(download.call("a")).add_sync().result(), int)
    assert_type(job.add_children([Flow("report")])[0].children, tuple[SyncFlowHandle[Any], ...])


async def get_file(job: Job, ctx: PhaseContext) -> list[Receipt]:
    await ctx.progress(50)
    assert_type(ctx.overall, int)
    return []


def process(job: SyncJob, ctx: SyncPhaseContext) -> int:
    ctx.progress(12.5)
    return 1


def upload(job: ProcessJob, ctx: ProcessPhaseContext) -> None:
    ctx.progress(100)


pipeline = Pipeline(
    [
        Phase("download", get_file),
        Phase("process", process, attempts=3, timeout=60, backoff=Backoff.fixed(1)),
        Phase("upload", in_process(upload)),
    ]
)
imports = queue.task(pipeline, name="import", attempts=3)
Worker(queue, {"import": pipeline})


async def with_phases() -> None:
    job = await imports.add({"file": "a.csv"}, delay=5)
    assert_type(job, JobHandle[Any])
    await job.retry(from_phase="process")
    assert_type((await job.refresh()).phases[0].name, str)
    await queue.signal(job.id, "payment", {"euro": 5})
    queue.sync.signal(job.id, "payment")
    await job.signal("payment", {"euro": 5})
    job.sync.signal("payment")


async def a_page(number: int) -> Receipt:
    return Receipt(number)


def a_row(number: int) -> Receipt:
    return Receipt(number)


async def with_steps(job: Job) -> None:
    assert_type(await job.step("page", a_page, 1, attempts=3, timeout="1 minute"), Receipt)
    assert_type(await job.step("row", a_row, number=1), Receipt)
    assert_type(await job.step("receipt", Receipt, 1), Receipt)
    await job.sleep("1 day")
    await job.sleep(datetime.now(UTC))
    payment: dict[str, int] = await job.wait_for("payment", timeout="3 days")
    assert payment
    assert_type(await job.gather(resize.call("a.jpg"), resize.call("b.jpg")), list[str])
    assert_type(await job.gather(Flow("resize"), Flow("fetch")), list[Any])


def with_blocking_steps(job: SyncJob) -> None:
    assert_type(job.step("row", a_row, 1, attempts=3), Receipt)
    assert_type(job.step("receipt", Receipt, 1), Receipt)
    job.sleep(5, name="nap")
    job.sleep(datetime.now(UTC), name="nap")
    assert_type(job.gather(resize.call("a.jpg"), resize.call("b.jpg")), list[str])
    assert_type(job.gather(Flow("resize")), list[Any])


def with_steps_in_a_process(job: ProcessJob) -> None:
    assert_type(job.step("row", a_row, 1, attempts=3), Receipt)
    assert_type(job.gather(resize.call("a.jpg"), resize.call("b.jpg")), list[str])
    assert_type(job.gather(Flow("resize")), list[Any])
