"""The only functions that make a job final, or remove it, and what follows from that.

What follows concerns parents, dedupe keys, follow-ups and retention.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from ....job.extras import Extras
from ....job.follow_ups import follow_ups_of
from ....job.options import readable_options
from ....job.record import JobRecord
from ....job.retention import KEEP_FAILED, Retention
from ....job.states import FINAL, State
from ....store.values import BATCH, RevokedLock, Why
from ..families import Family
from ..step import Step
from .dedupe_keys import free_key, start_followers
from .flows import news_of, note_end, orphan, release
from .storing import store


def end(
    step: Step,
    job: JobRecord,
    what: str,
    state: State,
    keep: Retention,
    *,
    detail: dict[str, Any] | None = None,
    common: dict[str, Any] | None = None,
    **changes: Any,
) -> JobRecord:
    """Makes the job final and announces it; call `conclude` after the last one of the step.

    `detail` is the event detail of this job, `common` that of all jobs that end in the same way in this step.
    """
    queue, now = step.queue(job.queue), step.now
    if queue.settings.stages is not None:
        keep = queue.settings.stages.keep(keep)
    final = replace(
        job, state=state, due_at=None, lock_until=None, finished_at=now, expires_at=keep.until(now), **changes
    )
    queue.put(final)
    queue.entry(what, state, common).append((job.id, detail))
    step.ended.append((final, keep))
    if job.extras is not None:
        _leave(step, final, job.extras)
        step.follow_ups += follow_ups_of(final, job.extras, now)
    if job.parents:
        step.news += news_of(final, what)
    return final


def _leave(step: Step, job: JobRecord, extras: Extras) -> None:
    """Frees what a job holds that has ended, or is removed."""
    step.queue(job.queue).deadlines.remove(job.id)
    if extras.dedupe is not None:
        free_key(step, job, extras.dedupe.key)


def keep_of_failed(job: JobRecord) -> Retention:
    """Retention of a job that ends without a worker: the worker's own rule does not apply."""
    return readable_options(job.options).keep_failed or KEEP_FAILED


def drop(step: Step, job: JobRecord, *, quietly: bool = False) -> None:
    """Removes the job with its history, and announces it; call `conclude` after the last one of the step."""
    queue = step.queue(job.queue)
    queue.drop(job.id)
    if not quietly:
        queue.removals().append((job.id, {"prev": job.state}))
    if job.extras is not None:
        _leave(step, job, job.extras)
    if job.parents and job.state not in FINAL:
        step.news += news_of(job, "remove")


def revoke(step: Step, job: JobRecord, why: Why) -> None:
    """Announces to the worker that runs the job, if any, that it lost it. That frees a global concurrency slot."""
    if job.state == "active" and job.token is not None:
        step.revoke(job.queue, RevokedLock(job.id, job.token, why))
        if step.queue(job.queue).settings.max_active is not None:
            step.wake(job.queue)


def conclude(step: Step) -> None:
    """Tells the parents of jobs that ended, which may end too; starts followers; adds follow-ups; applies retention."""
    # A list, not recursion: flows may be deep.
    while step.news:
        found = note_end(step, step.news.popleft())
        if found is not None:
            judge(step, *found)
    start_followers(step)
    for new in step.follow_ups:
        # A job that ends twice in the same millisecond and in the same way leaves one.
        if new.id not in step.queue(new.queue).jobs:
            store(step, new)
    step.follow_ups.clear()
    apply_retention(step)


def judge(step: Step, parent: JobRecord, family: Family) -> None:
    """Decides what becomes of a parent that waits for its children."""
    queue = step.queue(parent.queue)
    owed, reason = family.owed, family.owed_reason
    if owed is not None:
        queue.change(family, owed=None, owed_reason="")
    if owed == "fail":
        keep, detail = keep_of_failed(parent), {"reason": reason}
        end(step, parent, "fail by child", "failed", keep, detail=detail, token=None, reason=reason)
    elif owed == "remove":
        _remove_tree(step, parent)
    elif owed == "start" or not family.left:
        release(step, parent, family)


def _remove_tree(step: Step, parent: JobRecord) -> None:
    """Removes a job with its unfinished descendants, except those for which another parent waits."""
    going = [parent]
    while going:
        job = going.pop()
        going += orphan(step, job)
        revoke(step, job, "removed")
        drop(step, job)


def apply_retention(step: Step) -> None:
    """Applies the retention of the jobs that ended in this step.

    Removes at most `BATCH` older jobs of each queue; the next job that finishes continues.
    """
    counts: defaultdict[str, dict[State, int]] = defaultdict(dict)
    for job, keep in step.ended:
        if keep.removes_at_once:
            drop(step, job)
        elif keep.count is not None:
            lowest = counts[job.queue]
            lowest[job.state] = min(keep.count, lowest.get(job.state, keep.count))
    for name, lowest in counts.items():
        queue, allowance = step.queue(name), BATCH
        for state, count in lowest.items():
            keys = queue.index(state).counted
            surplus = keys.first(min(len(keys) - count, allowance)) if len(keys) > count else []
            for _, _, id in surplus:
                drop(step, queue.jobs[id])
            allowance -= len(surplus)
    step.ended.clear()
