"""Submitting jobs: one, many, or a flow."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec

from ...client.flows import Flow
from ...client.handle import JobHandle
from ...client.new_jobs import Call as NewCall
from ...client.queue import Queue
from ...client.schedules import job_options
from ...errors import InvalidOption
from ...job.names import job_name, queue_name
from ...store.values import BATCH
from ..job_fields import FlowFields, JobFields, Submission, options_of, queues_of
from ..routes import Call, Reply, Route

LONGEST_KEY: Final = 255


class Submissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs to be added together: all, or none."""

    jobs: Annotated[tuple[Submission, ...], msgspec.Meta(min_length=1, max_length=BATCH)]


class Submitted(msgspec.Struct, frozen=True):
    id: str
    created: bool
    """False if it was there already."""
    deduplicated: bool = False
    """True if another job, the one with this id, holds the same dedupe key."""


class SubmittedJobs(msgspec.Struct, frozen=True):
    jobs: list[Submitted]


async def submit(call: Call) -> Reply:
    [job] = await _add(call, [call.body])
    return Reply(job, 201 if job.created else 200)


async def submit_many(call: Call) -> Reply:
    jobs = await _add(call, call.body.jobs)
    return Reply(SubmittedJobs(jobs), 201 if any(job.created for job in jobs) else 200)


async def submit_flow(call: Call) -> Reply:
    queue = call.queue
    call.broker.schemas.check(_jobs_of(call.body, queue.name))
    handle = await queue.add_flow(_flow(call, call.body, queue))
    return Reply(_submitted(handle), 201 if handle.created else 200)


async def _add(call: Call, submissions: Sequence[Submission]) -> list[Submitted]:
    queue = call.queue
    if call.broker.schemas:
        call.broker.schemas.check((queue.name, job.type, job.payload) for job in submissions)
    ids = _ids_by_key(call, len(submissions))
    calls = []
    for number, job in enumerate(submissions):
        options = _options(call, job, queue)
        if ids is not None:
            options.setdefault("id", ids[number])
        calls.append(NewCall(job.type, job.payload, job_options(options)))
    return [_submitted(handle) for handle in await queue.add_many(calls)]


def _options(call: Call, job: JobFields, queue: Queue) -> dict[str, Any]:
    limits = call.broker.limits
    defaults = queue.tasks.defaults.get(job.type, queue.defaults)
    return options_of(job, defaults, attempts=limits.attempts, drops=limits.drop_exhausted)


def _flow(call: Call, job: FlowFields, parent: Queue) -> Flow:
    queue = parent if job.queue is None else call.broker.queue(queue_name(job.queue))
    return Flow(
        job_name(job.type),
        job.payload,
        queue=queue,
        children=[_flow(call, child, queue) for child in job.children],
        on_child_failure=job.on_child_failure,
        on_failure=job.on_failure,
        **_options(call, job, queue),
    )


def _jobs_of(job: FlowFields, parent: str) -> Iterator[tuple[str, str, Any]]:
    """The queues, types and payloads of a flow, the parent first."""
    queue = job.queue or parent
    yield queue, job.type, job.payload
    for child in job.children:
        yield from _jobs_of(child, queue)


def _ids_by_key(call: Call, count: int) -> list[str] | None:
    """Ids that are made of the caller and its `Idempotency-Key`, so that a repeat finds the jobs of the first call."""
    key = call.headers.get(b"idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY:
        raise InvalidOption("Idempotency-Key", f"has {len(key)} characters: use 1 to {LONGEST_KEY}")
    return [str(_uuid_of(call.principal.name, call.queue.name, key, number)) for number in range(count)]


def _uuid_of(who: str, queue: str, key: bytes, number: int) -> uuid.UUID:
    digest = hashlib.sha256(msgspec.json.encode([who, queue, key, number])).digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def _submitted(handle: JobHandle[Any]) -> Submitted:
    return Submitted(handle.id, handle.created, handle.deduplicated)


def _queues_of_many(body: Submissions) -> Iterable[str]:
    return {queue for job in body.jobs for queue in queues_of(job)}


ROUTES: Final = (
    Route(
        "POST",
        "/v1/queues/{queue}/jobs",
        submit,
        ("add",),
        "Adds a job.",
        body=Submission,
        answer=Submitted,
        status=201,
        kind="add",
        queues=queues_of,
        tag="producers",
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/batch",
        submit_many,
        ("add",),
        "Adds up to 1,000 jobs: all, or none.",
        body=Submissions,
        answer=SubmittedJobs,
        status=201,
        kind="add",
        queues=_queues_of_many,
        tag="producers",
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/flows",
        submit_flow,
        ("add",),
        "Adds a job with its children, to any depth: all, or none.",
        body=FlowFields,
        answer=Submitted,
        status=201,
        kind="add",
        queues=queues_of,
        tag="producers",
    ),
)
