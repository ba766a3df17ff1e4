"""settle: outcomes as parameters of `sql/settle.sql`, and its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...job.failure import UNKNOWN_REASON, Failure
from ...job.instants import LAST_INSTANT
from ...job.outcomes import Outcome
from ...job.retention import Retention
from ...store.answer_codes import answers_of
from ...store.values import HELD, Answer
from .encoding import as_json, extras_text
from .marking import Announced, Entries, MarksTexts
from .parameters import NULL, Parameter, booleans, number, numbers, text, texts

_NO_FAILURE: Final = Failure(UNKNOWN_REASON)
_NO_OTHERS: Final = (NULL,) * 11
_NO_MARKS: Final = (NULL,) * 8


class Settlement:
    """Outcomes in two groups: plain completions, and all others.

    Completions with the same retention are executed by one statement, sorted by id, so that all calls lock jobs in one
    order. The others are locked in the order of ids, too, and then settled one by one, in the order given.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = outcomes
        times = Counter(outcome.id for outcome in outcomes) if len(outcomes) > 1 else {}
        keep: Retention | None = None
        done: list[tuple[str, int]] = []
        others: list[int] = []
        for position, outcome in enumerate(outcomes):
            is_plain = outcome.move == "complete" and times.get(outcome.id, 1) == 1
            if is_plain and keep is None:
                keep = outcome.keep
            if is_plain and outcome.keep == keep:
                done.append((outcome.id, position))
            else:
                others.append(position)
        done.sort()
        self._done = [position for _, position in done]
        self._others = others
        in_order = [outcomes[position] for position in (*self._done, *self._others)]
        adds = jobs_added(in_order)
        self.parameters = (
            *_done(outcomes, self._done, keep),
            *_others(outcomes, self._others),
            text(adds),
        )
        self.marks = _marks(in_order, len(self._done))
        """What `settle` takes behind the request."""
        self.queues: Final = {job.queue for outcome in outcomes for job in outcome.adds} if adds else set[str]()
        """The queues of the jobs that are added."""

    def answers(self, done: str | None, others: str | None) -> list[Answer]:
        if done is None and not self._others:
            return [HELD] * len(self._outcomes)
        answers: list[Answer] = [HELD] * len(self._outcomes)
        for positions, letters in ((self._done, done), (self._others, others)):
            if letters is not None:
                for position, answer in zip(positions, answers_of(letters), strict=True):
                    answers[position] = answer
        return answers


def _done(outcomes: Sequence[Outcome], positions: Sequence[int], keep: Retention | None) -> tuple[Parameter, ...]:
    if keep is None:
        return NULL, NULL, NULL, NULL, NULL
    done = [outcomes[position] for position in positions]
    has_results = any(outcome.result is not None for outcome in done)
    return (
        texts([outcome.id for outcome in done]),
        texts([outcome.token for outcome in done]),
        texts([outcome.result for outcome in done]) if has_results else NULL,
        number(keep.age),
        number(keep.count),
    )


def _others(outcomes: Sequence[Outcome], positions: Sequence[int]) -> tuple[Parameter, ...]:
    if not positions:
        return _NO_OTHERS
    others = [outcomes[position] for position in positions]
    failures = [outcome.failure or _NO_FAILURE for outcome in others]
    return (
        texts([outcome.id for outcome in others]),
        texts([outcome.token for outcome in others]),
        texts([outcome.move for outcome in others]),
        texts([outcome.result for outcome in others]),
        texts([failure.reason for failure in failures]),
        texts([failure.trace for failure in failures]),
        numbers([_delay(outcome) for outcome in others]),
        numbers([outcome.keep.age for outcome in others]),
        numbers([outcome.keep.count for outcome in others]),
        booleans([outcome.exhausted for outcome in others]),
        numbers([outcome.stack_traces for outcome in others]),
    )


def _delay(outcome: Outcome) -> int:
    """As `sql/lib/settle_one.sql` takes it."""
    delay = min(outcome.delay, LAST_INSTANT)
    return -1 - delay if outcome.awaits_children and outcome.move == "postpone" else delay


def _marks(outcomes: Sequence[Outcome], plain: int) -> tuple[Parameter, ...]:
    """Of outcomes of which the first ones are plain completions."""
    if not any(outcome.marking is not None or outcome.awaits is not None for outcome in outcomes):
        return _NO_MARKS
    marked: list[Outcome] = []
    seen: set[tuple[str, str]] = set()
    for outcome in outcomes:
        # Of several outcomes of one lock, the first one is accepted.
        if outcome.marking is not None and (outcome.id, outcome.token) not in seen:
            marked.append(outcome)
        seen.add((outcome.id, outcome.token))
    awaits = [outcome.awaits if outcome.move == "postpone" else None for outcome in outcomes[plain:]]
    return (*_marks_written(marked), texts(awaits) if any(awaits) else NULL)


def _marks_written(outcomes: Sequence[Outcome]) -> tuple[Parameter, ...]:
    """The marks of outcomes that have some (null if they only announce something), and what they announce."""
    if not outcomes:
        return _NO_MARKS[:-1]
    encoded = MarksTexts()
    marks = [encoded.of(outcome.marking) for outcome in outcomes]
    return (
        texts([outcome.id for outcome in outcomes]),
        texts([outcome.token for outcome in outcomes]),
        texts(marks) if any(marks) else NULL,
        *_announced(outcomes).parameters(),
    )


def _announced(outcomes: Sequence[Outcome]) -> Announced:
    # What is shared by many is looked at once, by identity: `outcomes` keeps it alive.
    alike: dict[int, list[int]] = {}
    for position, outcome in enumerate(outcomes, 1):
        alike.setdefault(id(outcome.marking), []).append(position)
    entries = Entries()
    for positions in alike.values():
        marking = outcomes[positions[0] - 1].marking
        for rank, notice in enumerate(marking.notices if marking else ()):
            entries.add(rank, notice.what, notice.detail, positions)
    return entries.announced([outcome.id for outcome in outcomes])


def jobs_added(outcomes: Sequence[Outcome]) -> str | None:
    """The jobs that outcomes add, as `sql/lib/add_of_outcomes.sql` takes them; None if there are none."""
    if not any(outcome.adds for outcome in outcomes):
        return None
    jobs = [
        {
            "outcome": position,
            "queue": job.queue,
            "id": job.id,
            "name": job.name,
            "data": job.data,
            "options": job.options,
            "priority": job.priority,
            "lifo": job.lifo,
            "delay": job.delay,
            "due_at": job.due_at,
            "tags": as_json(job.tags).decode() if job.tags else None,
            "extras": extras_text(job.extras),
            "key": rule and rule.key,
            "mode": rule and rule.mode,
            "ttl": rule and rule.ttl,
        }
        for position, outcome in enumerate(outcomes)
        for job in outcome.adds
        for rule in [job.extras and job.extras.dedupe]
    ]
    return as_json(jobs).decode()
