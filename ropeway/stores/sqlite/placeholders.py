"""Values of the placeholders in `sql`: constants of the domain, and lists of columns that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, get_args

from ...job.flows import CHILD_STATES, DEFAULT_POLICY
from ...job.instants import LAST_INSTANT
from ...job.record import JobRecord
from ...job.rules import MetricName
from ...job.states import STATES
from ...store.values import StoredSchedule

METRICS: Final[tuple[str, ...]] = get_args(MetricName)
STATE_COLUMNS: Final = tuple(state.replace("-", "_") for state in STATES)
"""Counters of a queue, in the order of the states."""

CARRIED: Final = (
    "attempts_made", "attempts_started", "stalled_count", "logged",
    "token", "worker", "started_at", "renewed_at", "reason", "progress",
)  # fmt: skip
"""Columns that a move copies from one of the tables of states to another, except for those that it changes."""

HAS_TAGS: Final = 1
HAS_PARENTS: Final = 2
HAS_CHILDREN: Final = 4
HAS_EXTRAS: Final = 8
HAS_KEY: Final = 16
HAS_DEADLINE: Final = 32
HAS_DEAD_LETTER: Final = 64
HAS_SCHEDULE: Final = 128
HAS_MARKS: Final = 256
HAS_WEBHOOK: Final = 512
"""Bits of `has`. `HAS_KEY` to `HAS_SCHEDULE`, and `HAS_WEBHOOK`, say which of the extras the store acts on."""

FAMILY: Final = (
    "id", "numbered", "awaited", *CHILD_STATES,
    "delay", "due_at", "is_released", "owed", "owed_reason",
)  # fmt: skip
"""Columns of a family that change, behind its id."""

RARE: Final = {
    "tags": """iif({job}.has & {has_tags}, json((
    SELECT json_group_array(tag) FROM (SELECT tag FROM tag WHERE seq = {job}.seq ORDER BY number)
)), json('[]'))""",
    "parents": "json(coalesce({job}.parents, '[]'))",
    "children": "coalesce((SELECT size FROM family WHERE id = {job}.family), 0)",
    "extras": "json({job}.extras)",
    "marks": """iif({job}.has & {has_marks}, json((
    SELECT json_group_array(json_array(name, value, at))
    FROM (SELECT name, value, at FROM mark WHERE seq = {job}.seq ORDER BY name)
)), json('[]'))""",
}
"""Last fields of a record, which plain jobs do not have."""

_RECORD: Final = {
    **{field: f"whole_job.{field}" for field in JobRecord.__struct_fields__},
    "queue": ":queue_name",
    "order": "whole_job.ord",
}
_CLAIMED: Final = {
    **dict.fromkeys(JobRecord.__struct_fields__, "NULL"),
    **{field: f"job.{field}" for field in ("id", "name", "data", "options", "created_at")},
    **{field: f"chosen.{field}" for field in ("priority", "attempts_made", "stalled_count", "reason", "progress")},
    "queue": ":queue_name",
    "state": "'active'",
    "order": "chosen.ord",
    "attempts_started": "chosen.attempts_started + 1",
    "token": ":token",
    "worker": ":worker",
    "started_at": ":now",
    "renewed_at": ":now",
    "lock_until": ":lock_until",
}


def _columns(names: Iterable[str], form: str = "{0}") -> str:
    return ", ".join(form.format(name) for name in names)


def _carried_but(*changed: str) -> str:
    assert set(changed) <= set(CARRIED), changed
    return _columns(name for name in CARRIED if name not in changed)


def _record(job: str, expressions: Mapping[str, str], *, with_marks: bool = True) -> str:
    """Expression for JSON that reads as a `JobRecord`; plain jobs leave out its last fields."""
    fields = _columns(expressions[field] for field in JobRecord.__struct_fields__ if field not in RARE)
    rare = _columns(
        expression.format(job=job, has_tags=HAS_TAGS, has_marks=HAS_MARKS)
        for field, expression in RARE.items()
        if with_marks or field != "marks"
    )
    return f"iif({job}.has, json_array({fields}, {rare}), json_array({fields}))"


DOMAIN: Final[Mapping[str, object]] = {
    "LAST_INSTANT": LAST_INSTANT,
    **{column.upper(): f"'{state}'" for column, state in zip(STATE_COLUMNS, STATES, strict=True)},
}
"""All that migrations may use: a script that made a file must not change with the columns of later versions."""

PLACEHOLDERS: Final[Mapping[str, object]] = {
    **DOMAIN,
    "STATE_COLUMNS": _columns(STATE_COLUMNS),
    "SET_STATE_COLUMNS": _columns(STATE_COLUMNS, "{0} = :{0}"),
    "JOBS": " + ".join(STATE_COLUMNS),
    "METRIC_COLUMNS": _columns(METRICS),
    "METRIC_PARAMETERS": _columns(METRICS, ":{0}"),
    "ADD_METRICS": _columns(METRICS, "{0} = {0} + excluded.{0}"),
    "METRIC_FIELDS": _columns(("minute", *METRICS), "'{0}', {0}"),
    "SCHEDULE_FIELDS": _columns(StoredSchedule.__struct_fields__, "'{0}', chosen.{0}"),
    "CARRIED": _columns(CARRIED),
    "CARRIED_BY_CLAIM": _carried_but("attempts_started", "token", "worker", "started_at", "renewed_at"),
    "CARRIED_BY_END": _carried_but("attempts_made", "stalled_count", "token", "reason"),
    "CARRIED_BY_STALL": _carried_but("attempts_made", "stalled_count", "token", "reason"),
    "CARRIED_BY_SETTLE": _carried_but("attempts_made", "reason"),
    "CARRIED_BY_RETRY": _carried_but(
        "attempts_made", "attempts_started", "stalled_count", "token", "reason", "progress"
    ),
    "HAS_CHILDREN": HAS_CHILDREN,
    "HAS_SCHEDULE": HAS_SCHEDULE,
    "HAS_MARKS": HAS_MARKS,
    "PENDING": f"'{CHILD_STATES[0]}'",
    "FAIL_POLICY": f"'{DEFAULT_POLICY}'",
    "FAMILY": _columns(FAMILY, "family.{0}"),
    "SET_FAMILY": ", ".join(f"{name} = changed.value ->> {place}" for place, name in enumerate(FAMILY) if place),
    "CHILD_COUNTS": _columns(CHILD_STATES, "family.{0}"),
    "RECORD": _record("whole_job", _RECORD),
    "LISTED_RECORD": _record("whole_job", _RECORD, with_marks=False),
    "CLAIMED_RECORD": _record("job", _CLAIMED),
}
