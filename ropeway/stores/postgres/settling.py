"""settle: how attempts ended, as the function takes them and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...job.failure import Failure
from ...job.instants import LAST_INSTANT
from ...job.outcomes import Outcome
from ...job.retention import Retention
from ...store.answer_codes import answers_of
from ...store.values import Answer
from .encoding import HELD
from .parameters import NULL, Parameter, number, numbers, texts, truths

_NO_FAILURE: Final = Failure("unknown")
_NOBODY: Final = (NULL,) * 11


class Settlement:
    """Outcomes in the order in which they are settled.

    Completions that are kept alike are one statement in the server; each of the others takes its own. Both go by id, so
    that calls wait for each other's locks in one order. An id that occurs twice keeps the order of its outcomes.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._number = len(outcomes)
        times = Counter(outcome.id for outcome in outcomes) if len(outcomes) > 1 else {}
        keep: Retention | None = None
        done: list[tuple[str, int]] = []
        others: list[tuple[str, int]] = []
        for place, outcome in enumerate(outcomes):
            is_plain = outcome.move == "complete" and times.get(outcome.id, 1) == 1
            if is_plain and keep is None:
                keep = outcome.keep
            if is_plain and outcome.keep == keep:
                done.append((outcome.id, place))
            else:
                others.append((outcome.id, place))
        done.sort()
        others.sort()
        self._done = [place for _, place in done]
        self._others = [place for _, place in others]
        self.parameters = (*_done(outcomes, self._done, keep), *_others(outcomes, self._others))

    def answers(self, done: str | None, others: str | None) -> list[Answer]:
        if done is None and not self._others:
            return [HELD] * self._number
        answers: list[Answer] = [HELD] * self._number
        for places, letters in ((self._done, done), (self._others, others)):
            if letters is not None:
                for place, answer in zip(places, answers_of(letters), strict=True):
                    answers[place] = answer
        return answers


def _done(outcomes: Sequence[Outcome], places: Sequence[int], keep: Retention | None) -> tuple[Parameter, ...]:
    if keep is None:
        return NULL, NULL, NULL, NULL, NULL
    done = [outcomes[place] for place in places]
    has_results = any(outcome.result is not None for outcome in done)
    return (
        texts([outcome.id for outcome in done]),
        texts([outcome.token for outcome in done]),
        texts([outcome.result for outcome in done]) if has_results else NULL,
        number(keep.age),
        number(keep.count),
    )


def _others(outcomes: Sequence[Outcome], places: Sequence[int]) -> tuple[Parameter, ...]:
    if not places:
        return _NOBODY
    others = [outcomes[place] for place in places]
    failures = [outcome.failure or _NO_FAILURE for outcome in others]
    return (
        texts([outcome.id for outcome in others]),
        texts([outcome.token for outcome in others]),
        texts([outcome.move for outcome in others]),
        texts([outcome.result for outcome in others]),
        texts([failure.reason for failure in failures]),
        texts([failure.trace for failure in failures]),
        numbers([min(outcome.delay, LAST_INSTANT) for outcome in others]),
        numbers([outcome.keep.age for outcome in others]),
        numbers([outcome.keep.count for outcome in others]),
        truths([outcome.exhausted for outcome in others]),
        numbers([outcome.stack_traces for outcome in others]),
    )
