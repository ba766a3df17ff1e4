from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidDuration
from ropeway.job.instants import LAST_INSTANT, instant_of, moment_of


@given(st.integers(0, LAST_INSTANT))
def test_an_instant_is_a_moment_and_back(instant):
    moment = moment_of(instant)

    assert moment is not None
    assert instant_of(moment) == instant


def test_no_instant_is_no_moment():
    assert moment_of(None) is None


def test_the_zone_of_a_moment_does_not_change_the_instant():
    moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

    assert instant_of(moment) == instant_of(moment.astimezone(timezone(timedelta(hours=-8))))


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(InvalidDuration, match="time zone"):
        instant_of(datetime(2026, 1, 1))  # noqa: DTZ001 - that is what is refused


def test_the_last_instant_is_the_end_of_the_last_year():
    moment = moment_of(LAST_INSTANT)

    assert moment is not None
    assert (moment.year, moment.month, moment.day, instant_of(moment)) == (9999, 12, 31, LAST_INSTANT)
    assert float(LAST_INSTANT) == LAST_INSTANT
