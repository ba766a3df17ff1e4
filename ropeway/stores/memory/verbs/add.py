from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ....errors import InvalidOption
from ....job.flows import Parent
from ....job.instants import LAST_INSTANT
from ....job.numbers import LEAST_URGENT, MOST_URGENT, whole
from ....job.record import NewJob
from ....showing import shown
from ....store.commands import Add
from ....store.values import Added
from ..step import Step
from .dedupe import follows, take_key
from .ending import conclude
from .storing import store

Bundle: TypeAlias = Sequence[NewJob]
Verdict: TypeAlias = Literal["created", "found", "conflict"]


def add(step: Step, command: Add) -> list[list[Added]]:
    answers = add_bundles(step, command.bundles)
    # A job may have superseded another.
    conclude(step)
    return answers


def add_bundles(step: Step, bundles: Sequence[Bundle], adopter: Parent | None = None) -> list[list[Added]]:
    """Adds bundles; call `conclude` when the step ends no more jobs.

    `adopter` is a job that is there, and gets the children that name it as their parent.
    """
    for bundle in bundles:
        for job in bundle:
            _check(job)
    answers = [_add_bundle(step, bundle, adopter) for bundle in bundles]
    # After all adds: a duplicate of a job in the same call must not be announced before that job.
    for bundle, answered in zip(bundles, answers, strict=True):
        _announce_duplicates(step, bundle, answered)
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


def _add_bundle(step: Step, bundle: Bundle, adopter: Parent | None) -> list[Added]:
    new: dict[tuple[str, str], NewJob] = {}
    verdicts: list[Added] = []
    for job in bundle:
        verdict = _verdict(step, job, new, adopter)
        if verdict == "created":
            new[job.queue, job.id] = job
        verdicts.append(Added(job.id, verdict))
    if any(added.verdict == "conflict" for added in verdicts):
        return [_unless_stored(step, job, added) for job, added in zip(bundle, verdicts, strict=True)]
    dropped: set[tuple[str, str]] = set()
    return [
        _stored(step, job, dropped) if added.verdict == "created" else added
        for job, added in zip(bundle, verdicts, strict=True)
    ]


def _stored(step: Step, job: NewJob, dropped: set[tuple[str, str]]) -> Added:
    """Stores a job unless its dedupe key is held, or its parents are among those `dropped` for that reason."""
    if dropped and job.parents and all((parent.queue, parent.id) in dropped for parent in job.parents):
        dropped.add((job.queue, job.id))
        return Added(job.id, "skipped")
    if job.extras is not None and job.extras.dedupe is not None:
        found = take_key(step, job, job.extras.dedupe)
        if found is not None:
            dropped.add((job.queue, job.id))
            return Added(found, "deduplicated")
        if follows(step, job, job.extras.dedupe):
            job = replace(job, delay=0, due_at=LAST_INSTANT)
    store(step, job)
    return Added(job.id, "created")


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


def _announce_duplicates(step: Step, bundle: Bundle, answers: Sequence[Added]) -> None:
    for job, added in zip(bundle, answers, strict=True):
        if added.verdict == "found":
            step.queue(job.queue).entry("duplicated").append((job.id, None))
        elif added.verdict == "deduplicated":
            assert job.extras is not None, "only a job with a key can be deduplicated"
            assert job.extras.dedupe is not None, "only a job with a key can be deduplicated"
            detail = {"key": job.extras.dedupe.key, "discarded": job.id}
            step.queue(job.queue).entry("deduplicated").append((added.id, detail))


def _unless_stored(step: Step, job: NewJob, added: Added) -> Added:
    """The answer in a bundle with a conflict: a job that was to be created, or found in the bundle, is skipped."""
    is_there = added.verdict == "conflict" or job.id in step.queue(job.queue).jobs
    return added if is_there else Added(job.id, "skipped")
