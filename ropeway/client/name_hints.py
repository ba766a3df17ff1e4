"""Hints for names of other job queues: the error of an unknown attribute says what Ropeway calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

_ADDS: Final = (
    *("add_job", "apply_async", "defer", "defer_async", "delay", "enqueue", "enqueue_job", "kick", "kiq"),
    *("push", "put", "schedule", "schedule_job", "send", "send_task", "submit"),
)
_BULKS: Final = ("addBulk", "add_bulk", "add_jobs", "bulk_add", "enqueue_many", "enqueue_bulk")
_LATER: Final = ("enqueue_at", "enqueue_in")
_RESULTS: Final = (
    "waitUntilFinished",
    "get",
    "join",
    "return_value",
    "returnvalue",
    "wait",
    "wait_result",
    "wait_until_finished",
)
_STATES: Final = ("getState", "get_state", "get_status", "is_failed", "is_finished", "ready", "status", "successful")


class Guided:
    """Raises, for an unknown attribute, an `AttributeError` that says what to use instead."""

    __slots__ = ()

    _foreign_names: ClassVar[dict[str, str]] = {}
    """From names in other libraries to their equivalents."""
    _twin: ClassVar[str] = ""
    """How to call the sync twin of an async method; `{}` stands for the method's name."""

    if not TYPE_CHECKING:  # To type checkers every name would be known.

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if hasattr(kind, name):
                # A property that raised AttributeError: raises its own error again.
                return object.__getattribute__(self, name)
            instead = self._foreign_names.get(name)
            awaited = name.removesuffix("_sync")
            if instead is None and awaited != name and self._twin and hasattr(kind, awaited):
                instead = self._twin.format(awaited)
            hint = f": use {instead}" if instead else ""
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


STORE_ELSEWHERE: Final = frozenset(("backend", "broker", "broker_url", "connection", "redis", "redis_url"))
"""Names of the store parameter in constructors of other job queues."""


def _calls_of_queues(call: str) -> dict[str, str]:
    """`call` has `{}` in the place of the method and its arguments."""
    return {
        **dict.fromkeys(_BULKS, call.format("add_many([(name, data), ...])")),
        **dict.fromkeys(_LATER, call.format("add(name, data, delay=60)")),
        **dict.fromkeys(("fetch_job", "getJob", "get_job"), call.format("get(id)")),
        **dict.fromkeys(("getJobs", "get_jobs", "jobs"), call.format('find("waiting")')),
        **dict.fromkeys(("count", "getJobCounts", "size"), call.format("counts()")),
        **dict.fromkeys(("empty", "purge"), call.format("drain()")),
        **dict.fromkeys(("abort", "revoke"), call.format("cancel(id)")),
    }


ON_TASKS: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "task.add(...), or task.using(delay=60).add(...)"),
    **dict.fromkeys(("add_many", "map", "starmap", *_BULKS), "await queue.add_many(task.call(item) for item in items)"),
    **dict.fromkeys(_LATER, "task.using(delay=60).add(...)"),
    **dict.fromkeys(("configure", "set", "with_options"), "task.using(delay=60)"),
    **dict.fromkeys(("s", "si", "signature"), "task.call(...), for queue.add_many"),
    "sync": "task.add_sync(...)",
    "call_sync": "task.call(...), which waits for nothing",
}
ON_QUEUES: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "await queue.add(name, data), or queue.sync.add(name, data)"),
    **_calls_of_queues("await queue.{}"),
}
ON_SYNC_QUEUES: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "queue.sync.add(name, data)"),
    **_calls_of_queues("queue.sync.{}"),
}
ON_JOBS: Final[dict[str, str]] = {
    **dict.fromkeys(_RESULTS, "await job.result(timeout=60), or job.sync.result(timeout=60)"),
    **dict.fromkeys(_STATES, "await job.state(), or job.sync.state()"),
    **dict.fromkeys(("abort", "kill", "revoke"), "await job.cancel(), or job.sync.cancel()"),
    **dict.fromkeys(("delete", "forget"), "await job.remove(), or job.sync.remove()"),
}
ON_WORKERS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("main", "run_forever", "serve", "start", "work"),
        "await worker.run(), worker.run_sync(), or `async with worker:`",
    ),
    **dict.fromkeys(("close", "quit", "shutdown"), "worker.stop(), or leave its `async with worker:`"),
    **dict.fromkeys(
        ("is_running", "started"), "`async with worker:`, in which it has started, or worker.info.started_at"
    ),
}
ON_SYNC_JOBS: Final[dict[str, str]] = {
    **dict.fromkeys(_RESULTS, "job.result(timeout=60)"),
    **dict.fromkeys(_STATES, "job.state()"),
    **dict.fromkeys(("abort", "kill", "revoke"), "job.cancel()"),
    **dict.fromkeys(("delete", "forget"), "job.remove()"),
    "sync": "the job itself: its calls wait already",
}
