"""Wrong uses of typed tasks: both type checkers report the lines marked `# wrong`, and no others."""

from __future__ import annotations

from dataclasses import dataclass

import ropeway
import ropeway.testing
from ropeway import (
    Call,
    Dedupe,
    Flow,
    Job,
    JobHandle,
    JobType,
    Phase,
    Pipeline,
    ProcessJob,
    Queue,
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


@dataclass
class Receipt:
    id: int


@queue.task
async def resize(path: str, width: int = 800) -> str:
    return path


@queue.task
def shrink(path: str, *, by: int) -> int:
    return by


@queue.task
async def report(job: Job, title: str) -> Receipt:
    return Receipt(1)


@queue.task(run_in="process")
def crunch(job: ProcessJob, number: int) -> float:
    return number / 2


@queue.task(context=True)
def sweep(job: SyncJob, folder: str) -> int:
    return 1


@queue.task(atempts=3)  # wrong
async def misspelt_option() -> None: ...


@queue.task(attempts="3")  # wrong
async def option_of_a_wrong_type() -> None: ...


@queue.task(run_in="thread")  # wrong
def unknown_place() -> None: ...


@queue.task(name=5)  # wrong
def name_of_a_wrong_type() -> None: ...


@queue.task("resize")  # wrong
def name_by_position() -> None: ...


async def wrong_arguments() -> None:
    await resize.add()  # wrong
    await resize.add(5)  # wrong
    await resize.add("a", "b")  # wrong
    await resize.add("a", widht=5)  # wrong
    await resize.add("a", 1, 2)  # wrong
    await resize.add("a", delay=60)  # wrong
    await shrink.add("a", 5)  # wrong
    await shrink.add("a")  # wrong
    resize.call(path=None)  # wrong
    shrink.call("a", by="b")  # wrong


async def wrong_direct_calls(job: Job) -> None:
    await resize(5)  # wrong
    await shrink("a", by=1)  # wrong
    await report("title")  # wrong
    await report(job)  # wrong


async def wrong_contexts(job: Job) -> None:
    await report.add(job, "title")  # wrong
    await report.add(job=job, title="title")  # wrong
    await crunch.add(job, 5)  # wrong
    await sweep.add(job, "folder")  # wrong
    report.call(job, "title")  # wrong


async def wrong_options() -> None:
    await resize.using(dely=60).add("a")  # wrong
    await resize.using(priority="high").add("a")  # wrong
    await resize.using(60).add("a")  # wrong
    await resize.using(delay=60).add(5)  # wrong
    resize.using(delay=60)("a")  # wrong


async def wrong_bulks() -> None:
    await queue.add_many("resize")  # wrong
    await queue.add_many({"resize": 1})  # wrong
    await queue.add_many(resize.call("a"))  # wrong
    await queue.add_many(("resize", 1))  # wrong
    await queue.add_many([resize])  # wrong
    await queue.add_many([("resize",)])  # wrong
    await queue.add_many([(1, "resize")])  # wrong
    await queue.add_many([("resize", 1, None)])  # wrong
    await queue.add_many([("resize", 1, {"dely": 5}), resize.call("a")])  # wrong
    await queue.add_many([{"name": "resize"}])  # wrong
    jobs: list[SyncJobHandle[str]] = queue.sync.add_many([shrink.call("a", by=1)])  # wrong
    print(jobs)


async def wrong_results() -> None:
    number: int = await (await resize.add("a")).result()  # wrong
    text: str = await (await shrink.add("a", by=1)).result()  # wrong
    job: JobHandle[int] = await resize.add("a")  # wrong
    jobs: list[JobHandle[int]] = await queue.add_many([resize.call("a")])  # wrong
    call: Call[int] = resize.call("a")  # wrong
    print(number, text, job, jobs, call)


async def wrong_transactions(job: Job, sync_job: SyncJob) -> None:
    await resize.add("a", tx=5)  # wrong
    await queue.add("a", {}, {}, 5)  # wrong
    with queue.transaction():  # wrong
        pass
    with job.transaction():  # wrong
        pass
    async with sync_job.transaction():  # wrong
        pass


def takes_numbers(task: Task[[int], int]) -> None: ...


takes_numbers(resize)  # wrong

SEND = JobType("send-email", Email, Receipt)
JobType("send-email", Email, Receipt, atempts=3)  # wrong
JobType("send-email", "Email")  # wrong
worker = Worker(queue)


async def wrong_job_types() -> None:
    await SEND.add(queue, {"to": "you"})  # wrong
    await SEND.add(queue)  # wrong
    await SEND.add(Email("you"))  # wrong
    await SEND.add(queue, Email("you"), dely=60)  # wrong
    SEND.call(Receipt(1))  # wrong
    number: int = await (await SEND.add(queue, Email("you"))).result()  # wrong
    print(number)


@worker.handler(SEND)  # wrong
async def takes_other_data(receipt: Receipt) -> Receipt:
    return receipt


@worker.handler(SEND)  # wrong
async def returns_another_result(email: Email) -> Email:
    return email


@worker.handler(SEND)  # wrong
async def takes_too_much(job: Job, email: Email, more: int) -> Receipt:
    return Receipt(more)


@worker.handler(SEND)  # wrong
def takes_the_job_of_a_coroutine(job: Job, email: Email) -> Receipt:
    return Receipt(1)


def wrong_sync_calls() -> None:
    resize.add_sync(5)  # wrong
    resize.add_sync("a.png", height=3)  # wrong
    number: int = resize.add_sync("a.png").result()  # wrong
    SEND.add_sync(queue, Receipt(1))  # wrong
    queue.sync.add("name", {}, dely=60)  # wrong
    print(number)


def wrong_names() -> None:
    ropeway.Qeue("typed")  # wrong
    ropeway.testing.FakeClok()  # wrong


@queue.task
async def download(url: str) -> bytes:
    return url.encode()


@queue.task
async def takes_another_type(number: int = result_of(download)) -> int:  # wrong
    return number


@queue.task
async def takes_one_for_many(contents: bytes = results_of(download)) -> None:  # wrong
    print(contents)


async def wrong_flows(job: Job) -> None:
    Flow("report", on_child_failure="explode")  # wrong
    Flow("report", children=["fetch"])  # wrong
    Flow("report", atempts=3)  # wrong
    Flow()  # wrong
    await queue.add_flow("report")  # wrong
    await queue.add_flows(Flow("report"))  # wrong
    await job.add_children(Flow("report"))  # wrong
    download.call("a").after(download)  # wrong
    download.call("a").after(download.call("b"), on_child_failure="never")  # wrong
    download.call("a").after(download.call(5))  # wrong
    chain(download.call("a"), "resize")  # wrong
    text: str = await (await chain(download.call("a"), download.call("b")).add()).result()  # wrong
    await queue.flow("id", deep=3)  # wrong
    result_of("download")  # wrong
    print(text)


async def schedules() -> None:
    await queue.schedule("pulse")  # wrong
    await queue.schedule("pulse", "ping", every=30, overlap="twice")  # wrong
    await queue.schedule("pulse", "ping", every=30, missed="some")  # wrong
    await queue.schedule("pulse", "ping", cron=5)  # wrong
    await queue.schedule("pulse", "ping", cron="@daily", start="tomorrow")  # wrong
    await queue.schedule("pulse", "ping", cron="@daily", timezone="UTC")  # wrong
    await queue.add("report", repeat={"pattern": "@daily"})  # wrong
    await queue.add("report", repeat="@daily")  # wrong
    queue.task(cron=5)  # wrong
    queue.task(every="1 hour", overlap="twice")  # wrong
    queue.task(every="1 hour", limit=5)  # wrong
    Dedupe("k", "sometimes")  # wrong
    Dedupe("k", "throttle", 5)  # wrong
    await queue.add("send", dedupe=5)  # wrong
    await queue.add("send", dead_letter=queue)  # wrong


async def a_page(number: int) -> Receipt:
    return Receipt(number)


def a_row(number: int) -> Receipt:
    return Receipt(number)


async def with_steps(job: Job) -> None:
    text: str = await job.step("page", a_page, 1)  # wrong
    await job.step(5, a_page, 1)  # wrong
    await job.step("page", a_page, 1, attempts="3")  # wrong
    await job.sleep(None)  # wrong
    await job.wait_for(5)  # wrong
    print(text)
    await queue.signal(5, "payment")  # wrong


def with_blocking_steps(job: SyncJob) -> None:
    text: str = job.step("row", a_row, 1)  # wrong
    assert text


Pipeline([a_row])  # wrong
Phase("download")  # wrong
queue.task(Pipeline([Phase("download", a_row)]))  # wrong
