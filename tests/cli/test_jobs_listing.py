"""Looking at jobs."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest

from ropeway import Queue
from ropeway.cli.exit_codes import ExitCode
from ropeway.client import timeline
from ropeway.store.contract import Store
from ropeway.store.values import JobUpdate
from ropeway.testing.arrange import ARRANGED, claim_one, job_in
from ropeway.testing.factories import QUEUE, fail, retry, token_of

from .conftest import Arrange, Ropeway


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_list_names_every_job_with_its_state(ropeway: Ropeway, arrange: Arrange):
    made = {arrange.job(state).id: state for state in reversed(ARRANGED)}

    title, *rows = lines(ropeway("jobs", "list").out)

    assert title == ["ID", "QUEUE", "NAME", "STATE", "TRIES", "AGE", "ABOUT"]
    assert {row[0]: row[3] for row in rows if row[1] == QUEUE} == made


def test_the_newest_of_a_state_comes_first(ropeway: Ropeway, arrange: Arrange):
    first, second, third = arrange.job(), arrange.job(), arrange.job()

    newest = ropeway("jobs", "list", "--json").json["jobs"]
    oldest = ropeway("jobs", "list", "--oldest-first", "--json").json["jobs"]

    assert [job["id"] for job in newest] == [third.id, second.id, first.id]
    assert [job["id"] for job in oldest] == [first.id, second.id, third.id]


def test_filters_choose_by_queue_state_and_name(ropeway: Ropeway, arrange: Arrange):
    failed = arrange.job("failed", name="print")
    arrange.job("failed", name="send")
    arrange.job(name="print")
    arrange.job("failed", name="print", queue="other")

    ran = ropeway("jobs", "list", "-q", QUEUE, "-s", "failed", "--name", "print", "--json")

    assert [job["id"] for job in ran.json["jobs"]] == [failed.id]


def test_pages_go_on_where_the_last_one_ended(ropeway: Ropeway, arrange: Arrange):
    ids = [arrange.job().id for _ in range(5)]

    first = ropeway("jobs", "list", "--queue", QUEUE, "--limit", "3", "--oldest-first", "--json").json
    second = ropeway("jobs", "list", "--queue", QUEUE, "--oldest-first", "--after", first["next"], "--json").json

    assert [job["id"] for job in [*first["jobs"], *second["jobs"]]] == ids
    assert second["next"] is None


def test_a_list_that_is_cut_says_how_to_go_on(ropeway: Ropeway, arrange: Arrange):
    arrange.job()
    arrange.job()
    arrange.job(queue="other")

    of_one = ropeway("jobs", "list", "--queue", QUEUE, "--limit", "1")
    of_all = ropeway("jobs", "list", "--limit", "2")

    assert "--after '" in of_one.err
    assert "--queue QUEUE" in of_all.err
    assert ropeway("jobs", "list", "--limit", "2", "--json").json["more"]


def test_a_cursor_belongs_to_one_queue(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert ropeway("jobs", "list", "--after", "x").code == ExitCode.USAGE
    assert ropeway("jobs", "list", "--queue", QUEUE, "--after", "x").code == ExitCode.USAGE


def test_no_match_is_no_error(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert ropeway("jobs", "list", "--state", "failed").err == "No jobs match.\n"
    assert ropeway("jobs", "list", "--state", "failed", "--json").json == {"jobs": [], "next": None, "more": False}


def test_show_tells_the_whole_life_of_a_job(ropeway: Ropeway, arrange: Arrange):
    async def live(store: Store) -> str:
        await Queue(QUEUE, store=store).add("send", {"to": "you"}, id="a", attempts=2)
        now = await store.clock()
        held = await claim_one(store, now=now)
        await store.update(QUEUE, [JobUpdate("a", token_of(held), log=("first \x1b[2Jline", "second"))], now=now)
        await store.settle(QUEUE, [retry(held, reason="busy", trace="Traceback one\n")], now=now)
        held = await claim_one(store, now=now)
        await store.settle(QUEUE, [fail(held, reason="gone\x07", trace="Traceback two\n  at \x1b[31m")], now=now)
        return held.id

    arrange.on_store(live)

    ran = ropeway("jobs", "show", "a")
    document = ropeway("jobs", "show", "a", "--json").json

    assert "\x1b" not in ran.out
    for told in ("send  a", "failed · gone\\x07", "2 of 2 failed", "first \\x1b[2Jline", "Traceback two", "retrying"):
        assert told in ran.out
    assert document["job"]["state"] == "failed"
    assert [step["name"] for step in document["timeline"]] == [
        *("added", "waiting", "active", "retrying", "waiting", "active", "failed"),
    ]
    assert re.search(r"Failed attempts \(2\)\n +\S+ \S+ +0 ms  1  busy\n +\S+ \S+ +0 ms  2  gone\\x07", ran.out)
    assert [failure["reason"] for failure in document["failures"]] == ["busy", "gone\x07"]
    assert all(failure["started_at"] == failure["at"] for failure in document["failures"])
    assert [line["text"] for line in document["log"]] == ["first \x1b[2Jline", "second"]


def test_a_timeline_has_one_line_for_what_happened_at_once(ropeway: Ropeway, arrange: Arrange):
    async def live(store: Store) -> None:
        await Queue(QUEUE, store=store).add("send", id="a", attempts=1)
        held = await claim_one(store, now=await store.clock())
        await store.settle(QUEUE, [fail(held, reason="gone", exhausted=True)])

    arrange.on_store(live)

    timeline = ropeway("jobs", "show", "a").out.partition("Timeline\n")[2]

    assert [line[27:].split("  ")[0] for line in timeline.splitlines()] == [
        *("added, waiting", "active", "failed, retries-exhausted")
    ]


def test_a_timeline_leaves_out_what_stands_above_it(ropeway: Ropeway, arrange: Arrange):
    completed = arrange.job("completed")

    timeline = ropeway("jobs", "show", completed.id).out.partition("Timeline\n")[2]

    assert "name=" not in timeline
    assert "result=" not in timeline


def test_a_timeline_shows_local_times_and_json_milliseconds(
    ropeway: Ropeway, arrange: Arrange, monkeypatch: pytest.MonkeyPatch
):
    due = datetime(2100, 1, 2, 3, 4, 5, 678_000, UTC)
    arrange.on_queue(lambda queue: queue.add("send", id="a", delay=due))
    with monkeypatch.context() as there:
        there.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        shown = ropeway("jobs", "show", "a").out
        events = ropeway("events", QUEUE).out
    time.tzset()
    document = ropeway("jobs", "show", "a", "--json").json

    assert 'due_at="2100-01-02 12:04:05.678"' in shown
    assert 'due_at="2100-01-02 12:04:05.678"' in events
    assert document["timeline"][0]["data"]["due_at"] == round(due.timestamp() * 1000)


def test_a_timeline_tells_once_that_a_job_was_added(ropeway: Ropeway, arrange: Arrange):
    async def add_two(queue: Queue) -> str:
        first = await queue.add("send")
        now = await queue.store.clock()
        # Adds that are taken in together have one entry, at the instant of the last.
        while await queue.store.clock() == now:
            pass
        await queue.add("send")
        return first.id

    steps = ropeway("jobs", "show", arrange.on_queue(add_two), "--json").json["timeline"]

    assert [step["name"] for step in steps] == ["added", "waiting"]


def test_a_timeline_remembers_what_events_no_longer_tell(
    ropeway: Ropeway, arrange: Arrange, monkeypatch: pytest.MonkeyPatch
):
    failed = arrange.job("failed")

    async def none(*_: object) -> list[timeline.TimelineEntry]:
        return []

    monkeypatch.setattr(timeline, "_events", none)

    steps = ropeway("jobs", "show", failed.id, "--json").json["timeline"]

    assert [step["name"] for step in steps] == ["added", "attempt failed", "failed"]


def test_logs_are_printed_line_by_line(ropeway: Ropeway, arrange: Arrange):
    async def log(store: Store) -> str:
        held = await job_in("active", store, now=await store.clock())
        change = JobUpdate(held.id, token_of(held), log=tuple(f"line {n}\r\n" for n in range(30)), keep_logs=25)
        await store.update(QUEUE, [change])
        return held.id

    job_id = arrange.on_store(log)

    ran = ropeway("jobs", "logs", job_id)

    assert len(ran.out.splitlines()) == 25
    assert ran.out.splitlines()[-1].endswith("  line 29\\r\\n")
    assert ran.err == "5 older lines not kept\n"
    assert ropeway("jobs", "logs", job_id, "--json").json["earlier_log_lines"] == 5


def test_the_last_log_lines_are_printed_in_order(ropeway: Ropeway, arrange: Arrange):
    async def log(store: Store) -> str:
        held = await job_in("active", store, now=await store.clock())
        await store.update(QUEUE, [JobUpdate(held.id, token_of(held), log=tuple(f"line {n}" for n in range(30)))])
        return held.id

    job_id = arrange.on_store(log)

    ran = ropeway("jobs", "logs", job_id, "--last", "2")

    assert [line.split("  ")[1] for line in ran.out.splitlines()] == ["line 28", "line 29"]
    assert ran.err == "28 older lines not shown\n"
    assert ropeway("jobs", "logs", job_id, "--last", "40", "--json").json["earlier_log_lines"] == 0


def test_a_log_is_cleared(ropeway: Ropeway, arrange: Arrange):
    async def log(store: Store) -> str:
        held = await job_in("active", store, now=await store.clock())
        await store.update(QUEUE, [JobUpdate(held.id, token_of(held), log=tuple(f"line {n}" for n in range(5)))])
        return held.id

    job_id = arrange.on_store(log)

    refused = ropeway("jobs", "clear-logs", job_id)
    assert ropeway("jobs", "clear-logs", job_id, "--keep", "2", "--yes", "--json").json["keep"] == 2
    kept = ropeway("jobs", "logs", job_id)
    cleared = ropeway("jobs", "clear-logs", job_id, "--yes")

    assert (refused.code, "add --yes" in refused.err) == (ExitCode.USAGE, True)
    assert [line.split("  ")[1] for line in kept.out.splitlines()] == ["line 3", "line 4"]
    assert cleared.out == f"{job_id}: log cleared\n"
    assert ropeway("jobs", "logs", job_id).out == ""


def test_a_job_that_is_not_there_is_not_found(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    for arguments in (["show", "nobody"], ["logs", "nobody"], ["show", "nobody", "--queue", QUEUE]):
        ran = ropeway("jobs", *arguments)
        assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
        assert "'nobody'" in ran.err


def test_an_id_in_two_queues_must_be_said_with_its_queue(ropeway: Ropeway, arrange: Arrange):
    arrange.job(id="a")
    arrange.job(id="a", queue="other")

    assert "letters and other" in ropeway("jobs", "show", "a").err
    assert ropeway("jobs", "show", "a", "--queue", "other", "--json").json["job"]["queue"] == "other"


def test_what_a_job_holds_cannot_act_on_the_terminal(ropeway: Ropeway, arrange: Arrange):
    arrange.on_queue(lambda queue: queue.add("send", {"evil": "\x1b]0;gotcha\x07\u202e\u2028"}, id="a"))

    for arguments in (["list"], ["show", "a"]):
        out = ropeway("jobs", *arguments).out
        assert not {"\x1b", "\x07", "\u202e", "\u2028"} & set(out)


def test_an_attempt_that_went_well_is_not_counted_as_one_that_was_not_made(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job("completed")

    assert "attempts      0 of 1 failed, 1 started" in ropeway("jobs", "show", job.id).out


def test_what_is_still_to_do_is_listed_before_what_is_finished(ropeway: Ropeway, arrange: Arrange):
    for state in ("failed", "completed", "cancelled", "active", "delayed", "waiting"):
        arrange.job(state)

    listed = [job["state"] for job in ropeway("jobs", "list", "--json").json["jobs"]]

    assert listed == ["active", "waiting", "delayed", "completed", "failed", "cancelled"]


def test_a_job_of_a_store_that_is_not_there_is_not_found_for_that_reason(ropeway: Ropeway):
    listed, shown = ropeway("jobs", "list"), ropeway("jobs", "show", "welcome-42")

    missing = listed.err.splitlines()[-1]
    assert "there is no" in missing
    assert missing in shown.err
