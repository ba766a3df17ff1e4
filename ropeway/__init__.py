"""Ropeway: a job queue that starts as one import and one file."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .client.handle import JobHandle
    from .client.jobtype import JobType
    from .client.queue import JobPage, Queue
    from .client.requests import Call
    from .client.snapshot import Snapshot
    from .client.sync_handle import SyncJobHandle, SyncJobPage
    from .client.sync_queue import SyncQueue
    from .client.tasks import Task
    from .client.workers import WorkerInfo
    from .errors import (
        DuplicateJob,
        InvalidArguments,
        InvalidInput,
        InvalidMove,
        InvalidOption,
        InvalidTask,
        JobCancelled,
        JobFailed,
        JobFinished,
        JobNotFound,
        JobRemoved,
        LockLost,
        PayloadTooLarge,
        QueueBusy,
        ResultTimeout,
        RopewayError,
        ShutdownTimeout,
        StoreError,
        StoreUnavailable,
        SyncRefused,
        UnexpectedResult,
        Unrecoverable,
    )
    from .job.backoff import Backoff
    from .job.events import Event
    from .job.options import JobOptions
    from .job.retention import Keep
    from .store.url import connect
    from .worker.child import ProcessJob
    from .worker.handlers import in_process
    from .worker.job import Job, SyncJob
    from .worker.listeners import WorkerEvent
    from .worker.manual import ClaimedJob
    from .worker.options import WorkerOptions
    from .worker.sync import SyncClaimedJob
    from .worker.worker import Worker

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "Call",
    "ClaimedJob",
    "DuplicateJob",
    "Event",
    "InvalidArguments",
    "InvalidInput",
    "InvalidMove",
    "InvalidOption",
    "InvalidTask",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobFinished",
    "JobHandle",
    "JobNotFound",
    "JobOptions",
    "JobPage",
    "JobRemoved",
    "JobType",
    "Keep",
    "LockLost",
    "PayloadTooLarge",
    "ProcessJob",
    "Queue",
    "QueueBusy",
    "ResultTimeout",
    "RopewayError",
    "ShutdownTimeout",
    "Snapshot",
    "StoreError",
    "StoreUnavailable",
    "SyncClaimedJob",
    "SyncJob",
    "SyncJobHandle",
    "SyncJobPage",
    "SyncQueue",
    "SyncRefused",
    "Task",
    "UnexpectedResult",
    "Unrecoverable",
    "Worker",
    "WorkerEvent",
    "WorkerInfo",
    "WorkerOptions",
    "connect",
    "in_process",
]

# Imported when first used: a producer needs no worker, and what looks for plugins or completions needs neither.
_HOMES: Final = {
    "Backoff": "job.backoff",
    "Call": "client.requests",
    "ClaimedJob": "worker.manual",
    "DuplicateJob": "errors",
    "Event": "job.events",
    "InvalidArguments": "errors",
    "InvalidInput": "errors",
    "InvalidMove": "errors",
    "InvalidOption": "errors",
    "InvalidTask": "errors",
    "Job": "worker.job",
    "JobCancelled": "errors",
    "JobFailed": "errors",
    "JobFinished": "errors",
    "JobHandle": "client.handle",
    "JobNotFound": "errors",
    "JobOptions": "job.options",
    "JobPage": "client.queue",
    "JobRemoved": "errors",
    "JobType": "client.jobtype",
    "Keep": "job.retention",
    "LockLost": "errors",
    "PayloadTooLarge": "errors",
    "ProcessJob": "worker.child",
    "Queue": "client.queue",
    "QueueBusy": "errors",
    "ResultTimeout": "errors",
    "RopewayError": "errors",
    "ShutdownTimeout": "errors",
    "Snapshot": "client.snapshot",
    "StoreError": "errors",
    "StoreUnavailable": "errors",
    "SyncClaimedJob": "worker.sync",
    "SyncJob": "worker.job",
    "SyncJobHandle": "client.sync_handle",
    "SyncJobPage": "client.sync_handle",
    "SyncQueue": "client.sync_queue",
    "SyncRefused": "errors",
    "Task": "client.tasks",
    "UnexpectedResult": "errors",
    "Unrecoverable": "errors",
    "Worker": "worker.worker",
    "WorkerEvent": "worker.listeners",
    "WorkerInfo": "client.workers",
    "WorkerOptions": "worker.options",
    "connect": "store.url",
    "in_process": "worker.handlers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
