"""Schedules: their ticks, what becomes of those that were missed, and what rules are refused."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ropeway.errors import InvalidDuration, InvalidInput, InvalidOption
from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras
from ropeway.job.instants import LAST_INSTANT, Instant
from ropeway.job.names import LONGEST_ID, LONGEST_SCHEDULE_ID
from ropeway.job.schedules import (
    HISTORY,
    LATE_AFTER,
    MISSED_TICK,
    MOST_MISSED,
    NOT_FINAL,
    Firing,
    Rule,
    ScheduleState,
    Template,
    TickRecord,
    fire,
    job_of_tick,
    rule_of,
    tick_id,
)
from ropeway.testing.factories import DAY, MINUTE, NOW, QUEUE, SECOND

HOUR = 60 * MINUTE
MOMENT = datetime.fromtimestamp(NOW / 1000, UTC)


def state(missed: Any = "once", overlap: Any = "allow", fired: int = 0, **rule: Any) -> ScheduleState:
    return ScheduleState(rule_of(**rule), Template("ping"), overlap, missed, fired=fired)


def fired(state: ScheduleState, due: Instant, now: Instant) -> Firing:
    return fire(QUEUE, "pulse", state, due, now)


def ticks(firing: Firing) -> list[Instant]:
    """The instants for which it makes jobs."""
    return [int(job.id.rpartition(":")[2]) for job in firing.jobs]


def first(rule: Rule, count: int, after: Instant = NOW) -> list[Instant]:
    return list(islice(rule.instants(after), count))


class TestEvery:
    def test_slots_are_aligned_to_the_clock_whenever_it_was_made(self):
        rule = rule_of(every="1 minute")

        assert first(rule, 2, NOW) == first(rule, 2, NOW + 59_999) == [NOW + MINUTE, NOW + 2 * MINUTE]

    def test_an_offset_shifts_the_slots(self):
        rule = rule_of(every="1 minute", offset=15)

        assert first(rule, 2) == [NOW + 15 * SECOND, NOW + 75 * SECOND]
        assert rule.explain() == "every minute, 15 seconds later"

    def test_it_begins_at_its_start_and_ends_at_its_end_both_included(self):
        rule = rule_of(every=60, start=MOMENT + timedelta(minutes=2), end=MOMENT + timedelta(minutes=4))

        assert first(rule, 9) == [NOW + 2 * MINUTE, NOW + 3 * MINUTE, NOW + 4 * MINUTE]
        assert list(rule.newest_instants(NOW + DAY)) == first(rule, 9)[::-1]

    @given(st.integers(1_000, 10**10), st.integers(0, 10**12), st.integers(0, 10**13))
    def test_slots_follow_each_other_at_its_distance(self, every: int, offset: int, after: int):
        rule = Rule(every=every, offset=offset % every)
        found = first(rule, 3, after)

        assert after < found[0] <= after + every
        assert {other - one for one, other in pairwise(found)} == {every}
        assert next(rule.newest_instants(found[2])) == found[2]
        assert next(rule.newest_instants(found[2] - 1)) == found[1]

    def test_it_ends_with_the_calendar(self):
        assert first(rule_of(every=60), 5, LAST_INSTANT - 1) == []

    @pytest.mark.parametrize(
        ("every", "words"),
        [
            ("1 day", "every day"),
            (30, "every 30 seconds"),
            ("90 minutes", "every 1 hour 30 minutes"),
            (1.5, "every 1 second 500 milliseconds"),
        ],
    )
    def test_it_is_said_in_plain_words(self, every: Any, words: str):
        assert rule_of(every=every).explain() == words


class TestCron:
    def test_it_begins_at_its_start_and_ends_at_its_end_both_included(self):
        start = datetime(2026, 1, 1, 9, tzinfo=UTC)
        rule = rule_of(cron="0 9 * * *", start=start, end=start + timedelta(days=2))
        found = first(rule, 9)

        assert [datetime.fromtimestamp(at / 1000, UTC).day for at in found] == [1, 2, 3]
        assert list(rule.newest_instants(found[-1] + 9 * DAY)) == found[::-1]

    def test_start_and_end_are_instants_in_any_zone(self):
        start = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))

        assert rule_of(cron="@daily", start=start) == rule_of(cron="@daily", start=start.astimezone(UTC))

    def test_a_start_at_the_end_of_the_calendar_has_no_tick(self):
        assert first(rule_of(cron="0 0 1 1 *", start=datetime.max.replace(tzinfo=UTC)), 1) == []

    def test_it_is_said_in_plain_words_with_its_city(self):
        assert rule_of(cron="0 9 * * *").explain() == "at 09:00 every day"
        assert rule_of(cron="0 9 * * *", tz="America/New_York").explain() == "at 09:00 every day, New York"


class TestNext:
    def test_a_paused_one_has_none(self):
        assert replace(state(every=60), is_paused=True).next_after(NOW) is None
        assert state(every=60).rule.upcoming(NOW, 1) == [NOW + MINUTE]

    def test_one_that_had_all_its_ticks_has_none(self):
        assert state(every=60, limit=3, fired=2).next_after(NOW) == NOW + MINUTE
        assert state(every=60, limit=3, fired=3).next_after(NOW) is None

    def test_the_limit_holds_for_what_is_to_come(self):
        assert state(every=60, limit=3).rule.upcoming(NOW, 9, fired=1) == [NOW + MINUTE, NOW + 2 * MINUTE]
        assert state(every=60, limit=3).rule.upcoming(NOW, 9, fired=4) == []


class TestFire:
    def test_a_tick_makes_one_job_under_an_id_made_of_schedule_and_instant(self):
        firing = fired(state(every=60), NOW, NOW + 3)
        [job] = firing.jobs

        assert (job.queue, job.id, job.name) == (QUEUE, f"schedule:pulse:{NOW}", "ping")
        assert job.extras == Extras(schedule="pulse")
        assert firing.next_at == NOW + MINUTE
        assert firing.state.fired == 1
        assert firing.state.history == (TickRecord(NOW, NOW + 3, job.id),)

    @pytest.mark.parametrize(
        ("overlap", "mode"), [("skip", "until-final"), ("queue", "keep-last"), ("cancel", "supersede")]
    )
    def test_overlap_is_a_dedupe_key_that_its_jobs_share(self, overlap: Any, mode: Any):
        [job] = fired(state(every=60, overlap=overlap), NOW, NOW).jobs

        assert job.extras is not None
        assert job.extras.dedupe == DedupeRule("schedule:pulse", mode)

    def test_the_job_is_what_its_template_says(self):
        template = Template("ping", "[1]", '{"attempts":3}', 5, True, ("red",), 9_000, "graves")
        [job] = fired(replace(state(every=60), template=template), NOW, NOW).jobs

        assert (job.data, job.options, job.priority, job.lifo, job.tags) == ("[1]", '{"attempts":3}', 5, True, ("red",))
        assert job.extras == Extras(start_within=9_000, dead_letter="graves", schedule="pulse")

    def test_the_last_tick_has_none_after_it(self):
        assert fired(state(every=60, limit=2, fired=1), NOW, NOW).next_at is None
        assert fired(state(every=60, end=MOMENT + timedelta(seconds=59)), NOW, NOW).next_at is None

    def test_the_history_has_the_newest_ticks(self):
        moved = state(every=60)
        for number in range(HISTORY + 5):
            moved = fired(moved, NOW + number * MINUTE, NOW + number * MINUTE).state

        assert (len(moved.history), moved.fired) == (HISTORY, HISTORY + 5)
        assert moved.history[-1].at == NOW + (HISTORY + 4) * MINUTE

    def test_ids_of_the_longest_schedule_are_ids_of_jobs(self):
        assert len(tick_id("x" * LONGEST_SCHEDULE_ID, LAST_INSTANT)) <= LONGEST_ID

    def test_two_schedules_with_the_same_job_share_no_id_and_no_key(self):
        one, other = (job_of_tick(QUEUE, id, state(every=60, overlap="skip"), tick_id(id, NOW)) for id in ("a", "b"))

        assert one.id != other.id
        assert one.extras is not None
        assert other.extras is not None
        assert one.extras.dedupe != other.extras.dedupe

    def test_ids_that_end_like_an_instant_are_not_mistaken(self):
        assert tick_id("a", NOW) != tick_id(f"a:{NOW}", NOW)


class TestMissed:
    def test_once_makes_one_job_for_all_of_them(self):
        firing = fired(state("once", every=60), NOW, NOW + 3 * DAY)

        assert ticks(firing) == [NOW + 3 * DAY]
        assert firing.state.fired == 1
        assert [(tick.at, tick.skipped) for tick in firing.state.history] == [
            (NOW + 3 * DAY - MINUTE, MISSED_TICK),
            (NOW + 3 * DAY, None),
        ]

    def test_all_makes_a_job_for_each(self):
        assert ticks(fired(state("all", every=60), NOW, NOW + 3 * MINUTE + 1)) == [
            NOW,
            NOW + MINUTE,
            NOW + 2 * MINUTE,
            NOW + 3 * MINUTE,
        ]

    def test_all_are_so_many_at_most_and_the_newest(self):
        made = ticks(fired(state("all", every=60), NOW, NOW + 3 * DAY))

        assert made == [NOW + 3 * DAY - back * MINUTE for back in reversed(range(MOST_MISSED))]

    def test_all_make_no_more_than_the_limit_leaves(self):
        firing = fired(state("all", every=60, limit=5, fired=2), NOW, NOW + HOUR)

        assert ticks(firing) == [NOW, NOW + MINUTE, NOW + 2 * MINUTE]
        assert (firing.state.fired, firing.next_at) == (5, None)

    def test_none_makes_no_job_of_one_that_is_late(self):
        firing = fired(state("none", every=DAY / 1000), NOW, NOW + LATE_AFTER + 1)

        assert (ticks(firing), firing.state.fired) == ([], 0)
        assert [tick.skipped for tick in firing.state.history] == [MISSED_TICK]
        assert firing.next_at is not None
        assert firing.next_at > NOW + LATE_AFTER

    def test_none_makes_a_job_of_one_that_is_hardly_late(self):
        assert ticks(fired(state("none", every=DAY / 1000), NOW, NOW + LATE_AFTER)) == [NOW]
        assert ticks(fired(state("none", every=60), NOW, NOW + 3 * DAY)) == [NOW + 3 * DAY]

    @pytest.mark.parametrize("missed", ["once", "all"])
    def test_nothing_fires_for_instants_after_the_end(self, missed: Any):
        end = MOMENT + timedelta(minutes=2)
        firing = fired(state(missed, every=60, end=end), NOW, NOW + 3 * DAY)

        assert ticks(firing)[-1] == NOW + 2 * MINUTE
        assert firing.next_at is None

    @pytest.mark.parametrize("missed", ["once", "all", "none"])
    @pytest.mark.parametrize("rule", [{"cron": "* * * * * *"}, {"cron": "* * * * * *", "tz": "Europe/Berlin"}])
    def test_three_days_of_a_second_each_are_gone_through_fast(self, missed: Any, rule: dict[str, Any]):
        began = time.process_time()
        firing = fired(state(missed, **rule), NOW, NOW + 3 * DAY)

        assert time.process_time() - began < 0.1
        assert len(firing.jobs) == (MOST_MISSED if missed == "all" else 1)
        assert firing.next_at == NOW + 3 * DAY + SECOND

    def test_of_a_daily_job_each_tick_across_a_change_of_clocks_is_made_once(self):
        due = round(datetime(2026, 10, 24, 0, 30, tzinfo=UTC).timestamp() * 1000)
        in_second_pass = due + DAY + HOUR - 5 * MINUTE
        moved = fired(state("all", cron="30 2 * * *", tz="Europe/Berlin"), due, in_second_pass)

        assert ticks(moved) == [due, due + DAY]
        assert moved.next_at == due + 2 * DAY + HOUR

    def test_a_clock_that_was_set_back_makes_no_tick_again(self):
        moved = fired(state("all", every=60), NOW, NOW + HOUR)

        assert moved.next_at == NOW + HOUR + MINUTE
        assert ticks(fired(moved.state, moved.next_at, moved.next_at)) == [NOW + HOUR + MINUTE]


class TestSkips:
    def test_ticks_that_made_no_job_are_noted_with_the_one_because_of_which(self):
        moved = fired(state("all", every=60), NOW, NOW + 2 * MINUTE).state
        noted = moved.skipping([None, "holder", None]).history

        assert [tick.skipped for tick in noted] == [None, NOT_FINAL, None]
        assert noted[1].job == "holder"

    def test_of_more_than_the_history_has_the_newest_are_noted(self):
        moved = fired(state("all", every=60), NOW, NOW + DAY).state
        noted = moved.skipping(["old"] * (MOST_MISSED - 1) + [None]).history

        assert [tick.skipped for tick in noted] == [NOT_FINAL] * (HISTORY - 1) + [None]


BAD_RULES: list[tuple[dict[str, Any], type[InvalidInput], str]] = [
    ({}, InvalidOption, "neither 'cron' nor 'every'"),
    ({"cron": "@daily", "every": 60}, InvalidOption, "both given"),
    ({"every": 0}, InvalidOption, "every.*shorter than 1 s"),
    ({"every": 0.999}, InvalidOption, "every.*shorter than 1 s"),
    ({"every": -5}, InvalidDuration, "every"),
    ({"every": "often"}, InvalidDuration, "every"),
    ({"every": True}, InvalidDuration, "every"),
    ({"every": float("nan")}, InvalidDuration, "every"),
    ({"every": 60, "offset": 60}, InvalidOption, "offset.*shorter one"),
    ({"every": 60, "offset": -1}, InvalidDuration, "offset"),
    ({"every": 60, "tz": "Europe/Berlin"}, InvalidOption, "tz.*use 'offset'"),
    ({"cron": "@daily", "offset": 5}, InvalidOption, "offset.*is for 'every'"),
    ({"cron": "@daily", "tz": "Mars/Base"}, InvalidOption, "no such zone"),
    ({"cron": "0 0 30 2 *"}, InvalidOption, "cron"),
    ({"every": 60, "start": MOMENT, "end": MOMENT}, InvalidOption, "end.*not after 'start'"),
    ({"every": 60, "start": MOMENT, "end": MOMENT - timedelta(days=1)}, InvalidOption, "end.*not after 'start'"),
    ({"every": 60, "start": datetime(2026, 1, 1)}, InvalidDuration, "no time zone"),  # noqa: DTZ001 - it is refused
    ({"every": 60, "end": "tomorrow"}, InvalidDuration, "datetime"),
    ({"every": 60, "limit": 0}, InvalidOption, "limit"),
    ({"every": 60, "limit": 1.5}, InvalidOption, "limit"),
    ({"every": 60, "limit": True}, InvalidOption, "limit"),
]


@pytest.mark.parametrize(("rule", "error", "message"), BAD_RULES)
def test_a_rule_that_makes_no_sense_is_refused(rule: dict[str, Any], error: type[InvalidInput], message: str):
    with pytest.raises(error, match=message):
        rule_of(**rule)
