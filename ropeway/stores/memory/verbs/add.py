from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidOption
from ....job.instants import LAST_INSTANT
from ....job.numbers import whole
from ....job.options import LEAST_URGENT, MOST_URGENT
from ....job.record import JobRecord, NewJob
from ....showing import shown
from ....store.commands import Add
from ....store.values import Added
from ..step import Step


def add(step: Step, command: Add) -> list[list[Added]]:
    bundles = command.bundles
    for bundle in bundles:
        for job in bundle:
            _check(job)
    answers = [_add_bundle(step, bundle) for bundle in bundles]
    # After all adds: a duplicate of a job in the same call must not be announced before that job.
    for bundle, answered in zip(bundles, answers, strict=True):
        _announce_found(step, bundle, answered)
    return answers


def _check(job: NewJob) -> None:
    """Refuses values that could not be sorted or encoded: they would break the queue for all other jobs."""
    for field in (job.queue, job.id, job.name, job.data, job.options):
        if not isinstance(field, str):
            raise InvalidOption("job", f"has {shown(field)} where text belongs")
    whole("priority", job.priority, MOST_URGENT, LEAST_URGENT)
    whole("delay", job.delay, 0, LAST_INSTANT)
    if job.due_at is not None:
        whole("due_at", job.due_at, 0, LAST_INSTANT)


def _add_bundle(step: Step, bundle: Sequence[NewJob]) -> list[Added]:
    new: dict[tuple[str, str], NewJob] = {}
    verdicts: list[Added] = []
    for job in bundle:
        there = step.queue(job.queue).jobs.get(job.id) or new.get((job.queue, job.id))
        if there is None:
            new[job.queue, job.id] = job
            verdicts.append(Added(job.id, "created"))
        elif there.name == job.name and there.data == job.data:
            verdicts.append(Added(job.id, "found"))
        else:
            verdicts.append(Added(job.id, "conflict"))
    if any(added.verdict == "conflict" for added in verdicts):
        verdicts = [_unless_stored(step, job, added) for job, added in zip(bundle, verdicts, strict=True)]
    else:
        for job in new.values():
            _store(step, job)
    return verdicts


def _announce_found(step: Step, bundle: Sequence[NewJob], answers: Sequence[Added]) -> None:
    for job, added in zip(bundle, answers, strict=True):
        if added.verdict == "found":
            step.queue(job.queue).entry("duplicated").append((job.id, None))


def _unless_stored(step: Step, job: NewJob, added: Added) -> Added:
    """The answer in a bundle with a conflict: a job that was to be created, or found in the bundle, is skipped."""
    is_there = added.verdict == "conflict" or job.id in step.queue(job.queue).jobs
    return added if is_there else Added(job.id, "skipped")


def _store(step: Step, job: NewJob) -> None:
    queue, now = step.queue(job.queue), step.now
    due_at = min(now + job.delay, LAST_INSTANT) if job.delay else job.due_at
    number = next(step.shared.sequence)
    order = -number if job.lifo else number
    is_delayed = due_at is not None and due_at > now
    record = JobRecord(
        job.queue,
        job.id,
        job.name,
        job.data,
        job.options,
        "delayed" if is_delayed else "waiting",
        job.priority,
        order,
        now,
        due_at=due_at if is_delayed else None,
        tags=job.tags,
    )
    queue.put(record)
    detail = {"name": job.name, "due_at": due_at} if is_delayed else {"name": job.name}
    queue.entry("add", record.state).append((job.id, detail))
    step.wake(job.queue)
