"""Hints for names of other job queues: the error of an unknown attribute says what Ropeway calls it."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Final

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


class Hint:
    """A name that a class does not have: reading it raises an `AttributeError` that says what to use instead.

    These are descriptors, and not a `__getattr__` of the class, because with one the interpreter does not specialise
    any read of an attribute, and a worker reads dozens for each job.
    """

    __slots__ = ("_instead", "_name")

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __repr__(self) -> str:
        return f"<not there: use {self._instead}>"

    def __get__(self, instance: object, owner: type) -> Any:
        for kind in owner.__mro__:
            found = kind.__dict__.get(self._name, self)
            if not isinstance(found, Hint):
                # A subclass has it from another base.
                return found.__get__(instance, owner) if hasattr(type(found), "__get__") else found
        problem = f"{owner.__name__!r} object has no attribute {self._name!r}: use {self._instead}"
        raise AttributeError(problem, name=self._name, obj=owner if instance is None else instance)


class Guided:
    """Has a `Hint` for each of `_foreign_names`, and for `<method>_sync` of each method that has a sync twin."""

    __slots__ = ()

    _foreign_names: ClassVar[dict[str, str]] = {}
    """From names in other libraries to their equivalents."""
    _twin: ClassVar[str] = ""
    """How to call the sync twin of an async method; `{}` stands for the method's name."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        own = [name for name in dir(cls) if not name.startswith("_") and hasattr(cls, name)]
        twins = {f"{name}_sync": cls._twin.format(name) for name in own} if cls._twin else {}
        for name, instead in {**twins, **cls._foreign_names}.items():
            if name not in own:
                setattr(cls, name, Hint(name, instead))

    def __dir__(self) -> list[str]:
        kind = type(self)
        return [name for name in super().__dir__() if not isinstance(inspect.getattr_static(kind, name, None), Hint)]


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
