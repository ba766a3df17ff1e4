"""Cron expressions: when they fire, also on the days on which clocks change, and what is refused."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidOption
from ropeway.job import cron
from ropeway.job.cron import LONGEST_CRON, check_cron, check_zone, cron_instants, cron_instants_back, explain_cron
from ropeway.job.instants import LAST_INSTANT, Instant

HOUR = 3_600_000
DAY = 24 * HOUR

BERLIN, NEW_YORK, LORD_HOWE, CASABLANCA = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
)
CHANGES = {
    (BERLIN, "gap"): date(2026, 3, 29),
    (BERLIN, "fold"): date(2026, 10, 25),
    (NEW_YORK, "gap"): date(2026, 3, 8),
    (NEW_YORK, "fold"): date(2026, 11, 1),
    (LORD_HOWE, "gap"): date(2026, 10, 4),
    (LORD_HOWE, "fold"): date(2026, 4, 5),
    (CASABLANCA, "gap"): date(2026, 3, 22),
    (CASABLANCA, "fold"): date(2026, 2, 15),
}
"""Days on which clocks are set forward, so that local times are left out, or back, so that some come twice."""
HOURS_OF = {
    (BERLIN, "gap"): 23,
    (BERLIN, "fold"): 25,
    (NEW_YORK, "gap"): 23,
    (NEW_YORK, "fold"): 25,
    (LORD_HOWE, "gap"): 23.5,
    (LORD_HOWE, "fold"): 24.5,
    (CASABLANCA, "gap"): 23,
    (CASABLANCA, "fold"): 25,
}
EXPRESSIONS = (
    "30 2 * * *",
    "0 30 2 * * *",
    "45 1 * * *",
    "0 3 * * *",
    "5,35 1,2 * * *",
    "0 0-4 * * *",
    "0 * * * *",
    "*/30 * * * *",
    "30 */2 * * *",
    "* 2 * * *",
    "@daily",
)


def instant(*moment: int, tz: str = "UTC") -> Instant:
    return round(datetime(*moment, tzinfo=ZoneInfo(tz)).timestamp() * 1000)  # type: ignore[arg-type, misc]


def local(at: Instant, tz: str = "UTC") -> str:
    return datetime.fromtimestamp(at / 1000, ZoneInfo(tz)).isoformat()


def ticks_of(expression: str, tz: str, day: date) -> list[str]:
    """Its ticks on a day, as local times."""
    first, end = instant(*day.timetuple()[:3], tz=tz), instant(*(day + timedelta(days=1)).timetuple()[:3], tz=tz)
    return [local(at, tz) for at in takewhile(lambda at: at < end, cron_instants(expression, tz, first - 1))]


class TestExpressions:
    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("*/15 * * * *", ["2026-01-01T00:15:00", "2026-01-01T00:30:00"]),
            ("0 9 * * MON-FRI", ["2026-01-01T09:00:00", "2026-01-02T09:00:00"]),
            ("30 4 1,15 * *", ["2026-01-01T04:30:00", "2026-01-15T04:30:00"]),
            ("*/20 * * * * *", ["2026-01-01T00:00:20", "2026-01-01T00:00:40"]),
            ("0 0 L * *", ["2026-01-31T00:00:00", "2026-02-28T00:00:00"]),
            ("0 0 * * 5#3", ["2026-01-16T00:00:00", "2026-02-20T00:00:00"]),
            ("0 0 29 FEB *", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
            ("@hourly", ["2026-01-01T01:00:00", "2026-01-01T02:00:00"]),
            ("@daily", ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]),
            ("@weekly", ["2026-01-04T00:00:00", "2026-01-11T00:00:00"]),
            ("@monthly", ["2026-02-01T00:00:00", "2026-03-01T00:00:00"]),
            ("@yearly", ["2027-01-01T00:00:00", "2028-01-01T00:00:00"]),
        ],
    )
    def test_it_fires_as_cron_does(self, expression: str, expected: list[str]):
        found = islice(cron_instants(check_cron(expression), "UTC", instant(2026, 1, 1)), 2)

        assert [local(at).removesuffix("+00:00") for at in found] == expected

    def test_superfluous_spaces_do_not_count(self):
        assert check_cron("  0   9 * *\t* \n") == "0 9 * * *"

    def test_it_is_said_in_plain_words(self):
        assert explain_cron("0 9 * * *") == "At 09:00 every day"
        assert explain_cron("@daily") == explain_cron("0 0 * * *")

    @pytest.mark.parametrize(
        "expression",
        [
            "",
            "* * * *",
            "* * * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "0 0 0 * *",
            "0 0 * 13 *",
            "0 0 * * 8",
            "-1 * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "a b c d e",
            "0 0 ? * *",
            "０ 9 * * *",
            "* * * * *\x00",
            "@every 1ms",
            "@reboot",
            "1," * LONGEST_CRON + "1 * * * *",
            "9" * 4_096,
            5,
            None,
            b"* * * * *",
            ["*"] * 5,
        ],
    )
    def test_what_is_no_expression_is_refused_and_the_form_is_shown(self, expression: Any):
        with pytest.raises(InvalidOption, match="use five fields"):
            check_cron(expression)

    @pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */7"])
    def test_dates_that_no_calendar_has_are_refused(self, expression: str):
        with pytest.raises(InvalidOption, match="day-of-month"):
            check_cron(expression)

    def test_one_that_never_fires_is_refused(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cron._Simulation, "__next__", _never)

        with pytest.raises(InvalidOption, match="never fires"):
            check_cron("0 0 1 1 *")

    @given(st.lists(st.text("0123456789*/,-#LW ", max_size=12), min_size=5, max_size=6))
    def test_no_expression_costs_time(self, fields: list[str]):
        began = time.process_time()
        try:
            expression = check_cron(" ".join(fields))
        except InvalidOption:
            return
        assert list(islice(cron_instants(expression, BERLIN, instant(2026, 1, 1)), 3))
        assert time.process_time() - began < 1


class TestInstants:
    def test_they_are_after_the_given_one(self):
        nine = instant(2026, 1, 1, 9)

        assert next(cron_instants("0 9 * * *", "UTC", nine)) == nine + DAY
        assert next(cron_instants("0 9 * * *", "UTC", nine - 1)) == nine

    def test_backwards_the_given_one_is_among_them(self):
        nine = instant(2026, 1, 1, 9)

        assert list(islice(cron_instants_back("0 9 * * *", "UTC", nine), 2)) == [nine, nine - DAY]
        assert next(cron_instants_back("0 9 * * *", "UTC", nine - 1)) == nine - DAY

    @pytest.mark.parametrize("tz", ["UTC", NEW_YORK])
    def test_they_end_with_the_calendar(self, tz: str):
        found = list(cron_instants("0 0 1 1 *", tz, LAST_INSTANT - 400 * DAY))

        assert len(found) == 1
        assert list(cron_instants("0 0 1 1 *", tz, LAST_INSTANT)) == []

    @pytest.mark.parametrize(("tz", "kind"), CHANGES)
    @pytest.mark.parametrize("expression", EXPRESSIONS)
    def test_they_are_the_same_from_wherever_one_looks(self, expression: str, tz: str, kind: str):
        noon = instant(*CHANGES[tz, kind].timetuple()[:3], 12, tz=tz)
        first, last = noon - 2 * DAY, noon + DAY
        ticks = list(takewhile(lambda at: at <= last, cron_instants(expression, tz, first)))

        assert all(one < other for one, other in pairwise(ticks))
        assert ticks == list(takewhile(lambda at: at > first, cron_instants_back(expression, tz, last)))[::-1]
        for at in range(noon - 14 * HOUR, noon - 6 * HOUR, 10 * 60_000):
            assert next(cron_instants(expression, tz, at)) == next(tick for tick in ticks if tick > at)
            assert next(cron_instants_back(expression, tz, at)) == next(tick for tick in ticks[::-1] if tick <= at)


class TestChangesOfClocks:
    @pytest.mark.parametrize(("tz", "kind"), CHANGES)
    @pytest.mark.parametrize(
        "expression", ["0 0 * * *", "45 1 * * *", "15 2 * * *", "30 2 * * *", "0 30 2 * * *", "0 3 * * *", "0 12 * * *"]
    )
    def test_a_daily_job_runs_once_on_each_day(self, expression: str, tz: str, kind: str):
        change = CHANGES[tz, kind]

        assert [len(ticks_of(expression, tz, change + timedelta(days=day))) for day in range(-1, 2)] == [1, 1, 1]

    @pytest.mark.parametrize(("tz", "kind"), CHANGES)
    def test_an_hourly_job_runs_in_every_hour(self, tz: str, kind: str):
        ticks = ticks_of("0 * * * *", tz, CHANGES[tz, kind])

        assert len(ticks) == {23: 23, 23.5: 23, 24.5: 24, 25: 25}[HOURS_OF[tz, kind]]

    @pytest.mark.parametrize(("tz", "kind"), CHANGES)
    def test_a_job_of_every_half_hour_keeps_its_pace(self, tz: str, kind: str):
        assert len(ticks_of("*/30 * * * *", tz, CHANGES[tz, kind])) == 2 * HOURS_OF[tz, kind]

    def test_a_time_that_is_left_out_fires_right_after_the_gap(self):
        assert ticks_of("30 2 * * *", BERLIN, CHANGES[BERLIN, "gap"]) == ["2026-03-29T03:00:00+02:00"]
        assert ticks_of("30 2 * * *", NEW_YORK, CHANGES[NEW_YORK, "gap"]) == ["2026-03-08T03:00:00-04:00"]
        assert ticks_of("15 2 * * *", LORD_HOWE, CHANGES[LORD_HOWE, "gap"]) == ["2026-10-04T02:30:00+11:00"]
        assert ticks_of("30 2 * * *", CASABLANCA, CHANGES[CASABLANCA, "gap"]) == ["2026-03-22T03:00:00+01:00"]

    def test_a_time_that_comes_twice_fires_the_first_time(self):
        assert ticks_of("30 2 * * *", BERLIN, CHANGES[BERLIN, "fold"]) == ["2026-10-25T02:30:00+02:00"]
        assert ticks_of("30 1 * * *", NEW_YORK, CHANGES[NEW_YORK, "fold"]) == ["2026-11-01T01:30:00-04:00"]
        assert ticks_of("45 1 * * *", LORD_HOWE, CHANGES[LORD_HOWE, "fold"]) == ["2026-04-05T01:45:00+11:00"]

    def test_every_minute_of_an_hour_is_every_minute_where_clocks_change_by_half_an_hour(self):
        ticks = ticks_of("* 2 * * *", LORD_HOWE, CHANGES[LORD_HOWE, "fold"])

        assert (len(ticks), ticks[0]) == (60, "2026-04-05T02:00:00+10:30")


class TestZones:
    @pytest.mark.parametrize(
        ("tz", "near"),
        [
            ("Europe/Berln", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("New_York", "America/New_York"),
            ("utc", "UTC"),
        ],
    )
    def test_an_unknown_zone_is_refused_with_the_nearest_name(self, tz: str, near: str):
        with pytest.raises(InvalidOption, match=f"did you mean '{near}'"):
            check_zone(tz)

    @pytest.mark.parametrize(
        "tz", ["", "Europe", "../UTC", "/etc/localtime", "a\0b", "\ud800", "x" * 10_000, "zone.tab"]
    )
    def test_what_is_no_name_of_a_zone_is_refused(self, tz: str):
        with pytest.raises(InvalidOption, match="no such zone"):
            check_zone(tz)

    @pytest.mark.parametrize("tz", [5, None, UTC, ZoneInfo("UTC")])
    def test_a_zone_is_given_by_its_name(self, tz: Any):
        with pytest.raises(InvalidOption, match="the name of a zone"):
            check_zone(tz)

    def test_without_a_database_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cron, "available_timezones", set)

        with pytest.raises(InvalidOption, match="pip install tzdata"):
            check_zone("Europe/Nowhere")

    def test_utc_needs_no_database(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cron, "ZoneInfo", _never)

        assert check_zone("UTC") == "UTC"


def _never(*_: object) -> Any:
    raise StopIteration
