"""How an attempt ends: from a handler's result or error to the move that settles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from ..errors import InvalidOption, InvalidPayload, NoHandler, Unrecoverable
from ..showing import shown
from .codec import JsonText
from .failure import Failure
from .instants import Milliseconds
from .options import StoredOptions
from .record import NewJob
from .retention import KEEP_COMPLETED, Retention

SettlingMove: TypeAlias = Literal["complete", "retry", "fail", "postpone", "hand back"]
Verdict: TypeAlias = Literal["retry", "fatal"]
Classify: TypeAlias = Callable[[BaseException, Any], Verdict | bool | None]
"""Takes an error and the job. "retry" or True, "fatal" or False; None leaves it to the default."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How one attempt ended. The token proves whose attempt it was."""

    id: str
    token: str
    move: SettlingMove
    result: JsonText | None = None
    """Of a completion; None stands for JSON's null and takes no space."""
    failure: Failure | None = None
    delay: Milliseconds = 0
    """Of a retry or a postponement; 0 goes straight back to waiting."""
    keep: Retention = KEEP_COMPLETED
    """Of a completion or a final failure."""
    exhausted: bool = False
    """It failed because no attempts remain."""
    stack_traces: int = 10
    adds: tuple[NewJob, ...] = ()
    """Jobs that are added in the same step, if the outcome is accepted; an id that exists is left as it is."""


def may_retry(error: BaseException, job: Any, *classify: Classify | None) -> bool:
    """Whether the error itself allows another attempt; whether attempts remain is another question.

    The first function that has an answer decides.
    """
    if isinstance(error, Unrecoverable | InvalidPayload | NoHandler):
        return False
    for decide in filter(None, classify):
        answer = verdict_of(decide, error, job)
        if answer is not None:
            return answer
    return True


def verdict_of(classify: Classify, error: BaseException, job: Any) -> bool | None:
    """What a function of the user's says to another attempt; None: nothing."""
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
    """Whether one more failed attempt would leave another try."""
    return attempts_made + 1 < options.attempts
