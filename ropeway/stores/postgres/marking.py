"""Marks that updates and outcomes write, as `sql/lib/write_marks.sql` takes them."""

from __future__ import annotations

from collections.abc import Sequence

from ...job.marks import Marking
from .encoding import as_json


def marks_written(
    markings: Sequence[Marking | None], awaits: Sequence[tuple[int, str]] = ()
) -> tuple[str | None, list[str | None] | None]:
    """JSON, and the values of the marks, which may be long; None if there is nothing to write.

    `awaits` are positions, from 1 on, and names of marks, as `sql/lib/mark_outcomes.sql` takes them.
    """
    given = [(position, marking) for position, marking in enumerate(markings, 1) if marking is not None]
    if not given and not awaits:
        return None, None
    of: list[int] = []
    names: list[str] = []
    values: list[str | None] = []
    for position, marking in given:
        of += [position] * (len(marking.forgets) + len(marking.marks))
        names += (*marking.forgets, *(mark.name for mark in marking.marks))
        values += (*(None for _ in marking.forgets), *(mark.value for mark in marking.marks))
    whole: dict[str, object] = {"of": of, "names": names}
    notices = [(position, notice.what, notice.detail) for position, marking in given for notice in marking.notices]
    if notices:
        whole["notices"] = notices
    if awaits:
        whole["awaits"] = awaits
    return as_json(whole).decode(), values
