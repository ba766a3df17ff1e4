"""Outcomes of attempts, and the rules of retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from ..errors import InvalidOption, InvalidPayload, NoHandler, SignalTimeout, StepChanged, Unrecoverable
from ..showing import shown
from .codec import JsonText
from .failure import Failure
from .instants import Milliseconds
from .marks import Marking
from .names import JobId
from .numbers import Amount
from .options import StoredOptions
from .record import NewJob
from .retention import KEEP_COMPLETED, Retention

SettlingMove: TypeAlias = Literal["complete", "retry", "fail", "postpone", "hand back"]
Verdict: TypeAlias = Literal["retry", "fatal"]
Classify: TypeAlias = Callable[[BaseException, Any], Verdict | bool | None]
"""Takes an error and the job; returns "retry" or True, "fatal" or False, or None for the default."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How one attempt ended. The token proves that the caller holds the job."""

    id: JobId
    token: str
    move: SettlingMove
    result: JsonText | None = None
    """The result of a completion; None stands for JSON's null and takes no space."""
    failure: Failure | None = None
    delay: Milliseconds = 0
    """The delay of a retry or a postponement; with 0 the job waits at once."""
    keep: Retention = KEEP_COMPLETED
    """The retention after a completion or a final failure."""
    exhausted: bool = False
    """True if it failed because no attempts remain."""
    stack_traces: Amount = 10
    adds: tuple[NewJob, ...] = ()
    """Jobs added in the same step, if the outcome is accepted; a job whose id exists is left unchanged."""
    awaits_children: bool = False
    """For `postpone`: waits for the children that have not ended, instead of a delay."""
    marking: Marking | None = None
    """Marks written in the same step, if the outcome is accepted."""
    awaits: str | None = None
    """For `postpone`: the delay ends when there is a mark of this name, and there is none if it is there already."""


def may_retry(error: BaseException, job: Any, *classify: Classify | None) -> bool:
    """True if the error itself allows another attempt, whether or not attempts remain.

    The first function that does not return None decides.
    """
    if isinstance(error, Unrecoverable | InvalidPayload | NoHandler | StepChanged):
        return False
    for decide in filter(None, classify):
        answer = verdict_of(decide, error, job)
        if answer is not None:
            return answer
    # The wait is over in every later attempt: all of them would be used up at once.
    return not isinstance(error, SignalTimeout)


def verdict_of(classify: Classify, error: BaseException, job: Any) -> bool | None:
    """The result of a user's `classify` function: True to retry, False not to, None for no decision."""
    answer = classify(error, job)
    match answer:
        case None:
            return None
        case True | "retry":
            return True
        case False | "fatal":
            return False
    raise InvalidOption("classify", f'answered {shown(answer)}; answer "retry", "fatal" or None')


def attempts_remain(options: StoredOptions, attempts_made: int) -> bool:
    """True if another attempt remains after one more failed attempt."""
    return attempts_made + 1 < options.attempts
