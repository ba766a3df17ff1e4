from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ....errors import InvalidOption
from ....job.flows import Parent
from ....job.instants import LAST_INSTANT, Instant
from ....job.numbers import whole
from ....job.options import LEAST_URGENT, MOST_URGENT
from ....job.record import JobRecord, NewJob
from ....job.states import State
from ....showing import shown
from ....store.commands import Add
from ....store.values import Added
from ..families import Family
from ..step import Step

Verdict: TypeAlias = Literal["created", "found", "conflict"]


def add(step: Step, command: Add, adopter: Parent | None = None) -> list[list[Added]]:
    """Adds bundles. `adopter` is a job that is there, and gets the children that name it as their parent."""
    bundles = command.bundles
    for bundle in bundles:
        for job in bundle:
            _check(job)
    answers = [_add_bundle(step, bundle, adopter) for bundle in bundles]
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


def _add_bundle(step: Step, bundle: Sequence[NewJob], adopter: Parent | None) -> list[Added]:
    new: dict[tuple[str, str], NewJob] = {}
    verdicts: list[Added] = []
    for job in bundle:
        verdict = _verdict(step, job, new, adopter)
        if verdict == "created":
            new[job.queue, job.id] = job
        verdicts.append(Added(job.id, verdict))
    if any(added.verdict == "conflict" for added in verdicts):
        verdicts = [_unless_stored(step, job, added) for job, added in zip(bundle, verdicts, strict=True)]
    else:
        for job in new.values():
            _store(step, job)
    return verdicts


def _verdict(step: Step, job: NewJob, new: Mapping[tuple[str, str], NewJob], adopter: Parent | None) -> Verdict:
    there = step.queue(job.queue).jobs.get(job.id) or new.get((job.queue, job.id))
    if job.parents:
        # A parent that was there before is found as it is, with the children that it has, which may be gone by now.
        are_new = {
            (parent.queue, parent.id) in new or (parent == adopter and not _has_child(step, parent, job))
            for parent in job.parents
        }
        if are_new == {False}:
            return "found"
        return "created" if there is None and are_new == {True} else "conflict"
    if there is None:
        return "created"
    return "found" if there.name == job.name and there.data == job.data else "conflict"


def _has_child(step: Step, parent: Parent, child: NewJob) -> bool:
    family = step.queue(parent.queue).families.get(parent.id)
    return family is not None and (child.queue, child.id) in family.links


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
    if job.children:
        _store_parent(step, job)
        return
    due_at = min(now + job.delay, LAST_INSTANT) if job.delay else job.due_at
    is_delayed = due_at is not None and due_at > now
    record = _record(step, job, "delayed" if is_delayed else "waiting", due_at if is_delayed else None)
    queue.put(record)
    detail = {"name": job.name, "due_at": due_at} if is_delayed else {"name": job.name}
    queue.entry("add", record.state).append((job.id, detail))
    step.wake(job.queue)


def _store_parent(step: Step, job: NewJob) -> None:
    """Its delay begins when its children have ended."""
    queue = step.queue(job.queue)
    family = Family({}, delay=job.delay, due_at=job.due_at)
    family.add(job.children)
    queue.found(job.id, family)
    queue.put(_record(step, job, "waiting-children"))
    queue.entry("add", "waiting-children").append((job.id, {"name": job.name}))


def _record(step: Step, job: NewJob, state: State, due_at: Instant | None = None) -> JobRecord:
    number = next(step.shared.sequence)
    return JobRecord(
        job.queue,
        job.id,
        job.name,
        job.data,
        job.options,
        state,
        job.priority,
        -number if job.lifo else number,
        step.now,
        due_at=due_at,
        tags=job.tags,
        parents=job.parents,
        children=len(job.children),
    )
