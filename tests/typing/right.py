"""Right uses of typed tasks: both type checkers accept every line, and know these types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

from ropeway import (
    Backoff,
    Call,
    Flow,
    FlowHandle,
    FlowNode,
    FoundJob,
    Job,
    JobHandle,
    JobOptions,
    JobRequest,
    JobType,
    ProcessJob,
    Queue,
    Snapshot,
    SyncFlowHandle,
    SyncFoundJob,
    SyncJob,
    SyncJobHandle,
    Task,
    Worker,
    chain,
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
