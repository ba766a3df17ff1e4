from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.cli.live.figures import (
    MINUTE,
    Meter,
    Moves,
    Tally,
    completed_by_minute,
    heights,
    percentile,
    rates_of_last_minute,
)
from ropeway.store.values import Metric

NOON = 1_800_000_000_000 - 1_800_000_000_000 % MINUTE


def test_a_tally_answers_only_what_is_new():
    tally = Tally()
    tally.feed([Metric(NOON, added=5, completed=2)], NOON + 1_000)

    assert tally.feed([Metric(NOON, added=7, completed=2, failed=1)], NOON + 2_000) == Moves(2, 0, 1)
    assert tally.feed([Metric(NOON, added=7, completed=2, failed=1)], NOON + 3_000) == Moves()


def test_a_tally_goes_on_over_the_end_of_a_minute():
    tally = Tally()
    tally.feed([Metric(NOON, completed=2)], NOON + MINUTE - 1)

    assert tally.since(NOON + MINUTE) == NOON
    moves = tally.feed([Metric(NOON, completed=3), Metric(NOON + MINUTE, completed=4)], NOON + MINUTE + 1_000)

    assert moves == Moves(completed=5)


def test_a_queue_that_was_obliterated_counts_from_nothing():
    tally = Tally()
    tally.feed([Metric(NOON, added=100, completed=90)], NOON + 1_000)

    assert tally.feed([Metric(NOON, added=3, completed=1)], NOON + 2_000) == Moves(3, 1, 0)


def test_a_tally_forgets_old_minutes():
    tally = Tally()
    tally.feed([Metric(NOON + n * MINUTE, added=1) for n in range(10)], NOON + 9 * MINUTE)

    assert tally.since(NOON + 9 * MINUTE) == NOON + 8 * MINUTE


def test_a_meter_needs_two_instants():
    meter = Meter()
    assert meter.rates() is None
    meter.feed(0, Moves(5, 5, 5))
    assert meter.rates() is None


def test_a_meter_measures_between_its_instants():
    meter = Meter()
    meter.feed(0, Moves())
    meter.feed(500, Moves(10, 4, 0))
    meter.feed(2_000, Moves(0, 0, 1))

    assert meter.rates() == Moves(5.0, 2.0, 0.5)


def test_a_meter_forgets_what_is_older_than_its_window():
    meter = Meter(window=2_000)
    for second in range(10):
        meter.feed(second * 1_000, Moves(completed=100 if second == 2 else 1))

    assert meter.rates() == Moves(completed=1.0)


def test_the_first_rates_are_those_of_this_minute_and_the_one_before():
    metrics = [Metric(NOON - 5 * MINUTE, added=9_999), Metric(NOON - MINUTE, added=60), Metric(NOON, added=30)]

    assert rates_of_last_minute(metrics, NOON + 30_000) == Moves(added=1.0)


def test_minutes_without_a_metric_are_zero_and_the_current_one_is_left_out():
    metrics = [Metric(NOON - 3 * MINUTE, completed=60), Metric(NOON - MINUTE, completed=120), Metric(NOON, completed=1)]

    assert completed_by_minute(metrics, NOON + 5, 4) == [0, 1.0, 0, 2.0]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([7], 0.5, 7),
        ([7], 0.95, 7),
        ([3, 1, 2], 0.5, 2),
        ([4, 3, 2, 1], 0.5, 2),
        (list(range(1, 101)), 0.95, 95),
        (list(range(1, 101)), 1.0, 100),
    ],
)
def test_percentiles(values: list[float], share: float, expected: float | None):
    assert percentile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_at_least_the_share_does_not_exceed_the_percentile(values: list[float], share: float):
    found = percentile(values, share)
    assert found is not None
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_heights_are_steps_of_the_highest():
    assert heights([0, 1, 2, 4], 4, 8) == [0, 2, 4, 8]


def test_what_is_not_zero_is_seen():
    assert heights([1, 1_000_000], 2, 8) == [1, 8]


def test_only_the_newest_heights_are_shown():
    assert heights([100, 1, 2], 2, 2) == [1, 2]
    assert heights([1, 2], 0, 2) == []
    assert heights([], 5, 2) == []
    assert heights([0, 0], 5, 2) == [0, 0]
