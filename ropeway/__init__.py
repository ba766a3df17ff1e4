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
    from .client.pipelines import Phase, Pipeline
    from .client.queue import Queue
    from .client.schedule import Schedule, Tick
    from .client.schedules import Schedules
    from .client.snapshot import Snapshot
    from .client.sse import event_stream
    from .client.sync_flows import SyncFlowHandle
    from .client.sync_found import SyncFoundJob, SyncJobPage
    from .client.sync_handle import SyncJobHandle
    from .client.sync_queue import SyncQueue
    from .client.sync_schedules import SyncSchedules
    from .client.tasks import Task
    from .client.workers import WorkerInfo
    from .errors import (
        DuplicateJob,
        GatherChanged,
        InvalidArguments,
        InvalidInput,
        InvalidMove,
        InvalidOption,
        InvalidSignature,
        InvalidTask,
        JobCancelled,
        JobFailed,
        JobFinished,
        JobNotFound,
        JobRemoved,
        LockLost,
        PayloadTooLarge,
        PipelineChanged,
        QueueBusy,
        ResultTimeout,
        RopewayError,
        ScheduleNotFound,
        ShutdownTimeout,
        SignalTimeout,
        StepChanged,
        StepFailed,
        StoreError,
        StoreUnavailable,
        SyncRefused,
        UnexpectedResult,
        Unrecoverable,
    )
    from .job.backoff import Backoff
    from .job.dedupe import Dedupe
    from .job.events import Event
    from .job.extras import Origin
    from .job.options import JobOptions
    from .job.phases import PhaseStatus
    from .job.retention import Keep
    from .job.steps import StepStatus
    from .job.webhook_options import Webhook
    from .store.url import connect
    from .worker.child import ProcessJob, ProcessPhaseContext
    from .worker.handlers import in_process
    from .worker.job import Job
    from .worker.listeners import WorkerEvent
    from .worker.manual import ClaimedJob
    from .worker.options import WorkerOptions
    from .worker.phase_context import PhaseContext, SyncPhaseContext
    from .worker.retired import RetiredJob
    from .worker.sync import SyncClaimedJob
    from .worker.thread_job import SyncJob
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
            "client.pipelines": "Phase Pipeline",
            "client.queue": "Queue",
            "client.new_jobs": "Call JobRequest",
            "client.schedule": "Schedule Tick",
            "client.schedules": "Schedules",
            "client.snapshot": "Snapshot",
            "client.sse": "event_stream",
            "client.sync_flows": "SyncFlowHandle",
            "client.sync_found": "SyncFoundJob SyncJobPage",
            "client.sync_handle": "SyncJobHandle",
            "client.sync_queue": "SyncQueue",
            "client.sync_schedules": "SyncSchedules",
            "client.tasks": "Task",
            "client.workers": "WorkerInfo",
            "errors": (
                "DuplicateJob GatherChanged InvalidArguments InvalidInput InvalidMove InvalidOption InvalidSignature "
                "InvalidTask "
                "JobCancelled JobFailed JobFinished JobNotFound JobRemoved LockLost PayloadTooLarge PipelineChanged "
                "QueueBusy ResultTimeout RopewayError ScheduleNotFound ShutdownTimeout SignalTimeout StepChanged "
                "StepFailed StoreError StoreUnavailable SyncRefused UnexpectedResult Unrecoverable"
            ),
            "job.backoff": "Backoff",
            "job.dedupe": "Dedupe",
            "job.events": "Event",
            "job.extras": "Origin",
            "job.options": "JobOptions",
            "job.phases": "PhaseStatus",
            "job.steps": "StepStatus",
            "job.webhook_options": "Webhook",
            "job.retention": "Keep",
            "store.url": "connect",
            "worker.child": "ProcessJob ProcessPhaseContext",
            "worker.handlers": "in_process",
            "worker.job": "Job",
            "worker.listeners": "WorkerEvent",
            "worker.manual": "ClaimedJob",
            "worker.options": "WorkerOptions",
            "worker.phase_context": "PhaseContext SyncPhaseContext",
            "worker.retired": "RetiredJob",
            "worker.sync": "SyncClaimedJob",
            "worker.thread_job": "SyncJob",
            "worker.worker": "Worker",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "Call",
    "ClaimedJob",
    "Dedupe",
    "DuplicateJob",
    "Event",
    "Flow",
    "FlowHandle",
    "FlowNode",
    "FoundJob",
    "GatherChanged",
    "InvalidArguments",
    "InvalidInput",
    "InvalidMove",
    "InvalidOption",
    "InvalidSignature",
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
    "Origin",
    "PayloadTooLarge",
    "Phase",
    "PhaseContext",
    "PhaseStatus",
    "Pipeline",
    "PipelineChanged",
    "ProcessJob",
    "ProcessPhaseContext",
    "Queue",
    "QueueBusy",
    "ResultTimeout",
    "RetiredJob",
    "RopewayError",
    "Schedule",
    "ScheduleNotFound",
    "Schedules",
    "ShutdownTimeout",
    "SignalTimeout",
    "Snapshot",
    "StepChanged",
    "StepFailed",
    "StepStatus",
    "StoreError",
    "StoreUnavailable",
    "SyncClaimedJob",
    "SyncFlowHandle",
    "SyncFoundJob",
    "SyncJob",
    "SyncJobHandle",
    "SyncJobPage",
    "SyncPhaseContext",
    "SyncQueue",
    "SyncRefused",
    "SyncSchedules",
    "Task",
    "Tick",
    "UnexpectedResult",
    "Unrecoverable",
    "Webhook",
    "Worker",
    "WorkerEvent",
    "WorkerInfo",
    "WorkerOptions",
    "chain",
    "connect",
    "event_stream",
    "in_process",
    "result_of",
    "results_of",
]
