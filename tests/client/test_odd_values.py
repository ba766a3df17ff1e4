"""Whatever is given, a call answers or raises one of our errors, of bounded length, and has stored nothing then."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropeway import Backoff, Call, JobType, Keep, Queue, RopewayError, Worker, connect
from ropeway.job.options import JobOptions
from ropeway.showing import LONGEST_MESSAGE
from ropeway.worker.options import WorkerOptions
from tests.odd import ODD

OPTIONS = sorted(JobOptions.__annotations__)
PLACES = st.integers(0, len(ODD) - 1)
"""Of odd values: they themselves cannot be shown by a report."""


async def handle(_: Any) -> None: ...


def calls_of(queue: Queue, odd: Any) -> dict[str, Callable[[], Any]]:
    """Every call of the queue's face with one odd value in each of its places, by a name for the report."""
    return {
        "add name": lambda: queue.add(odd),
        "add data": lambda: queue.add("send", odd),
        **{f"add {option}": partial(queue.add, "send", **{option: odd}) for option in OPTIONS},
        "add keep": lambda: queue.add("send", remove_on_fail=Keep(age=odd, count=odd)),
        "add unknown": lambda: queue.add("send", nothing=odd),  # type: ignore[call-arg]
        "add_call": lambda: queue.add_call(odd),
        "add_call call": lambda: queue.add_call(Call("send", odd, {"delay": odd})),
        "add_call options": lambda: queue.add_call(Call("send", 1, odd)),
        "add_many call": lambda: queue.add_many([Call(odd, 1)]),
        "add_many one": lambda: queue.add_many([odd]),
        "add_many data": lambda: queue.add_many([("send", odd)]),
        "add_many options": lambda: queue.add_many([("send", 1, odd)]),
        "change": lambda: queue.change("id", priority=odd),
        "change id": lambda: queue.change(odd, priority=1),
        "change lifo": lambda: queue.change("id", lifo=odd),
        "change delay": lambda: queue.change("id", delay=odd),
        "change data": lambda: queue.change("id", data=odd),
        "get": lambda: queue.get(odd),
        "find": lambda: queue.find(odd),
        "find name": lambda: queue.find(name=odd),
        "find limit": lambda: queue.find(limit=odd),
        "find after": lambda: queue.find(after=odd),
        "find newest_first": lambda: queue.find(newest_first=odd),
        "counts_by_priority": lambda: queue.counts_by_priority(odd),
        "metrics": lambda: queue.metrics(since=odd),
        "history": lambda: queue.history(odd),
        "logs": lambda: queue.logs("id", after=odd),
        "logs limit": lambda: queue.logs("id", limit=odd),
        "newest events": lambda: first_event(queue, odd),
        "publish": lambda: queue.publish(odd),
        "publish data": lambda: queue.publish("mine", odd),
        "trim_events": lambda: queue.trim_events(odd),
        "cancel": lambda: queue.cancel(odd),
        "cancel reason": lambda: queue.cancel("id", odd),
        "retry": lambda: queue.retry(odd),
        "retry reset": lambda: queue.retry("id", reset=odd),
        "promote": lambda: queue.promote(odd),
        "remove force": lambda: queue.remove("id", force=odd),
        "report_progress": lambda: queue.report_progress("id", odd),
        "clear_logs": lambda: queue.clear_logs("id", keep=odd),
        "retry_all": lambda: queue.retry_all(odd),
        "retry_all older_than": lambda: queue.retry_all(older_than=odd),
        "retry_all limit": lambda: queue.retry_all(limit=odd),
        "promote_all": lambda: queue.promote_all(limit=odd),
        "drain": lambda: queue.drain(delayed=odd),
        "clean": lambda: queue.clean(odd),
        "clean state": lambda: queue.clean(0, odd),
        "clean limit": lambda: queue.clean(limit=odd),
        "obliterate": lambda: queue.obliterate(force=odd),
        "pause": lambda: queue.pause(odd),
        "set_global_concurrency": lambda: queue.set_global_concurrency(odd),
        "Queue": lambda: Queue(odd, "memory://"),
        "Queue url": lambda: Queue("letters", "memory://" if odd is None or isinstance(odd, str) else odd),
        "Queue store": lambda: queue if odd is None else Queue("letters", store=odd),
        "Queue size_limit": lambda: Queue("letters", "memory://", size_limit=odd),
        "Queue classify": lambda: Queue("letters", "memory://", classify=odd),
        "Queue on_stalled": lambda: Queue("letters", "memory://", on_stalled=odd),
        **{f"Queue {option}": partial(Queue, "a", "memory://", **{option: odd}) for option in OPTIONS},
        "Worker": lambda: Worker(odd, handle),
        "Worker handler": lambda: Worker(queue, odd),
        "Worker handlers": lambda: Worker(queue, {"send": odd}),
        **{
            f"Worker {option}": partial(Worker, queue, handle, **{option: odd})
            for option in WorkerOptions.__annotations__
        },
        "Worker backoffs": lambda: Worker(queue, handle, backoffs={"a": odd}),
        "on": lambda: Worker(queue, handle).on(odd, handle),
        "on listener": lambda: Worker(queue, handle).on("completed", odd),
        "handler": lambda: Worker(queue).handler(odd),
        "claim": lambda: Worker(queue, handle).claim(odd),
        "claim names": lambda: Worker(queue, handle).claim(names=odd),
        "Backoff.fixed": lambda: Backoff.fixed(odd),
        "Backoff.linear": lambda: Backoff.linear(1, max_delay=odd),
        "Backoff.exponential": lambda: Backoff.exponential(1, jitter=odd),
        "Backoff.custom": lambda: Backoff.custom(odd),
        "Backoff": lambda: Backoff(odd, odd, odd, odd, odd),
        "task": lambda: queue.task(odd),
        "task name": lambda: queue.task(name=odd)(handle),
        "task run_in": lambda: queue.task(run_in=odd),
        "task default": lambda: task_with(queue, odd).add(1, 2, 3, 4),
        "task argument": lambda: task_with(queue, 5).add(odd),
        "task option": lambda: task_with(queue, 5).using(delay=odd),
        "JobType": lambda: JobType(odd, str),
        "JobType data": lambda: JobType("send", odd),
        "JobType call": lambda: JobType("send", dict[str, int]).call(odd),
        "connect create": lambda: connect("memory://", create=odd),
    }


