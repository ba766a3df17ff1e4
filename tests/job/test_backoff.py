from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidDuration, InvalidOption
from ropeway.job.backoff import LONGEST_DELAY, Backoff, custom_delay

LUCK = st.floats(0, 1)
ATTEMPTS = st.integers(1, 10**9)


def delays(backoff, attempts=5, luck=0.0):
    return [backoff.after(attempt, luck) for attempt in range(1, attempts + 1)]


def test_a_fixed_delay_stays():
    assert delays(Backoff.fixed(2)) == [2_000] * 5


def test_a_linear_delay_grows_by_itself():
    assert delays(Backoff.linear(2)) == [2_000, 4_000, 6_000, 8_000, 10_000]


def test_an_exponential_delay_doubles():
    assert delays(Backoff.exponential(1)) == [1_000, 2_000, 4_000, 8_000, 16_000]


def test_growth_ends_at_the_greatest_delay():
    assert delays(Backoff.exponential(1, max_delay="5s")) == [1_000, 2_000, 4_000, 5_000, 5_000]
    assert delays(Backoff.linear(2, max_delay=5)) == [2_000, 4_000, 5_000, 5_000, 5_000]


@pytest.mark.parametrize("attempt", [63, 64, 1_000, 10**6, 10**18])
def test_the_thousandth_attempt_waits_a_day_and_no_longer(attempt):
    assert Backoff.exponential(1).after(attempt, 0) == LONGEST_DELAY
    assert Backoff.linear(3_600).after(attempt, 0) == LONGEST_DELAY


def test_jitter_takes_away_a_part_of_the_delay():
    backoff = Backoff.fixed(10, jitter=0.25)

    assert (backoff.after(1, 0), backoff.after(1, 0.5), backoff.after(1, 1)) == (10_000, 8_750, 7_500)


@given(ATTEMPTS, LUCK, st.floats(0, 1), st.integers(0, 86_400))
def test_a_delay_lies_between_its_full_length_and_that_less_jitter(attempt, luck, jitter, seconds):
    for make in (Backoff.fixed, Backoff.linear, Backoff.exponential):
        full = make(seconds).after(attempt, 0)
        delay = make(seconds, jitter=jitter).after(attempt, luck)
        assert round(full * (1 - jitter)) - 1 <= delay <= full <= LONGEST_DELAY


@given(ATTEMPTS, LUCK)
def test_a_later_attempt_never_waits_less(attempt, luck):
    for backoff in (Backoff.linear(3, jitter=0.5), Backoff.exponential(3, jitter=0.5)):
        assert backoff.after(attempt, luck) <= backoff.after(attempt + 1, luck)


@pytest.mark.parametrize("jitter", [-0.1, 1.1, float("nan"), "half", True, None])
def test_jitter_is_a_fraction(jitter):
    with pytest.raises(InvalidOption, match="jitter"):
        Backoff.fixed(1, jitter=jitter)


@pytest.mark.parametrize("delay", ["soon", None, float("nan")])
def test_a_delay_is_a_duration(delay):
    with pytest.raises(InvalidDuration):
        Backoff.exponential(delay)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_custom_backoff_is_named(name):
    with pytest.raises(InvalidOption, match="name"):
        Backoff.custom(name)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((0, 0), (1.5, 1_500), ("5s", 5_000), (-1, None), (-0.001, None), (10**12, LONGEST_DELAY)),
        *((timedelta(seconds=2), 2_000), (timedelta(-1), None)),
        *((float("inf"), LONGEST_DELAY), (float("-inf"), None), pytest.param(10**400, LONGEST_DELAY, id="10**400")),
    ],
)
def test_a_function_answers_seconds_and_a_negative_number_stops(answer, expected):
    assert custom_delay(answer) == expected


@pytest.mark.parametrize("answer", [float("nan"), None, True, [], "soon"])
def test_an_answer_that_is_no_duration_is_refused(answer):
    with pytest.raises((InvalidOption, InvalidDuration)):
        custom_delay(answer)


def test_a_delay_of_days_that_was_asked_for_is_kept():
    days = 2 * LONGEST_DELAY
    assert Backoff.fixed("2 days").after(1, 0) == days
    assert Backoff.exponential("1 hour", max_delay="2 days").after(9, 0) == days
