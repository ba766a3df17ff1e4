"""Which outcome an attempt has: by how its handler ended, its job's options and the worker's rules."""

from __future__ import annotations

import asyncio
import inspect
import random
from typing import Any, Final

from msgspec.structs import replace

from ..errors import AttemptTimeout, HandlerError, InvalidOption, Postponed
from ..job.backoff import Backoff, custom_delay
from ..job.codec import LARGEST_SIZE_LIMIT, encode
from ..job.failure import Failure, failure_of
from ..job.instants import Milliseconds
from ..job.marks import STEP, WAIT, Marking, scoped
from ..job.options import StoredOptions
from ..job.outcomes import Classify, Outcome, attempts_remain, may_retry, verdict_of
from ..job.phases import failed
from ..job.retention import NOT_AT_ALL
from .completing import committed
from .failures import PayloadRefused
from .job import REVOKED, Job
from .options import Rules
from .raised import failed_steps, late_signals, meaning_of
from .service import log

_UNREADABLE: Final = StoredOptions()
BROKEN_BACKOFF: Final = Backoff.exponential(1, max_delay=60)
"""Used when a custom backoff raises: a retry without any delay would use up all attempts at once."""


class OutcomeRules:
    """Decides which outcome an attempt has. It calls no handler, so jobs that are claimed by hand use it too."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def returned(self, job: Job, result: Any) -> Outcome | None:
        """The outcome of an attempt whose handler returned; raises if it failed all the same."""
        if job.completion is not None and (outcome := committed(job)) is not None:
            return self._committed_before(job, outcome, result)
        if job.interruption is not None:
            if job.interruption == "timeout":
                raise self.overtime(job)
            if job.interruption in REVOKED:
                return None
        try:
            return self.completed(job, result)
        except Exception:
            # Any object may raise when it is encoded; its effects have happened.
            job.discarded = True
            raise

    def completed(self, job: Job, result: Any) -> Outcome:
        """The completion with this result; raises if that is refused, or the handler must not return yet."""
        job.refuse_end()
        text = None if result is None else encode(result, "result", job.queue.size_limit)
        return Outcome(job.id, job.token, "complete", text, keep=job.keep, marking=job.marking)

    async def raised(self, job: Job, error: BaseException) -> Outcome | None:
        """The outcome of an attempt that raised; None if there is nothing to settle."""
        if (outcome := committed(job)) is not None:
            return self._committed_before(job, outcome, None, error)
        return await self.of_error(job, error)

    async def of_error(self, job: Job, error: BaseException) -> Outcome | None:
        """As `raised`, of a job that no transaction has completed."""
        options = job.options or _UNREADABLE
        error = meaning_of(error)
        match job.interruption, error:
            case "cancelled" | "removed", _:
                return None
            case "shutdown" | "lost", _:
                # A lock that seemed lost may still hold: then the job waits again, and has used no attempt.
                return Outcome(job.id, job.token, "hand back", marking=job.run.unstored())
            case "timeout", asyncio.CancelledError():
                error = self.overtime(job)
            case _, Postponed():
                children, mark = error.awaits_children, error.awaits
                return Outcome(
                    job.id,
                    job.token,
                    "postpone",
                    delay=error.delay,
                    awaits_children=children,
                    awaits=mark,
                    marking=job.marking,
                )
        job.error = error
        exhausted = not attempts_remain(options, job.record.attempts_made)
        delay: Milliseconds | None = None
        if not exhausted and not job.discarded and self.may_retry(job, error):
            delay = await self._delay(job, options, error)
        failure = failure_of(error)
        if delay is None:
            outcome = self._final(job, failure, options, exhausted)
            removed = isinstance(error, PayloadRefused) and self._rules.on_invalid == "remove"
            return replace(outcome, keep=NOT_AT_ALL) if removed else outcome
        return self._retry(job, failure, options, delay)

    def broken_off(self, job: Job, error: BaseException) -> Outcome:
        """The outcome of an attempt whose slot failed, which should not be possible."""
        job.error = error
        options = job.options or _UNREADABLE
        failure = Failure(f"WorkerCrashed: {type(error).__qualname__} broke off the attempt")
        exhausted = not attempts_remain(options, job.record.attempts_made)
        if exhausted or job.discarded:
            return self._final(job, failure, options, exhausted)
        return self._retry(job, failure, options, BROKEN_BACKOFF.after(job.attempt, 0))

    def may_retry(self, job: Job, error: BaseException) -> bool:
        """True if the error allows another attempt, whether or not attempts remain."""
        return may_retry(error, job, *map(_guarded, filter(None, (self._rules.classify, job.queue.classify))))

    def overtime(self, job: Job) -> AttemptTimeout:
        """The error of an attempt that exceeded its timeout, or that of its phase."""
        if isinstance(job.error, AttemptTimeout):
            return job.error
        timeout = job.options.timeout if job.options else None
        return AttemptTimeout((timeout or 0) / 1000)

    def _committed_before(
        self, job: Job, outcome: Outcome, returned: Any, error: BaseException | None = None
    ) -> Outcome:
        """The committed outcome: what its handler did after the commit changes nothing."""
        if error is not None and job.interruption is None:
            log.error("%r was completed by its transaction, and its handler raised after that", job, exc_info=error)
        elif returned is not None and outcome.result != _text(returned):
            log.warning("%r was completed by its transaction: what its handler returned is not stored", job)
        return outcome

    def _retry(self, job: Job, failure: Failure, options: StoredOptions, delay: Milliseconds) -> Outcome:
        return Outcome(
            job.id,
            job.token,
            "retry",
            failure=failure,
            delay=delay,
            stack_traces=options.stack_traces,
            marking=_failed_phase(job, failure),
        )

    def _final(self, job: Job, failure: Failure, options: StoredOptions, exhausted: bool) -> Outcome:
        marking = _failed_phase(job, failure)
        if job.error is not None and (undone := _undone(job, job.error)):
            marking = Marking(forgets=undone) if marking is None else marking.then(Marking(forgets=undone))
        return Outcome(
            job.id,
            job.token,
            "fail",
            failure=failure,
            keep=options.keep_failed or self._rules.keep_failed,
            exhausted=exhausted,
            stack_traces=options.stack_traces,
            marking=marking,
        )

    async def _delay(self, job: Job, options: StoredOptions, error: BaseException) -> Milliseconds | None:
        """The delay before the next attempt; None if there is no next one."""
        backoff = options.backoff
        if backoff is None:
            return 0
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        if backoff.kind != "custom":
            return backoff.after(job.attempt, luck)
        try:
            return await self._custom_delay(job, backoff.name, error)
        except BaseException as broken:  # noqa: BLE001 - the user's function may raise anything
            log.error("backoff %r raised for %r: it is retried all the same", backoff.name, job, exc_info=broken)
            return BROKEN_BACKOFF.after(job.attempt, luck)

    async def _custom_delay(self, job: Job, name: str, error: BaseException) -> Milliseconds | None:
        function = self._rules.backoffs.get(name)
        if function is None:
            raise InvalidOption("backoffs", f"of this worker has no function named {name!r}")
        answer = function(job.attempt, error, job)
        return custom_delay(await answer if inspect.isawaitable(answer) else answer)


def started_too_often(job: Job) -> HandlerError | None:
    """The error of a job that exceeded its `max_starts`, if it did: it fails for good, whatever attempts remain."""
    limit = job.options.max_starts if job.options else None
    if limit is None or job.record.attempts_started <= limit:
        return None
    job.discarded = True
    return HandlerError(f"job started more than allowable limit: max_starts is {limit}; retry(reset=True) starts over")


def _undone(job: Job, error: BaseException) -> tuple[str, ...]:
    """The marks of waits and steps that the error is about: they begin again if the job is retried by hand."""
    waits = [scoped(WAIT, job.run.phase, name) for name in late_signals(error, job.id)]
    return (*waits, *(scoped(STEP, job.run.phase, name) for name in failed_steps(error, job.id)))


def _failed_phase(job: Job, failure: Failure) -> Marking | None:
    phase = job.run.phase
    if phase is None:
        return None
    unstored, ending = job.run.unstored(), failed(phase, failure.reason)
    return ending if unstored is None else unstored.then(ending)


def _guarded(classify: Classify) -> Classify:
    def ask(error: BaseException, job: Any) -> bool | None:
        try:
            return verdict_of(classify, error, job)
        except BaseException as broken:  # noqa: BLE001 - the user's function may raise anything
            log.error("classify raised for %r: it is ignored", job, exc_info=broken)
            return None

    return ask


def _text(returned: Any) -> str | None:
    try:
        return encode(returned, "result", LARGEST_SIZE_LIMIT)
    except Exception:  # noqa: BLE001 - any object may raise when it is encoded
        return None
