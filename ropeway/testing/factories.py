"""Factories of small values for tests, which then state only what matters to them.

Every instant is explicit: `NOW` is one that nothing else depends on, and tests go on from there by addition.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from ..job.codec import JsonText
from ..job.dedupe import DedupeMode, DedupeRule
from ..job.extras import Extras
from ..job.failure import Failure
from ..job.flows import DEFAULT_POLICY, Child, Parent, Policy
from ..job.instants import Instant, Milliseconds
from ..job.options import read_options
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.retention import KEEP_COMPLETED, KEEP_FAILED, Retention
from ..store.commands import Claim
from ..store.values import Lock, RevokedLock, Why

QUEUE: Final = "letters"
ELSEWHERE: Final = "parcels"
"""A second queue."""
WORKER: Final = "worker-1"
FOREIGN: Final = "a-token-of-somebody-else"
NOW: Final[Instant] = 1_700_000_040_000
"""The beginning of a minute."""
SECOND: Final[Milliseconds] = 1_000
MINUTE: Final[Milliseconds] = 60_000
DAY: Final[Milliseconds] = 24 * 60 * MINUTE
LOCK: Final[Milliseconds] = 30 * SECOND

_numbers = count(1)


def new_job(  # noqa: PLR0913 - it stands for all that can be said of a job
    id: str | None = None,
    *,
    queue: str = QUEUE,
    name: str = "send",
    data: JsonText = '{"to":"you"}',
    due_at: Instant | None = None,
    delay: Milliseconds = 0,
    priority: int = 0,
    lifo: bool = False,
    is_fresh: bool = False,
    tags: tuple[str, ...] = (),
    parents: tuple[Parent, ...] = (),
    children: tuple[Child, ...] = (),
    extras: Extras | None = None,
    **options: Any,
) -> NewJob:
    """A new job. `options` are `JobOptions` that are stored with the job, as users write them."""
    _, stored = read_options(options)
    id = id or f"job-{next(_numbers)}"
    placed = priority, lifo, delay, due_at, is_fresh, tags, parents, children, extras
    return NewJob(queue, id, name, data, stored, *placed)


def keyed(key: str = "key", mode: DedupeMode = "until-final", ttl: Milliseconds = 0, **job: Any) -> NewJob:
    """A new job with a dedupe key."""
    return new_job(extras=Extras(dedupe=DedupeRule(key, mode, ttl)), **job)


def new_flow(root: NewJob, *children: NewJob | tuple[NewJob, Policy]) -> list[NewJob]:
    """A parent and its children, as one bundle. A child may come with its policy; it may be a parent itself."""
    jobs = [child[0] if isinstance(child, tuple) else child for child in children]
    policies: list[Policy] = [child[1] if isinstance(child, tuple) else DEFAULT_POLICY for child in children]
    links = tuple(Child(job.queue, job.id, policy) for job, policy in zip(jobs, policies, strict=True))
    parent = Parent(root.queue, root.id)
    return [replace(root, children=links), *(replace(job, parents=(*job.parents, parent)) for job in jobs)]


def new_jobs(count: int, **common: Any) -> list[NewJob]:
    return [new_job(**common) for _ in range(count)]


def claim_request(
    limit: int = 1,
    *,
    queue: str = QUEUE,
    worker: str = WORKER,
    token: str | None = None,
    lock: Milliseconds = LOCK,
    names: tuple[str, ...] | None = None,
    repeat: bool = False,
    isolates: bool = False,
) -> Claim:
    """A claim, with a new token unless one is given."""
    return Claim(queue, worker, token or f"token-{next(_numbers)}", limit, lock, names, repeat, isolates)


def lock_of(job: JobRecord) -> Lock:
    return Lock(job.id, token_of(job))


def revoked_lock(job: JobRecord, why: Why = "cancelled") -> RevokedLock:
    return RevokedLock(job.id, token_of(job), why)


def token_of(job: JobRecord) -> str:
    assert job.token is not None, f"{job.id} is not held by anybody"
    return job.token


def complete(
    job: JobRecord,
    result: JsonText | None = None,
    *,
    token: str | None = None,
    keep: Retention = KEEP_COMPLETED,
) -> Outcome:
    return Outcome(job.id, token or token_of(job), "complete", result=result, keep=keep)


def retry(
    job: JobRecord,
    delay: Milliseconds = 0,
    *,
    reason: str = "no luck",
    trace: str = "",
    token: str | None = None,
    stack_traces: int = 10,
) -> Outcome:
    failure = Failure(reason, trace)
    return Outcome(job.id, token or token_of(job), "retry", failure=failure, delay=delay, stack_traces=stack_traces)


def fail(
    job: JobRecord,
    *,
    reason: str = "no luck",
    trace: str = "",
    token: str | None = None,
    keep: Retention = KEEP_FAILED,
    exhausted: bool = False,
) -> Outcome:
    failure = Failure(reason, trace)
    return Outcome(job.id, token or token_of(job), "fail", failure=failure, keep=keep, exhausted=exhausted)


def postpone(job: JobRecord, delay: Milliseconds = 0, *, token: str | None = None) -> Outcome:
    return Outcome(job.id, token or token_of(job), "postpone", delay=delay)


def hand_back(job: JobRecord, *, token: str | None = None) -> Outcome:
    return Outcome(job.id, token or token_of(job), "hand back")
