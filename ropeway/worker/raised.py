"""What the errors that leave a handler, in groups and in chains, mean for its job."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Postponed, SignalTimeout, StepFailed
from ..job.instants import LAST_INSTANT
from .failures import HandlerFailed


def meaning_of(error: BaseException) -> BaseException:
    """The error itself, or what counts in a group that has `Postponed` in it, as one of `asyncio.TaskGroup`.

    Other errors in the group count; without them, the job is postponed.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = list(_leaves_of(error))
    postponed = [each for each in leaves if isinstance(each, Postponed)]
    if not postponed:
        return error
    others = error.split(Postponed)[1] if len(postponed) < len(leaves) else None
    return soonest(postponed) if others is None else others


def late_signals(error: BaseException, job_id: str) -> tuple[str, ...]:
    """The signals for which the job waited in vain: of a `SignalTimeout`, or of one that an error was raised from."""
    found: dict[str, None] = {}
    for each in _all_of(error):
        if isinstance(each, HandlerFailed):
            found |= dict.fromkeys(each.late_signals)
        elif isinstance(each, SignalTimeout) and each.job_id == job_id:
            found[each.name] = None
    return tuple(found)


def failed_steps(error: BaseException, job_id: str) -> tuple[str, ...]:
    """The steps of the job whose failure is the error, or what that was raised from.

    Not those that were caught before: what the handler did instead is part of what it has done.
    """
    found: dict[str, None] = {}
    for each in _all_of(error, with_contexts=False):
        if isinstance(each, HandlerFailed):
            found |= dict.fromkeys(each.failed_steps)
        elif isinstance(each, StepFailed) and each.job_id == job_id:
            found[each.step] = None
    return tuple(found)


def soonest(found: list[Postponed]) -> Postponed:
    """One for all: the handler begins again when the first of them may go on, and meets the others then."""
    timed = [each for each in found if not each.awaits_children and each.delay < LAST_INSTANT]
    # Children end in any case; a signal may be one that the handler asks for only after them.
    children = [each for each in found if each.awaits_children]
    if not timed:
        return (children or found)[0]
    awaits = next((each.awaits for each in found if each.awaits is not None), None)
    return Postponed(min(each.delay for each in timed), awaits=awaits)


def _leaves_of(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves_of(each)
        else:
            yield each


def _all_of(error: BaseException, *, with_contexts: bool = True) -> Iterator[BaseException]:
    """An error, those that it was raised from, and those in it if it is a group; each once.

    With contexts: also those that were being handled when it was raised.
    """
    seen: set[int] = set()
    going: list[BaseException | None] = [error]
    while going:
        each = going.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        going.append(each.__cause__)
        if with_contexts and not each.__suppress_context__:
            going.append(each.__context__)
        if isinstance(each, BaseExceptionGroup):
            going += each.exceptions
