"""What workers say of the jobs that they claimed, by token: heartbeat, complete, fail, release, progress and log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from ...client.new_jobs import PROGRESS_LIMIT, reason_text
from ...errors import InvalidMove, InvalidOption, JobNotFound, LockLost
from ...job.codec import encode
from ...job.durations import milliseconds
from ...job.failure import TRACE_LIMIT, UNKNOWN_REASON, Failure
from ...job.numbers import whole
from ...job.options import LOG_LINES
from ...job.outcomes import Outcome
from ...job.states import OPEN
from ...store.values import BATCH, Answer, JobUpdate, Lock
from ...worker.job import LOG_LINE_LIMIT
from ...worker.options import SHORTEST_LOCK
from ..claim_tokens import is_of
from ..held_jobs import Facts, completed, failed
from ..job_fields import Span
from ..routes import Call, Route
from ..work_types import (
    Completion,
    CompletionItem,
    Completions,
    FailureItem,
    FailureReport,
    FailureReports,
    Heartbeat,
    HeartbeatItem,
    Heartbeats,
    ItemAnswer,
    ItemAnswers,
    LogItem,
    LogReport,
    LogReports,
    ProgressItem,
    ProgressReport,
    ProgressReports,
    Release,
    ReleaseItem,
    Releases,
)


def lock_of(call: Call, timeout: Span | None) -> int:
    if timeout is None:
        return call.broker.limits.lock
    lock = milliseconds(timeout, "timeout")
    if lock < SHORTEST_LOCK:
        raise InvalidOption("timeout", f"cannot be {lock} ms: use at least {SHORTEST_LOCK} ms")
    return lock


async def _settle(call: Call, outcomes: Sequence[Outcome], facts: Mapping[Lock, Facts]) -> list[Answer]:
    settled = await call.store.settle(call.queue.name, outcomes)
    for outcome, answer in zip(outcomes, settled.answers, strict=True):
        lock = Lock(outcome.id, outcome.token)
        known = facts.get(lock)
        if known is not None and answer.verdict == "done":
            began = None if outcome.move == "hand back" else known.began
            call.broker.workers.ended(known.worker, call.queue.name, outcome.id, began)
        call.broker.held.forget(call.queue.name, lock)
    return settled.answers


async def _complete(call: Call, items: Sequence[Any]) -> list[Answer]:
    size = call.queue.size_limit
    facts = await call.broker.held.facts(call.queue.name, [Lock(item.id, item.token) for item in items])
    outcomes = []
    for item in items:
        lock = Lock(item.id, item.token)
        result = None if item.result is None else encode(item.result, "result", size)
        outcomes.append(completed(lock, facts.get(lock), result))
    return await _settle(call, outcomes, facts)


async def _fail(call: Call, items: Sequence[Any]) -> list[Answer]:
    facts = await call.broker.held.facts(call.queue.name, [Lock(item.id, item.token) for item in items])
    outcomes = []
    for item in items:
        lock = Lock(item.id, item.token)
        failure = Failure(reason_text(item.error) or UNKNOWN_REASON, item.trace[:TRACE_LIMIT].replace("\x00", "\\x00"))
        delay = None if item.delay is None else milliseconds(item.delay, "delay")
        outcomes.append(failed(lock, facts.get(lock), failure, delay=delay, retry=item.retry))
    return await _settle(call, outcomes, facts)


async def _release(call: Call, items: Sequence[Any]) -> list[Answer]:
    outcomes = [
        Outcome(item.id, item.token, "hand back")
        if not item.delay
        else Outcome(item.id, item.token, "postpone", delay=milliseconds(item.delay, "delay"))
        for item in items
    ]
    held = call.broker.held
    locks = (Lock(item.id, item.token) for item in items)
    known = {lock: facts for lock in locks if (facts := held.known(call.queue.name, lock)) is not None}
    return await _settle(call, outcomes, known)


async def _renew(call: Call, items: Sequence[Any]) -> list[Answer]:
    locks = [lock_of(call, item.timeout) for item in items]
    if len({*locks}) > 1:
        raise InvalidOption("timeout", "differs between the jobs of one call: make a call for each")
    queue, held = call.queue.name, [Lock(item.id, item.token) for item in items]
    answers = await call.store.renew(queue, held, locks[0])
    for item, lock, answer in zip(items, held, answers, strict=True):
        known = call.broker.held.known(queue, lock)
        worker = item.worker if known is None else known.worker
        if worker is not None and answer.verdict == "done":
            call.broker.workers.renewed(worker, queue, [lock.id], locks[0])
    return answers


async def _progress(call: Call, items: Sequence[Any]) -> list[Answer]:
    texts = [encode(item.progress, "progress", PROGRESS_LIMIT) for item in items]
    updates = [JobUpdate(item.id, item.token, progress=text) for item, text in zip(items, texts, strict=True)]
    return await call.store.update(call.queue.name, updates)


async def _log(call: Call, items: Sequence[Any]) -> list[Answer]:
    facts = await call.broker.held.facts(call.queue.name, [Lock(item.id, item.token) for item in items])
    updates = []
    for item in items:
        known = facts.get(Lock(item.id, item.token))
        lines = tuple(_line(line) for line in item.lines)
        kept = LOG_LINES if known is None else known.options.keep_logs
        updates.append(JobUpdate(item.id, item.token, log=lines, keep_logs=kept))
    return await call.store.update(call.queue.name, updates)


def _line(text: str) -> str:
    encode(text, "line", 4 * LOG_LINE_LIMIT + 2)
    return text[:LOG_LINE_LIMIT].replace("\x00", "\\x00")


Act = Callable[[Call, Sequence[Any]], Awaitable[list[Answer]]]


def _one(act: Act, body: Any) -> Callable[[Call], Awaitable[None]]:
    """For a single job: what does not hold is an error."""

    async def run(call: Call) -> None:
        id, queue = call.params["id"], call.queue.name
        item = _WITH_ID[body](id=id, **{name: getattr(call.body, name) for name in body.__struct_fields__})
        [answer] = await _checked(call, act, [item])
        if answer.verdict == "missing":
            raise JobNotFound(queue, id)
        if answer.verdict == "lost":
            raise LockLost(queue, id)
        if answer.verdict == "refused":
            raise InvalidMove(queue, id, "update", answer.state or "", OPEN)

    return run


def _many(act: Act) -> Callable[[Call], Awaitable[ItemAnswers]]:
    """For many jobs: each has its answer."""

    async def run(call: Call) -> ItemAnswers:
        items = call.body.jobs
        whole("jobs", len(items), 1, BATCH)
        answers = await _checked(call, act, items)
        return ItemAnswers(
            [ItemAnswer(item.id, each.verdict, each.state) for item, each in zip(items, answers, strict=True)]
        )

    return run


async def _checked(call: Call, act: Act, items: Sequence[Any]) -> list[Answer]:
    """Leaves out what comes from the wrong worker, or is no id: it is answered `lost`, and nothing changes."""
    owns = [is_of(item.token, item.worker) and item.id.isprintable() for item in items]
    answers = iter(await act(call, [*compress(items, owns)]) if any(owns) else [])
    return [next(answers) if is_own else Answer("lost") for is_own in owns]


_WITH_ID: Final[dict[Any, Any]] = {
    Heartbeat: HeartbeatItem,
    Completion: CompletionItem,
    FailureReport: FailureItem,
    Release: ReleaseItem,
    ProgressReport: ProgressItem,
    LogReport: LogItem,
}


_VERBS: Final[tuple[tuple[str, Act, Any, Any, str], ...]] = (
    ("heartbeat", _renew, Heartbeat, Heartbeats, "Says that the worker still works on {}."),
    ("complete", _complete, Completion, Completions, "Ends {} with a result."),
    (
        "fail",
        _fail,
        FailureReport,
        FailureReports,
        "Records a failed attempt of {}, to be retried while attempts remain.",
    ),
    ("release", _release, Release, Releases, "Gives {} back; uses no attempt."),
    ("progress", _progress, ProgressReport, ProgressReports, "Stores the progress of {}."),
    ("log", _log, LogReport, LogReports, "Adds lines to the log of {}."),
)


ROUTES: Final = (
    *(
        Route(
            "POST",
            f"/v1/queues/{{queue}}/jobs/{{id}}/{verb}",
            _one(act, one),
            ("work",),
            summary.format("a job"),
            body=one,
            kind="settle",
            tag="workers",
        )
        for verb, act, one, _, summary in _VERBS
    ),
    *(
        Route(
            "POST",
            f"/v1/queues/{{queue}}/{verb}",
            _many(act),
            ("work",),
            summary.format("up to 1,000 jobs"),
            body=many,
            answer=ItemAnswers,
            kind="settle",
            tag="workers",
        )
        for verb, act, _, many, summary in _VERBS
    ),
)
