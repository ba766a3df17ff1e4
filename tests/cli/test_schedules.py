"""Schedules from the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ropeway.cli.exit_codes import ExitCode
from ropeway.job.schedules import MISSED_TICK, NOT_FINAL, ScheduleState, TickRecord
from ropeway.store.contract import Store
from ropeway.store.values import ScheduleWrite
from ropeway.testing.factories import MINUTE, QUEUE

from .conftest import Arrange, Ropeway
from .test_completion import offered

NIGHTLY = ("schedules", "add", QUEUE, "nightly", "report")
DAILY = ("--cron", "0 9 * * *", "--tz", "America/New_York")


def make(arrange: Arrange, id: str = "nightly", queue: str = QUEUE, **given: Any) -> None:
    rule = given if {"cron", "every"} & given.keys() else {"every": "1 day", **given}
    arrange.on_queue(lambda there: there.schedule(id, "report", {"kind": "daily"}, **rule), queue)


def damage(arrange: Arrange, id: str = "broken", queue: str = QUEUE) -> None:
    arrange.on_store(lambda store: store.write_schedules(queue, [ScheduleWrite(id, "{}")]))


def move_due(arrange: Arrange, by: int, id: str) -> None:
    """Moves its next run from now."""

    async def write(store: Store) -> None:
        [stored] = await store.schedules(QUEUE, [id])
        await store.write_schedules(QUEUE, [ScheduleWrite(id, stored.value, await store.clock() + by)])

    arrange.on_store(write)


def remember(arrange: Arrange, *ticks: TickRecord) -> None:
    """Gives the schedule a history."""

    async def write(store: Store) -> None:
        [stored] = await store.schedules(QUEUE, ["nightly"])
        state = replace(msgspec.json.decode(stored.value, type=ScheduleState), history=ticks)
        value = msgspec.json.encode(state).decode()
        await store.write_schedules(QUEUE, [ScheduleWrite("nightly", value, stored.next_at)])

    arrange.on_store(write)


def end(arrange: Arrange, id: str) -> None:
    async def write(store: Store) -> None:
        [stored] = await store.schedules(QUEUE, [id])
        await store.write_schedules(QUEUE, [ScheduleWrite(id, stored.value)])

    arrange.on_store(write)


class TestAdd:
    def test_a_schedule_is_made(self, ropeway: Ropeway):
        ran = ropeway(*NIGHTLY, '{"kind": "daily"}', *DAILY, "--attempts", "3", "--tag", "a", "--expires", "1h")
        [listed] = ropeway("schedules", "list", "--json").json["schedules"]

        assert ran.code == ExitCode.OK
        assert ran.out.startswith("nightly runs next at ")
        assert ran.out.endswith(" (at 09:00 every day, New York)\n")
        assert (listed["id"], listed["name"], listed["data"], listed["state"]) == (
            "nightly",
            "report",
            {"kind": "daily"},
            "due",
        )
        assert listed["last"] is None
        assert listed["options"] == {"attempts": 3, "tags": ["a"], "expires_ms": 3_600_000}

    def test_all_that_a_rule_can_say(self, ropeway: Ropeway):
        ran = ropeway(
            *("schedules", "add", QUEUE, "pulse", "ping", "--every", "30s", "--offset", "5s", "--limit", "100"),
            *("--start", "2030-01-01T00:00Z", "--end", "2031-01-01T00:00Z", "--overlap", "skip", "--missed", "none"),
            "--json",
        )

        assert ran.json["rule"] == {
            "every": 30_000,
            "offset": 5_000,
            "start": 1_893_456_000_000,
            "end": 1_924_992_000_000,
            "limit": 100,
        }
        assert (ran.json["overlap"], ran.json["missed"]) == ("skip", "none")
        assert ran.json["description"] == "every 30 seconds, 5 seconds later"

    def test_a_second_add_changes_the_rule(self, ropeway: Ropeway):
        ropeway(*NIGHTLY, *DAILY)

        assert ropeway(*NIGHTLY, "--every", "5m", "--json").json["version"] == 2

    def test_a_job_is_made_at_once_if_asked_for(self, ropeway: Ropeway):
        made = ropeway(*NIGHTLY, *DAILY, "--immediately", "--json").json

        assert ropeway("jobs", "list", "--json").json["jobs"][0]["id"] == made["history"][0]["job"]

    @pytest.mark.parametrize(
        ("rule", "said"),
        [
            ((), "neither 'cron' nor 'every' was given"),
            (("--cron", "@daily", "--every", "5m"), "'every' were both given"),
            (("--cron", "0 9 * *"), "wrong number of fields"),
            (("--cron", "@daily", "--tz", "America/NewYork"), "did you mean 'America/New_York'"),
            (("--every", "0"), "cannot be shorter than 1 s"),
            (("--every", "5m", "--tz", "Europe/Berlin"), "'tz' is for 'cron'"),
            (("--every", "5m", "--start", "2030-01-02T00:00Z", "--end", "2030-01-01T00:00Z"), "is not after 'start'"),
            (("--every", "5m", "--end", "2020-01-01T00:00Z"), "no tick left"),
            (("--every", "5m", "--overlap", "never"), "'never' is not one of"),
            (("--every", "5m", "--expires", "soon"), "neither a duration"),
            (("--every", "5m", "--expires", "2030-01-01T00:00Z"), "give a duration"),
            (("--every", "5m", "--delay", "5m"), "--delay"),
        ],
    )
    def test_bad_input_is_refused(self, ropeway: Ropeway, rule: tuple[str, ...], said: str):
        ran = ropeway(*NIGHTLY, *rule)

        assert ran.code == ExitCode.USAGE
        assert said in ran.err
        assert ran.err.count("\n") == 1
        assert ropeway("schedules", "list", "--json").json["schedules"] == []


class TestList:
    def test_it_tells_when_they_run(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange, cron="0 9 * * *", tz="America/New_York")
        make(arrange, "pulse", "other", every="30 seconds")

        lines = ropeway("schedules", "list").out.splitlines()

        assert lines[0].split() == ["ID", "QUEUE", "JOB", "NEXT", "RUN", "IN", "LAST", "WHEN"]
        assert lines[1].startswith(f"nightly  {QUEUE}")
        assert lines[1].endswith("-  at 09:00 every day, New York")
        assert lines[2].endswith("every 30 seconds")

    def test_of_one_queue(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)
        make(arrange, "pulse", "other")

        ran = ropeway("schedules", "list", "--queue", "other", "--json")

        assert [listed["id"] for listed in ran.json["schedules"]] == ["pulse"]

    def test_it_says_which_are_paused_ended_late_and_damaged(self, ropeway: Ropeway, arrange: Arrange):
        for id in ("paused", "ended", "late"):
            make(arrange, id)
        damage(arrange)
        arrange.on_queue(lambda queue: queue.schedules.pause("paused"))
        end(arrange, "ended")
        move_due(arrange, -5 * MINUTE, "late")

        table = ropeway("schedules", "list").out
        states = {listed["id"]: listed["state"] for listed in ropeway("schedules", "list", "--json").json["schedules"]}

        assert states == {"paused": "paused", "ended": "ended", "late": "late", "broken": "damaged"}
        assert "late 5m" in table
        assert "missing required field" in table

    def test_none_is_no_error(self, ropeway: Ropeway):
        ran = ropeway("schedules", "list")

        assert (ran.code, ran.out) == (ExitCode.OK, "")

    def test_an_unknown_queue_is(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)

        assert ropeway("schedules", "list", "--queue", "nope").code == ExitCode.NOT_FOUND


class TestShow:
    def test_it_shows_rule_jobs_and_next_runs(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange, cron="0 9 * * *", tz="America/New_York", attempts=3, overlap="skip", limit=10)

        shown = ropeway("schedules", "show", "nightly").out
        document = ropeway("schedules", "show", "nightly", "--json").json

        for fact in ("0 9 * * *  (America/New_York)", "0 of 10", "skip", '{"kind":"daily"}', "attempts=3", "Next runs"):
            assert fact in shown
        assert len(document["upcoming"]) == 5
        assert document["upcoming"][0] == document["schedule"]["next_at"]

    def test_it_shows_its_history_with_skips_and_why(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)
        at = int(datetime(2026, 5, 4, tzinfo=UTC).timestamp() * 1000)
        remember(
            arrange,
            TickRecord(at, at + 2 * MINUTE, "first"),
            TickRecord(at + MINUTE, at + MINUTE, "first", NOT_FINAL),
            TickRecord(at + 2 * MINUTE, at + 2 * MINUTE, skipped=MISSED_TICK),
        )

        *_, first, second, third = ropeway("schedules", "show", "nightly").out.splitlines()

        assert first.endswith("first  2m late")
        assert second.endswith("skipped: an earlier job is not final")
        assert third.endswith("skipped: missed")

    def test_a_paused_one_says_when_it_would_run(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)
        arrange.on_queue(lambda queue: queue.schedules.pause("nightly"))

        shown = ropeway("schedules", "show", "nightly")

        assert "next run      paused" in shown.out
        assert "Next runs" in shown.out

    def test_a_damaged_one_says_why(self, ropeway: Ropeway, arrange: Arrange):
        damage(arrange)

        assert "missing required field" in ropeway("schedules", "show", "broken").out
        assert ropeway("schedules", "show", "broken", "--json").json["schedule"]["state"] == "damaged"

    def test_a_misspelt_one_is_not_found(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)

        ran = ropeway("schedules", "show", "nigthly")

        assert ran.code == ExitCode.NOT_FOUND
        assert "did you mean 'nightly'?" in ran.err

    def test_one_in_two_queues_needs_its_queue(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)
        make(arrange, queue="other")

        ran = ropeway("schedules", "show", "nightly")

        assert ran.code == ExitCode.USAGE
        assert "--queue" in ran.err
        assert ropeway("schedules", "show", "nightly", "-q", "other").code == ExitCode.OK


class TestMoving:
    def test_one_is_paused_and_resumed(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)

        paused = ropeway("schedules", "pause", "nightly")
        as_json = ropeway("schedules", "pause", "nightly", "--json").json
        resumed = ropeway("schedules", "resume", "nightly")

        assert paused.out == "nightly is paused\n"
        assert as_json == {"queue": QUEUE, "id": "nightly", "paused": True, "next_at": None}
        assert resumed.out.startswith("nightly runs next at ")

    def test_a_job_is_made_now(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)

        ran = ropeway("schedules", "run", "nightly", "--json")

        assert (ran.json["created"], ran.json["deduplicated"]) == (True, False)
        assert arrange.state_of(ran.json["id"]) == "waiting"
        assert ropeway("jobs", "show", ran.json["id"], "--json").json["job"]["schedule"] == "nightly"

    def test_no_second_one_where_jobs_must_not_overlap(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange, overlap="skip")

        first = ropeway("schedules", "run", "nightly")
        second = ropeway("schedules", "run", "nightly")

        assert second.out == first.out
        assert "not final" in second.err

    def test_one_is_removed_with_its_waiting_job(self, ropeway: Ropeway, arrange: Arrange):
        make(arrange)
        job = ropeway("schedules", "run", "nightly").out.strip()

        assert ropeway("schedules", "remove", "nightly").out == f"nightly removed from {QUEUE}\n"
        assert arrange.state_of(job) is None

    def test_a_damaged_one_is_neither_held_nor_run_but_removed(self, ropeway: Ropeway, arrange: Arrange):
        damage(arrange)

        for command in ("pause", "resume", "run"):
            ran = ropeway("schedules", command, "broken")
            assert ran.code == ExitCode.FAILED
            assert "cannot be read" in ran.err
        assert ropeway("schedules", "remove", "broken", "--json").json["removed"]
        assert ropeway("schedules", "list", "--json").json["schedules"] == []

    @pytest.mark.parametrize("command", ["pause", "resume", "run", "remove"])
    def test_one_that_is_not_there_is_an_error(self, ropeway: Ropeway, command: str):
        assert ropeway("schedules", command, "nightly").code == ExitCode.NOT_FOUND


class TestNext:
    def test_an_expression_is_tried_out_without_a_store(self, ropeway: Ropeway, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("ROPEWAY_URL", "nonsense://")

        ran = ropeway(
            *("schedules", "next", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T00:00Z"),
            *("--count", "3"),
        )

        assert [line.strip() for line in ran.out.splitlines()] == [
            "at 02:30 every day, Berlin",
            "Sat 2027-03-27 02:30:00 CET",
            "Sun 2027-03-28 03:00:00 CEST",
            "Mon 2027-03-29 02:30:00 CEST",
        ]

    def test_slots_of_every(self, ropeway: Ropeway):
        ran = ropeway("schedules", "next", "--every", "90m", "--after", "2030-01-01T00:00Z", "--count", "2", "--json")

        assert ran.json == {
            "description": "every 1 hour 30 minutes",
            "next": ["2030-01-01T01:30:00Z", "2030-01-01T03:00:00Z"],
        }

    @pytest.mark.parametrize(
        "given", [(), ("@daily", "--every", "5m"), ("0 9 31 2 *",), ("@daily", "--tz", "Mars"), ("--every", "0")]
    )
    def test_bad_input_is_refused(self, ropeway: Ropeway, given: tuple[str, ...]):
        ran = ropeway("schedules", "next", *given)

        assert ran.code == ExitCode.USAGE
        assert ran.err.startswith("Error: ")


def test_schedules_and_zones_are_completed(arrange: Arrange):
    make(arrange)
    make(arrange, "pulse", "other")

    assert offered("schedules", "show", "") == ["nightly", "pulse"]
    assert offered("schedules", "pause", "--queue", "other", "") == ["pulse"]
    assert "Europe/Berlin" in offered("schedules", "next", "--tz", "Europe/B")
