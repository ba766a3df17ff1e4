"""Jobs from the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.job.backoff import Backoff
from ropeway.job.instants import moment_of
from ropeway.job.record import JobRecord
from ropeway.job.retention import Retention
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway


def added(arrange: Arrange, id: str) -> JobRecord:
    [record] = arrange.on_store(lambda store: store.get(QUEUE, [id]))
    assert isinstance(record, JobRecord)
    return record


@pytest.mark.parametrize(
    ("data", "stored"),
    [([], "null"), (['{"to": "you"}'], '{"to":"you"}'), (["[1, 2.5, null]"], "[1,2.5,null]"), (['"text"'], '"text"')],
)
def test_a_job_is_added_with_its_data_and_its_id_is_printed(
    ropeway: Ropeway, arrange: Arrange, data: list[str], stored: str
):
    ran = ropeway("add", QUEUE, "send", *data)

    job = added(arrange, ran.out.strip())
    assert (ran.code, job.name, job.data, job.state) == (ExitCode.OK, "send", stored, "waiting")


def test_data_comes_from_standard_input_or_a_file(ropeway: Ropeway, arrange: Arrange, tmp_path: Path):
    (tmp_path / "data.json").write_text('\ufeff{"from": "file"}')

    piped = ropeway("add", QUEUE, "send", "-", given='{"from": "pipe"}').out.strip()
    filed = ropeway("add", QUEUE, "send", "@data.json").out.strip()

    assert added(arrange, piped).data == '{"from":"pipe"}'
    assert added(arrange, filed).data == '{"from":"file"}'


def test_options_are_spelt_as_in_python(ropeway: Ropeway, arrange: Arrange):
    options = "--delay 5m --priority -3 --lifo --attempts 5 --timeout 90 --remove-on-complete 1h --remove-on-fail 7"
    ran = ropeway("add", QUEUE, "send", "--id", "a", "--backoff", "exponential:1s,max=1h,jitter=0.5", *options.split())

    job = added(arrange, "a")
    stored = job.read_options()
    assert ran.code == ExitCode.OK
    assert (job.state, job.priority, (job.due_at or 0) - job.created_at) == ("delayed", -3, 300_000)
    assert job.order < 0
    assert (stored.attempts, stored.timeout) == (5, 90_000)
    assert stored.backoff == Backoff.exponential(1, max_delay="1h", jitter=0.5)
    assert (stored.keep_completed, stored.keep_failed) == (Retention(age=3_600_000), Retention(count=7))


@pytest.mark.parametrize(
    ("text", "backoff"),
    [
        ("5s", Backoff.fixed(5)),
        ("5", Backoff.fixed(5)),
        ("fixed:1m,jitter=1", Backoff.fixed(60, jitter=1)),
        ("linear:2s,max=10s", Backoff.linear(2, max_delay=10)),
        ("custom:mine", Backoff.custom("mine")),
    ],
)
def test_every_backoff_can_be_said(ropeway: Ropeway, arrange: Arrange, text: str, backoff: Backoff):
    ropeway("add", QUEUE, "send", "--id", "a", "--backoff", text)

    assert added(arrange, "a").read_options().backoff == backoff


def test_an_instant_has_a_zone_or_is_in_the_users_own(ropeway: Ropeway, arrange: Arrange):
    ropeway("add", QUEUE, "send", "--id", "there", "--at", "2100-01-31T09:00:00+01:00")
    ropeway("add", QUEUE, "send", "--id", "here", "--at", "2100-01-31")

    assert moment_of(added(arrange, "there").due_at) == datetime(2100, 1, 31, 8, tzinfo=UTC)
    assert moment_of(added(arrange, "here").due_at) == datetime(2100, 1, 31).astimezone()


def test_an_id_that_is_there_is_found_and_another_job_under_it_is_refused(ropeway: Ropeway, arrange: Arrange):
    first = ropeway("add", QUEUE, "send", "1", "--id", "a", "--json")
    again = ropeway("add", QUEUE, "send", "1", "--id", "a", "--json")
    aloud = ropeway("add", QUEUE, "send", "1", "--id", "a")
    other = ropeway("add", QUEUE, "send", "2", "--id", "a")

    assert first.json == {"id": "a", "created": True, "deduplicated": False}
    assert again.json == {"id": "a", "created": False, "deduplicated": False}
    assert "there already" in aloud.err
    assert (other.code, other.out) == (ExitCode.FAILED, "")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["send", "{to: you}"], "is not JSON"),
        (["send", "text"], "quotes of its own"),
        (["send", "NaN"], "is not JSON"),
        (["send", "[" * 100 + "]" * 100], "nested"),
        (["send", "@nowhere.json"], "cannot be read"),
        (["send", "--attempts", "0"], "'attempts'"),
        (["send", "--id", "a b"], "job id"),
        (["send", "--backoff", "sometimes:5s"], "'sometimes' is unknown"),
        (["send", "--backoff", "linear:5s,max=soon"], "is no backoff"),
        (["send", "--at", "tomorrow"], "is no instant"),
        (["send", "--at", "2100-01-01", "--delay", "5"], "not both"),
        (["send", "--remove-on-fail", "sometimes"], "is not a duration"),
        (["send", "--remove-on-fail", "٥"], "is not a duration"),
        (["send", "--remove-on-fail", "9" * 5_000], "is not a finite duration"),
        (["send", "--remove-on-fail=-5"], "'-5' is negative"),
        (["send", "--delay", "-5"], "'-5' is negative"),
        (["send", "--delay", "nan"], "is not a duration"),
        (["send", "--delay", "inf"], "is not a finite duration"),
        (["send", "--delay", "1_0"], "is not a duration"),
        (["send", "--delay", "٥"], "is not a duration"),
        (["send", "--timeout=-1"], "'-1' is negative"),
        (["send", "--priority", "9" * 100_000], "is not a valid integer"),
        (["send", "--backoff=-1"], "is negative"),
        (["send\x1b[31m"], "\\x1b[31m"),
        ([], "NAME"),
        (["send", "--bulk", "nowhere.jsonl"], "--bulk"),
        (["--bulk", "nowhere.jsonl"], "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_told_and_nothing_is_added(
    ropeway: Ropeway, arrange: Arrange, arguments: list[str], hint: str
):
    ran = ropeway("add", QUEUE, *arguments)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert hint in ran.err
    assert len(ran.err) <= 3_020
    assert ran.err.count("\n") == 1
    assert arrange.on_store(lambda store: store.queues()) == []


def test_a_bulk_adds_a_job_for_every_line(ropeway: Ropeway, arrange: Arrange, tmp_path: Path):
    lines = [
        {"name": "send", "data": {"to": "a"}},
        {"name": "print", "options": {"id": "b", "attempts": 3, "backoff": "linear:2s", "remove_on_complete": "1h"}},
    ]
    (tmp_path / "jobs.jsonl").write_text("\n\n".join(map(json.dumps, lines)))

    ran = ropeway("add", QUEUE, "--bulk", "jobs.jsonl", "--priority", "5", "--json")

    first, second = [added(arrange, id) for id in ran.json["ids"]]
    assert (ran.json["created"], ran.json["found"]) == (2, 0)
    assert (first.name, first.data, first.priority, second.id, second.priority) == ("send", '{"to":"a"}', 5, "b", 5)
    assert second.read_options().backoff == Backoff.linear(2)
    assert second.read_options().keep_completed == Retention(age=3_600_000)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("{", "line 2"),
        ('{"nam": "send"}', "line 2"),
        ('{"name": "send", "options": {"atempts": 3}}', "line 2: option 'atempts' is unknown; did you mean 'attempts'"),
        ('{"name": "send", "options": {"backoff": "no"}}', "line 2"),
        ('{"name": ""}', "line 2"),
        ('\n\n{"name": ""}', "line 4"),
    ],
)
def test_one_bad_line_keeps_the_whole_bulk_out(ropeway: Ropeway, arrange: Arrange, line: str, hint: str):
    ran = ropeway("add", QUEUE, "--bulk", "-", given=f'{{"name": "fine"}}\n{line}\n')

    assert ran.code == ExitCode.USAGE
    assert hint in ran.err
    assert "item" not in ran.err
    assert arrange.on_store(lambda store: store.queues()) == []


def test_an_id_that_is_taken_is_told_by_its_line(ropeway: Ropeway, arrange: Arrange):
    taken = arrange.job()

    ran = ropeway(
        "add", QUEUE, "--bulk", "-", given=f'{{"name": "a"}}\n\n{{"name": "b", "options": {{"id": "{taken.id}"}}}}\n'
    )

    assert ran.code == ExitCode.FAILED
    assert "line 3" in ran.err
    assert taken.id in ran.err
    assert arrange.on_queue(lambda queue: queue.counts())["waiting"] == 1


def test_text_that_is_not_utf8_is_told(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send", "-", given=b"\xff")

    assert ran.code == ExitCode.USAGE
    assert "is not UTF-8" in ran.err


def test_waiting_prints_the_result(ropeway: Ropeway, arrange: Arrange):
    done = arrange.job("completed", data="null")

    ran = ropeway("add", QUEUE, "send", "--id", done.id, "--wait")
    document = ropeway("add", QUEUE, "send", "--id", done.id, "--wait", "5s", "--json")

    assert (ran.code, ran.out) == (ExitCode.OK, '"sent"\n')
    assert document.json == {"id": done.id, "created": False, "deduplicated": False, "result": "sent"}


def test_waiting_for_a_failed_job_fails_with_its_reason(ropeway: Ropeway, arrange: Arrange):
    failed = arrange.job("failed", data="null")

    ran = ropeway("add", QUEUE, "send", "--id", failed.id, "--wait")

    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert "no luck" in ran.err


def test_waiting_too_long_has_an_exit_code_of_its_own(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send", "--wait", "0.01")

    assert (ran.code, ran.out) == (ExitCode.TIMEOUT, "")
    assert "it is waiting" in ran.err


def test_a_program_is_told_the_id_of_a_job_without_a_result(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send", "--id", "slow", "--wait", "0.01", "--json")

    assert ran.code == ExitCode.TIMEOUT
    assert ran.json.keys() == {"id", "created", "deduplicated", "error"}
    assert (ran.json["id"], ran.json["created"]) == ("slow", True)
    assert ran.json["error"].startswith("job 'slow' did not finish within 0.01 s: it is waiting, and no worker runs")


def test_a_job_that_nobody_could_see_is_refused(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send", "--url", "memory://")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "one process" in ran.err


@pytest.mark.parametrize(
    "wrong",
    [
        ["letters", "send", "--attempts", "0"],
        ["letters", "send", "{"],
        ["letters", "a\tb"],
        ["let ters", "send"],
        ["letters", "--bulk", "nowhere"],
    ],
    ids=" ".join,
)
def test_a_job_that_is_refused_makes_no_store(ropeway: Ropeway, tmp_path: Path, wrong: list[str]):
    assert ropeway("add", *wrong).code == ExitCode.USAGE
    assert list(tmp_path.iterdir()) == []
