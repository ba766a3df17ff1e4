"""Hints for names of other job queues: the error of an unknown attribute says what Ropeway calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

_ADDS: Final = (
    *("add_job", "apply_async", "defer", "defer_async", "delay", "enqueue", "enqueue_job", "kick", "kiq"),
    *("push", "put", "schedule", "schedule_job", "send", "send_task", "submit"),
)
_RESULTS: Final = ("get", "join", "return_value", "returnvalue", "wait", "wait_result", "wait_until_finished")
_STATES: Final = ("get_state", "get_status", "is_failed", "is_finished", "ready", "status", "successful")


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


ON_TASKS: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "task.add(...), or task.using(delay=60).add(...)"),
    "sync": "task.add_sync(...)",
    "call_sync": "task.call(...), which waits for nothing",
}
ON_QUEUES: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "await queue.add(name, data), or queue.sync.add(name, data)"),
    "fetch_job": "await queue.get(id)",
    "get_job": "await queue.get(id)",
}
ON_SYNC_QUEUES: Final[dict[str, str]] = {
    **dict.fromkeys(_ADDS, "queue.sync.add(name, data)"),
    "fetch_job": "queue.sync.get(id)",
    "get_job": "queue.sync.get(id)",
}
ON_JOBS: Final[dict[str, str]] = {
    **dict.fromkeys(_RESULTS, "await job.result(timeout=60), or job.sync.result(timeout=60)"),
    **dict.fromkeys(_STATES, "await job.state(), or job.sync.state()"),
    **dict.fromkeys(("abort", "revoke"), "await job.cancel(), or job.sync.cancel()"),
    **dict.fromkeys(("delete", "forget"), "await job.remove(), or job.sync.remove()"),
}
ON_WORKERS: Final[dict[str, str]] = dict.fromkeys(
    ("main", "run_forever", "serve", "start", "work"), "await worker.run(), worker.run_sync(), or `async with worker:`"
)
ON_SYNC_JOBS: Final[dict[str, str]] = {
    **dict.fromkeys(_RESULTS, "job.result(timeout=60)"),
    **dict.fromkeys(_STATES, "job.state()"),
    **dict.fromkeys(("abort", "revoke"), "job.cancel()"),
    **dict.fromkeys(("delete", "forget"), "job.remove()"),
    "sync": "the job itself: its calls wait already",
}
