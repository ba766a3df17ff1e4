"""Ropeway: a job queue that starts as one import and one file."""

from .client.handle import JobHandle
from .client.queue import JobPage, Queue
from .client.requests import Call
from .client.snapshot import Snapshot
from .client.sync_handle import SyncJobHandle, SyncJobPage
from .client.sync_queue import SyncQueue
from .client.workers import WorkerInfo
from .errors import (
    DuplicateJob,
    InvalidInput,
    InvalidMove,
    InvalidOption,
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
    "InvalidInput",
    "InvalidMove",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobFinished",
    "JobHandle",
    "JobNotFound",
    "JobOptions",
    "JobPage",
    "JobRemoved",
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
    "Unrecoverable",
    "Worker",
    "WorkerEvent",
    "WorkerInfo",
    "WorkerOptions",
    "connect",
    "in_process",
]
