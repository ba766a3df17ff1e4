"""Ropeway: a job queue that starts as one import and one file."""

from .client.handle import JobHandle
from .client.jobtype import JobType
from .client.queue import JobPage, Queue
from .client.requests import Call
from .client.snapshot import Snapshot
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
    "SyncJob",
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
