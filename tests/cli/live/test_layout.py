from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.cli.live.layout import ColumnWant, Plan, choose, plan


def rows(found: Plan) -> int:
    """All rows of the terminal that a plan gives away."""
    bottom = max(found.failures, found.events) if found.side_by_side else found.failures + found.events
    return 1 + found.queues + found.chart + found.next_runs + found.running + found.workers + bottom + found.footer


@given(st.integers(1, 300), st.integers(2, 120), st.integers(0, 60), st.booleans(), st.booleans())
def test_every_row_is_used_once(width: int, height: int, queues: int, events: bool, next_runs: bool):
    found = plan(width, height, queues, events=events, next_runs=next_runs)

    assert rows(found) == height
    assert all(number >= 0 for number in found[4:])


@given(st.integers(1, 300), st.integers(2, 120), st.integers(1, 60))
def test_there_is_always_a_queue(width: int, height: int, queues: int):
    found = plan(width, height, queues)

    assert found.queues >= 1


def test_80_by_24_shows_everything_that_matters():
    found = plan(80, 24, 3)

    assert found.boxed
    assert not found.side_by_side
    assert found.queues == 6
    assert found.chart == 1
    assert (found.running, found.failures, found.events) >= (4, 3, 4)
    assert found.workers == 0


def test_a_wide_terminal_stands_panels_side_by_side():
    found = plan(120, 40, 3)

    assert found.side_by_side
    assert found.failures == found.events > 5
    assert found.chart > 3


def test_a_small_terminal_has_no_frames():
    assert not plan(40, 12, 3).boxed
    assert plan(40, 12, 3).running >= 3


def test_the_least_important_goes_first():
    shown = [
        [panel for panel in ("running", "chart", "failures", "events") if getattr(plan(80, height, 1), panel)]
        for height in (5, 9, 13, 17)
    ]

    assert shown == [
        ["chart"],
        ["running", "chart", "failures"],
        ["running", "chart", "failures", "events"],
        ["running", "chart", "failures", "events"],
    ]


def test_a_single_look_has_no_events():
    assert plan(80, 24, 1, events=False).events == 0
    assert plan(120, 40, 1, events=False).events == 0
    assert plan(120, 40, 1, events=False).failures > 0


COLUMNS = [ColumnWant("a", 5), ColumnWant("b", 4), ColumnWant("c", 3)]


@pytest.mark.parametrize(
    ("room", "names"),
    [
        (2, []),
        (3, ["c"]),
        (4, ["c"]),
        (7, ["c"]),
        (8, ["b", "c"]),
        (9, ["a", "c"]),
        (13, ["a", "c"]),
        (14, ["a", "b", "c"]),
    ],
)
def test_the_most_important_columns_that_fit_stand_in_their_order(room: int, names: list[str]):
    assert [column.name for column in choose(COLUMNS, ["c", "a", "b"], room)] == names
