"""update: updates as parameters of `sql/update_held.sql` and `sql/update.sql`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...store.values import JobUpdate
from .adding import children_given
from .encoding import as_json
from .marking import Announced, Entries, MarksTexts, marks_text
from .parameters import NULL, Parameter, booleans, numbers, text, texts

_NOTICES: Final = 2
"""The rank of an update's first notice, behind its progress and its new data."""
_NEXT: Final = 1_000_000
"""More than there are ranks of one update: by so much those of another update of the same job are higher."""


class Updates:
    """Updates of one call, as a function takes them.

    Progress and marks of running jobs, which handlers write often, are executed by one statement, sorted by id, so that
    all calls lock jobs in one order. If there is anything else among them, all are executed one by one.
    """

    def __init__(self, updates: Sequence[JobUpdate]) -> None:
        self._updates = updates
        self._order: Sequence[int] | None = None
        if all(map(_is_frequent, updates)) and len({update.id for update in updates}) == len(updates):
            self.function = "update_held"
            if len(updates) > 1:
                self._order = sorted(range(len(updates)), key=lambda position: updates[position].id)
                updates = [updates[position] for position in self._order]
        else:
            self.function = "update"
        self.parameters = self._held(updates) if self.function == "update_held" else self._any(updates)

    def in_order(self, letters: str) -> str:
        """The letters that the function returned, in the order in which the updates were given."""
        if self._order is None:
            return letters
        found = [""] * len(self._order)
        for place, position in enumerate(self._order):
            found[position] = letters[2 * place : 2 * place + 2]
        return "".join(found)

    def _held(self, updates: Sequence[JobUpdate]) -> tuple[Parameter, ...]:
        encoded = MarksTexts()
        marks = [encoded.of(update.marking) for update in updates]
        progresses = [update.progress for update in updates]
        return (
            texts([update.id for update in updates]),
            texts([update.token for update in updates]),
            texts(progresses) if any(progresses) else NULL,
            texts(marks) if any(marks) else NULL,
            *_announced(updates).parameters(),
        )

    def _any(self, updates: Sequence[JobUpdate]) -> tuple[Parameter, ...]:
        return (
            texts([update.id for update in updates]),
            texts([update.token for update in updates]),
            texts([update.progress for update in updates]),
            texts([update.data for update in updates]),
            texts([as_json(update.log).decode() if update.log else None for update in updates]),
            numbers([update.keep_logs for update in updates]),
            booleans([update.alone for update in updates]),
            booleans([update.clears_stalls for update in updates]),
            text(children_given(updates)),
            texts([marks_text(update.marking) for update in updates]),
            *_announced(updates).parameters(),
        )


def _is_frequent(update: JobUpdate) -> bool:
    return (
        update.token is not None
        and update.data is None
        and not update.log
        and update.alone is None
        and not update.clears_stalls
        and not update.children
    )


def _announced(updates: Sequence[JobUpdate]) -> Announced:
    # What is shared by many is looked at once. Notices are compared by identity: `updates` keeps them alive.
    alike: dict[tuple[int, str | None, bool, int], list[int]] = {}
    times: Counter[str] = Counter()
    is_unique = len({update.id for update in updates}) == len(updates)
    for position, update in enumerate(updates, 1):
        time = 0
        if not is_unique:
            time = times[update.id]
            times[update.id] += 1
        notices = update.marking.notices if update.marking is not None else ()
        key = time, update.progress, update.data is not None, id(notices) if notices else 0
        alike.setdefault(key, []).append(position)
    entries = Entries()
    for (time, progress, has_data, _), positions in alike.items():
        rank = time * _NEXT
        if progress is not None:
            entries.add(rank, "progress", f'{{"progress":{progress}}}', positions)
        if has_data:
            entries.add(rank + 1, "changed", '{"data":true}', positions)
        if (marking := updates[positions[0] - 1].marking) is not None:
            for n, notice in enumerate(marking.notices, rank + _NOTICES):
                entries.add(n, notice.what, notice.detail, positions)
    return entries.announced([update.id for update in updates])
