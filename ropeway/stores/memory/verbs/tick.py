from __future__ import annotations

from msgspec.structs import replace

from ....job.instants import Instant
from ....job.options import readable_options
from ....job.record import JobRecord
from ....job.stalls import GIVEN_UP, judge_stall, stall_reason
from ....store.commands import Tick
from ....store.values import BATCH, FailedAttempt, StallRules, Ticked
from ..queue_data import QueueData
from ..step import Step
from .claim import promote_due
from .dedupe import free_old_keys
from .ending import conclude, drop, end, keep_of_failed
from .expiry import expire_due
from .schedules import due_schedules
from .staging import apply_stages, next_stage_at


def tick(step: Step, command: Tick) -> Ticked:
    queue = step.queue(command.queue)
    promoted = promote_due(step, queue)
    stalled, given_up = _recover(step, queue, command.rules)
    expired = expire_due(step, queue)
    conclude(step)
    removed = _remove_old(step, queue)
    stale, deleted, has_more = apply_stages(step, queue)
    frees_room = bool(given_up) and queue.settings.max_active is not None
    if promoted or stalled or frees_room:
        step.wake(command.queue)
    free_old_keys(step, queue)
    queue.afterwards(queue.stream.trim)
    queue.afterwards(queue.metrics.trim, step.now)
    queue.afterwards(step.shared.revoked.trim, step.now)
    queue.afterwards(step.shared.records.trim, step.now)
    is_full = BATCH in (promoted, len(stalled) + len(given_up), expired, removed) or has_more
    due = due_schedules(queue, step.now)
    return Ticked(
        promoted,
        stalled,
        given_up,
        removed + deleted,
        next_at(queue),
        is_full,
        step.now,
        expired=expired,
        schedules=due,
        stale=stale,
    )


def _recover(step: Step, queue: QueueData, rules: StallRules) -> tuple[list[str], list[str]]:
    """Recovers stalled jobs: ids that wait again, and ids that were given up."""
    stalled: list[str] = []
    given_up: list[str] = []
    for _, _, id in queue.locks.first(BATCH, before=(step.now + 1,)):
        is_given_up = _stall(step, queue, queue.jobs[id], rules)
        (given_up if is_given_up else stalled).append(id)
    return stalled, given_up


def _stall(step: Step, queue: QueueData, job: JobRecord, rules: StallRules) -> bool:
    """True if the job was given up."""
    options = readable_options(job.options)
    verdict = judge_stall(
        stalled_count=job.stalled_count,
        attempts_made=job.attempts_made,
        attempts=options.attempts,
        is_alone=queue.alone.get(job.id) == job.token,
        max_stalled_count=rules.max_stalled_count,
        on_stalled=rules.on_stalled,
        counts_as_attempt=rules.counts_as_attempt,
    )
    reason = stall_reason(verdict, job.worker, job.renewed_at, rules.ends)
    attempt = FailedAttempt(job.attempts_started, step.now, job.worker, reason, "", job.started_at)
    queue.afterwards(queue.histories.fail, job.id, attempt, options.stack_traces)
    stalled = replace(
        job,
        stalled_count=job.stalled_count + 1,
        attempts_made=job.attempts_made + (rules.counts_as_attempt and verdict != "spared"),
        token=None,
        reason=reason,
    )
    detail = {"worker": job.worker, "stalled_count": stalled.stalled_count}
    if verdict in GIVEN_UP:
        exhausted = {"exhausted": True} if verdict == "last attempt" else {}
        detail |= {"reason": reason, **exhausted}
        end(step, stalled, "give up", "failed", keep_of_failed(job), detail=detail)
        return True
    queue.put(replace(stalled, state="waiting", lock_until=None))
    queue.entry("stall", "waiting").append((job.id, detail))
    return False


def _remove_old(step: Step, queue: QueueData) -> int:
    over = queue.expiries.first(BATCH, before=(step.now + 1,))
    for _, _, id in over:
        drop(step, queue.jobs[id])
    return len(over)


def next_at(queue: QueueData) -> Instant | None:
    heads = (queue.index("delayed").counted.least, queue.locks.least, queue.expiries.least)
    instants = [head[0] for head in heads if head]
    instants += [one.next_at for one in queue.schedules.values() if one.next_at is not None]
    instants += next_stage_at(queue)
    return min(instants if queue.deadlines.first is None else [*instants, queue.deadlines.first], default=None)