def task_with(queue: Queue, default: Any) -> Any:
    # Its own queue: a name is taken once.
    other = Queue(queue.name, store=queue.store)

    @other.task
    async def work(one: int, two: Any = default) -> None: ...

    return work


async def first_event(queue: Queue, after: Any) -> object:
    return [event async for event in queue.events(after, follow=False)]


async def refusal_of(call: Callable[[], Any]) -> RopewayError | None:
    try:
        answer = call()
        if inspect.iscoroutine(answer):
            await answer
    except RopewayError as error:
        return error
    return None


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
async def test_an_odd_value_is_taken_or_refused_by_our_own_errors(queue: Queue, odd: Any):
    for place in calls_of(queue, odd):
        before = sum((await queue.counts()).values())
        try:
            refusal = await refusal_of(calls_of(queue, odd)[place])
        except Exception as error:
            error.add_note(f"by {place}")
            raise
        if refusal is not None:
            assert len(str(refusal)) <= LONGEST_MESSAGE, place
            assert str(refusal).isprintable(), place
            assert sum((await queue.counts()).values()) == before, place


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*OPTIONS, "zzz", "\ud800"]), PLACES, max_size=4), PLACES)
def test_odd_options_together_are_refused_whole(places: dict[str, int], place: int):
    options: dict[str, Any] = {option: ODD[odd] for option, odd in places.items()}
    bulk: list[Any] = [("send", 1), ("send", ODD[place], options)]

    async def add() -> None:
        queue = Queue("letters", "memory://")
        for call in (lambda: queue.add("send", ODD[place], **options), lambda: queue.add_many(bulk)):
            before = (await queue.store.events(queue.name)).cursor
            refusal = await refusal_of(call)
            if refusal is not None:
                assert len(str(refusal)) <= LONGEST_MESSAGE
                assert (await queue.store.events(queue.name)).cursor == before

    asyncio.run(add())
