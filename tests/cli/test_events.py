"""The event stream, read and followed."""

from __future__ import annotations

import json
import signal

import pytest

from ropeway.cli.exits import ExitCode
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway
from .processes import Programs


def test_events_are_one_json_object_a_line_and_go_on_from_any_of_them(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job("completed")

    told = [json.loads(line) for line in ropeway("events", QUEUE, "--json").out.splitlines()]
    later = [json.loads(line) for line in ropeway("events", QUEUE, "--json", "--after", told[1]["id"]).out.splitlines()]

    assert [event["name"] for event in told if event["job_id"]] == ["added", "waiting", "active", "completed"]
    assert {event["job_id"] for event in told} <= {job.id, None}
    assert told[0]["at"].endswith("Z")
    assert later == told[2:]


def test_events_are_chosen_by_name_and_job(ropeway: Ropeway, arrange: Arrange):
    first, second = arrange.job("failed"), arrange.job()

    failed = ropeway("events", QUEUE, "--name", "failed").out
    of_second = ropeway("events", QUEUE, "--job", second.id).out

    assert [line.split()[2:4] for line in failed.splitlines()] == [["failed", first.id]]
    assert {line.split()[3] for line in of_second.splitlines()} == {second.id}


@pytest.mark.parametrize("arguments", [["--name", "finished"], ["--after", "yesterday"]], ids=" ".join)
def test_what_is_no_event_is_told(ropeway: Ropeway, arrange: Arrange, arguments: list[str]):
    arrange.job()

    assert ropeway("events", QUEUE, *arguments).code == ExitCode.USAGE


def test_following_shows_what_happens_until_ctrl_c(programs: Programs, arrange: Arrange):
    arrange.job()
    following = programs.start("events", QUEUE, "--follow", "--after", "start", "--json")
    following.says("waiting")

    job = arrange.job("cancelled")
    following.says(f'"cancelled","job_id":"{job.id}"')
    following.signal(signal.SIGINT)

    assert following.exit_code() == ExitCode.INTERRUPTED
    assert "Traceback" not in following.err
