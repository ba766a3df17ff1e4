from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidDuration
from ropeway.job.durations import LONGEST, milliseconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, 0),
        (90, 90_000),
        (1.5, 1_500),
        (0.0004, 0),
        (timedelta(minutes=5), 300_000),
        ("250ms", 250),
        ("5 minutes", 300_000),
        ("1 minute", 60_000),
        ("1h30m", 5_400_000),
        ("1 h 30 min", 5_400_000),
        ("1 hour, 30 minutes", 5_400_000),
        ("1 hour and 30 minutes", 5_400_000),
        ("1.5 hours", 5_400_000),
        ("2 weeks", 1_209_600_000),
        ("1 day", 86_400_000),
        ("  10 SECONDS ", 10_000),
        ("in 10 minutes", 600_000),
        ("PT5M", 300_000),
        ("PT0.5S", 500),
        ("P1DT12H", 129_600_000),
        ("P2W", 1_209_600_000),
        ("pt1h30m", 5_400_000),
        ("5\u00a0min", 300_000),
        ("0 s", 0),
        (-0.0, 0),
    ],
)
def test_a_duration_is_read_as_people_write_it(given, expected):
    assert milliseconds(given) == expected


@pytest.mark.parametrize(
    "given", [-1, -0.5, -0.0001, timedelta(days=-1), -(10**9), pytest.param(-(10**5000), id="-10**5000")]
)
def test_a_negative_duration_is_refused(given):
    with pytest.raises(InvalidDuration, match=r"option 'wait': .* is negative: a duration is 0 or more"):
        milliseconds(given, "wait")


@pytest.mark.parametrize(
    "given",
    [
        *("", " ", "5", "h", "soon", "5 parsecs", "5 minutes ago", "1h -5m", "-5 minutes", "1e3s", "P", "PT", "P1"),
        *("1h" * 60, "PT5", "5 m s", "∞s", "1 h 1 h", "1 h 1 hour", "١ h", "PT٥M", "1 w\u212a", "5 \u017f", "1_0 s"),
        *(None, True, False, [], {}, b"5s", object()),
    ],
)
def test_what_is_no_duration_is_refused_with_examples(given):
    with pytest.raises(InvalidDuration, match="5 minutes"):
        milliseconds(given)


@pytest.mark.parametrize("given", [float("nan"), float("inf"), float("-inf")])
def test_a_duration_is_finite(given):
    with pytest.raises(InvalidDuration, match="finite"):
        milliseconds(given)


@pytest.mark.parametrize(
    "given", [LONGEST / 1000 + 1, 2**53, pytest.param(10**400, id="10**400"), "101 years 1w", timedelta.max, 1e300]
)
def test_a_duration_of_more_than_a_lifetime_is_refused(given):
    with pytest.raises(InvalidDuration):
        milliseconds(given)


def test_the_longest_duration_is_allowed():
    assert milliseconds(LONGEST / 1000) == LONGEST


@given(st.integers(0, LONGEST // 1000))
def test_whole_seconds_are_exact(seconds):
    assert milliseconds(seconds) == milliseconds(timedelta(seconds=seconds)) == milliseconds(f"{seconds}s")


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_refused(text):
    with suppress(InvalidDuration):
        assert 0 <= milliseconds(text) <= LONGEST


@given(st.one_of(st.integers(), st.floats(), st.timedeltas()))
def test_any_number_is_a_duration_or_refused(number):
    with suppress(InvalidDuration):
        assert 0 <= milliseconds(number) <= LONGEST
