"""settle: how attempts ended, as the script takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...job.failure import UNKNOWN_REASON, Failure
from ...job.instants import LAST_INSTANT, Instant
from ...job.outcomes import Outcome
from ...job.retention import Retention
from ...store.values import ClaimRequest
from .encoding import as_json, given, pack, request_of

_NO_FAILURE: Final = Failure(UNKNOWN_REASON)


def settlement(queue: str, outcomes: Sequence[Outcome], then: ClaimRequest | None, now: Instant | None) -> bytes:
    keeps: dict[Retention, int] = {}
    packed = [_outcome(outcome, keeps) for outcome in outcomes]
    request = request_of(then) if then else False
    return pack((given(now), queue, packed, request, [_keep(keep) for keep in keeps]))


def _keep(keep: Retention) -> tuple[int | bool, int | bool]:
    return False if keep.age is None else keep.age, False if keep.count is None else keep.count


def _outcome(outcome: Outcome, keeps: dict[Retention, int]) -> tuple[Any, ...]:
    match outcome.move:
        case "complete":
            keep = keeps.setdefault(outcome.keep, len(keeps) + 1)
            if outcome.result is None:
                return outcome.id, outcome.token, "complete", keep
            return outcome.id, outcome.token, "complete", keep, outcome.result
        case "fail":
            keep = keeps.setdefault(outcome.keep, len(keeps) + 1)
            return outcome.id, outcome.token, "fail", keep, *_failure(outcome), outcome.exhausted
        case "retry":
            return outcome.id, outcome.token, "retry", min(outcome.delay, LAST_INSTANT), *_failure(outcome)
        case move:
            return outcome.id, outcome.token, move, min(outcome.delay, LAST_INSTANT)


def _failure(outcome: Outcome) -> tuple[str, str, str, int]:
    failure = outcome.failure or _NO_FAILURE
    return failure.reason, as_json(failure.reason).decode(), failure.trace, outcome.stack_traces
