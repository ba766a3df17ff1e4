"""No hot statement looks at more rows than it needs."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from ropeway.stores.sqlite import SQLiteStore, opening
from ropeway.stores.sqlite.statements import statements
from ropeway.testing.factories import QUEUE, new_job

HOT = {
    "add": ("known", "jobs", "jobs_alike", "jobs_alike_with_extras", "later", "waiting", "tags"),
    "claim": tuple(statements("claim")),
    "settle": tuple(statements("settle")),
    "renew": ("renew",),
    "update": tuple(statements("update")),
    "promote": ("due", "wait"),
    "tick": (
        "stalled", "stall", "old", "oldest_event", "trim_events", "trim_metrics",
        "trim_revoked", "trim_records", "next_at",
    ),
    "queue": ("load", "save", "add_to_metric", "next_seq"),
    "look": tuple(statements("look")),
    "find": tuple(statements("find")),
    "delete_state_rows": tuple(statements("delete_state_rows")),
    "end": tuple(statements("end")),
    "retry": tuple(statements("retry")),
    "flows": tuple(statements("flows")),
    "change": tuple(statements("change")),
    "dedupe": tuple(statements("dedupe")),
    "deadlines": tuple(statements("deadlines")),
    "schedules": tuple(statements("schedules")),
    "marks": tuple(statements("marks")),
    "remove": (
        "jobs", "failures", "log", "tags", "marks", "links", "leave_families", "families",
        "oldest_finished", "has_kept", "oldest_counted", "oldest_beyond", "any_of_queue", "metrics", "events",
    ),
    "events": ("page", "exists", "entry_from", "replace", "revoked"),
}  # fmt: skip

SORTS = {
    ("claim", "choose_named"), ("claim", "held"), ("find", "active"), ("find", "active_reversed"), ("tick", "stalled"),
    ("find", "finished"), ("find", "finished_reversed"), ("remove", "oldest_finished"),
}  # fmt: skip
"""Those sort the few rows that they found: at most the limit for each name or kind, and what is active."""


def plan(connection: apsw.Connection, sql: str) -> list[str]:
    values = dict.fromkeys(re.findall(r":(\w+)", sql)) or (None,) * sql.count("?")
    return [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, names in HOT.items() for name in names])
def test_it_scans_no_table(verb: str, name: str, path: Path):
    connection = opening.open_file(str(path))
    try:
        steps = plan(connection, statements(verb)[name])
    finally:
        connection.close()

    # All but `active`, which has only what is running.
    tables = [
        "job", "waiting", "later", "finished", "whole_job", "failure", "log", "queue", "event", "metric",
        "tag", "revoked", "record", "old", "candidate", "family", "link",
        "deadline", "held_key", "schedule", "mark",
    ]  # fmt: skip
    scans = [step for step in steps if re.match(rf"SCAN ({'|'.join(tables)})\b", step)]
    assert not scans, steps
    if (verb, name) not in SORTS:
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


@pytest.mark.parametrize(
    ("verb", "name", "index"),
    [
        ("claim", "choose_named", "waiting_by_name "),
        ("claim", "names_waiting", "waiting_by_name "),
        ("promote", "due", "later_due "),
        ("find", "waiting-children", "later_children "),
        ("tick", "old", "finished_expiring "),
        ("look", "records_by_seq", "finished_by_seq "),
        ("find", "waiting", "tag_by_name "),
        ("find", "tagged", "tag_by_name "),
        ("flows", "linked", "link_by_child "),
        ("dedupe", "free_old", "held_key_until "),
        ("deadlines", "due", "deadline_due "),
        ("deadlines", "first", "deadline_due "),
        ("schedules", "due", "schedule_due "),
        ("tick", "next_at", "schedule_due "),
    ],
)
def test_each_index_serves_the_use_it_is_named_for(verb: str, name: str, index: str, path: Path):
    connection = opening.open_file(str(path))
    try:
        steps = plan(connection, statements(verb)[name])
    finally:
        connection.close()

    assert [step for step in steps if f"INDEX {index}" in step], steps


async def test_a_claim_by_name_does_not_walk_past_other_names(store: SQLiteStore, path: Path):
    """The steps of SQLite's machine are counted: as many with ten other jobs in front as with two thousand."""
    await store.add([[new_job(name="other") for _ in range(10)]])
    await store.add([[new_job(name="wanted")]])
    few = _steps(path)
    await store.add([[new_job(name="other", priority=-1) for _ in range(2_000)]])
    many = _steps(path)

    assert many <= few * 1.2


def _steps(path: Path) -> int:
    steps = 0

    def progress() -> bool:
        nonlocal steps
        steps += 1
        return False

    connection = opening.connect(str(path))
    connection.set_progress_handler(progress, 1)
    sql = statements("claim")["choose_named"]
    values = dict.fromkeys(re.findall(r":(\w+)", sql))
    found = connection.execute(sql, {**values, "queue": 1, "names": '["wanted"]', "limit": 5}).get
    connection.close()
    assert QUEUE.encode() not in found
    assert b"wanted" in found
    return steps
