"""Ropeway: a job queue that starts as one import and one file."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client.chains import chain
    from .client.flow_tree import FlowNode
    from .client.flows import Flow, FlowHandle
    from .client.found import FoundJob, JobPage
    from .client.handle import JobHandle
    from .client.inputs import result_of, results_of
    from .client.jobtype import JobType
    from .client.new_jobs import Call, JobRequest
    from .client.queue import Queue
    from .client.snapshot import Snapshot
    from .client.sync_flows import SyncFlowHandle
    from .client.sync_found import SyncFoundJob, SyncJobPage
    from .client.sync_handle import SyncJobHandle
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
else:
    from .lazy import lazily

    # Imported when first used: a producer needs no worker, and what looks for plugins or completions needs neither.
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "client.chains": "chain",
            "client.flow_tree": "FlowNode",
            "client.flows": "Flow FlowHandle",
            "client.found": "FoundJob JobPage",
            "client.inputs": "result_of results_of",
            "client.handle": "JobHandle",
            "client.jobtype": "JobType",
            "client.queue": "Queue",
            "client.new_jobs": "Call JobRequest",
            "client.snapshot": "Snapshot",
            "client.sync_flows": "SyncFlowHandle",
            "client.sync_found": "SyncFoundJob SyncJobPage",
            "client.sync_handle": "SyncJobHandle",
            "client.sync_queue": "SyncQueue",
            "client.tasks": "Task",
            "client.workers": "WorkerInfo",
            "errors": (
                "DuplicateJob InvalidArguments InvalidInput InvalidMove InvalidOption InvalidTask "
                "JobCancelled JobFailed JobFinished JobNotFound JobRemoved LockLost PayloadTooLarge "
                "QueueBusy ResultTimeout RopewayError ShutdownTimeout StoreError StoreUnavailable "
                "SyncRefused UnexpectedResult Unrecoverable"
            ),
            "job.backoff": "Backoff",
            "job.events": "Event",
            "job.options": "JobOptions",
            "job.retention": "Keep",
            "store.url": "connect",
            "worker.child": "ProcessJob",
            "worker.handlers": "in_process",
            "worker.job": "Job SyncJob",
            "worker.listeners": "WorkerEvent",
            "worker.manual": "ClaimedJob",
            "worker.options": "WorkerOptions",
            "worker.sync": "SyncClaimedJob",
            "worker.worker": "Worker",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "Call",
    "ClaimedJob",
    "DuplicateJob",
    "Event",
    "Flow",
    "FlowHandle",
    "FlowNode",
    "FoundJob",
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
    "JobRequest",
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
    "SyncFlowHandle",
    "SyncFoundJob",
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
    "chain",
    "connect",
    "in_process",
    "result_of",
    "results_of",
]
