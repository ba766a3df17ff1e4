"""Packs outcomes for the script of `settle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...job.failure import UNKNOWN_REASON, Failure
from ...job.instants import LAST_INSTANT, Instant
from ...job.marks import Marking
from ...job.outcomes import Outcome
from ...job.retention import Retention
from ...store.commands import Claim
from ...store.values import Answer
from .encoding import as_json, given, pack, request_of
from .ids import all_shortened
from .updating import different, marking_of, notices_of, only_announces

_NO_FAILURE: Final = Failure(UNKNOWN_REASON)


def settlement(outcomes: Sequence[Outcome], then: Claim | None, now: Instant | None) -> tuple[bytes, Sequence[Outcome]]:
    """The argument of the script, and the outcomes in the order of its answers, completions first."""
    completed: list[Outcome] = []
    # An id that occurs twice is judged in the order of the outcomes.
    if len({outcome.id for outcome in outcomes}) == len(outcomes):
        completed = [outcome for outcome in outcomes if outcome.move == "complete"]
    others = [outcome for outcome in outcomes if outcome.move != "complete"] if completed else outcomes
    ordered = [*completed, *others] if completed else outcomes
    keeps: dict[Retention, int] = {}
    completions = [_completion(outcome, keeps) for outcome in completed]
    marked = [(number, each.marking) for number, each in enumerate(ordered, 1) if each.marking is not None]
    announced: list[tuple[int, Marking]] = []
    if marked:
        announced, marked = _split(marked, len(completed))
    is_plain = len(keeps) == 1 and all(len(completion) == 1 for completion in completions)
    packed = pack(
        (
            given(now),
            all_shortened([outcome.id for outcome in ordered]),
            [outcome.token for outcome in ordered],
            1 if is_plain else completions,
            [_other(outcome, keeps) for outcome in others],
            request_of(then) if then else False,
            [_keep(keep) for keep in keeps],
            *((_markings(marked), _notices(announced)) if marked or announced else ()),
        )
    )
    return packed, ordered


def _split(
    marked: Sequence[tuple[int, Marking]], completed: int
) -> tuple[list[tuple[int, Marking]], list[tuple[int, Marking]]]:
    """Markings of completions that only announce something, and the others. The first `completed` ones complete."""
    announced: list[tuple[int, Marking]] = []
    others: list[tuple[int, Marking]] = []
    for number, marking in marked:
        (announced if number <= completed and only_announces(marking) else others).append((number, marking))
    return announced, others


def _markings(marked: Sequence[tuple[int, Marking]]) -> tuple[Any, ...] | bool:
    if not marked:
        return False
    markings, which = different([marking for _, marking in marked])
    packed = [(*marking_of(marking), notices_of(marking.notices)) for marking in markings]
    return [number for number, _ in marked], packed, which


def _notices(announced: Sequence[tuple[int, Marking]]) -> list[tuple[list[int], list[str]]]:
    lists, which = different([marking.notices for _, marking in announced])
    numbers: list[list[int]] = [[] for _ in lists]
    for (number, _), place in zip(announced, which, strict=True):
        numbers[place - 1].append(number)
    return [(own, notices_of(notices)) for own, notices in zip(numbers, lists, strict=True)]


def in_order(outcomes: Sequence[Outcome], ordered: Sequence[Outcome], answers: list[Answer]) -> list[Answer]:
    """Puts answers into the order in which the outcomes were given."""
    if ordered == outcomes:
        return answers
    by_id = {outcome.id: answer for outcome, answer in zip(ordered, answers, strict=True)}
    return [by_id[outcome.id] for outcome in outcomes]


def _keep(keep: Retention) -> tuple[int | bool, int | bool]:
    return False if keep.age is None else keep.age, False if keep.count is None else keep.count


def _completion(outcome: Outcome, keeps: dict[Retention, int]) -> tuple[Any, ...]:
    keep = keeps.setdefault(outcome.keep, len(keeps) + 1)
    return (keep,) if outcome.result is None else (keep, outcome.result)


def _other(outcome: Outcome, keeps: dict[Retention, int]) -> tuple[Any, ...]:
    match outcome.move:
        case "complete":
            return "complete", *_completion(outcome, keeps)
        case "fail":
            keep = keeps.setdefault(outcome.keep, len(keeps) + 1)
            return "fail", keep, *_failure(outcome), outcome.exhausted
        case "retry":
            return "retry", min(outcome.delay, LAST_INSTANT), *_failure(outcome)
        case move:
            awaited = (outcome.awaits,) if outcome.awaits is not None else ()
            return move, min(outcome.delay, LAST_INSTANT), outcome.awaits_children, *awaited


def _failure(outcome: Outcome) -> tuple[str, str, str, int]:
    failure = outcome.failure or _NO_FAILURE
    return failure.reason, as_json(failure.reason).decode(), failure.trace, outcome.stack_traces
