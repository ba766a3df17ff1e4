"""The event stream, read and followed."""

from __future__ import annotations

import json
import signal

from ropeway import Queue
from ropeway.cli.exit_codes import ExitCode
from ropeway.store.contract import Store
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


def test_events_of_your_own_are_shown_and_chosen_by_name(ropeway: Ropeway, arrange: Arrange):
    async def publish(store: Store) -> None:
        await Queue(QUEUE, store=store).publish("imported", {"rows": 3})

    arrange.on_store(publish)

    ran = ropeway("events", QUEUE, "--name", "imported")

    [line] = ran.out.splitlines()
    assert line.split()[2:] == ["imported", "-", "rows=3"]
    assert "'imported' is no event of the queue's own" in ran.err


def test_what_applications_write_cannot_take_the_terminal(ropeway: Ropeway, arrange: Arrange):
    async def publish(store: Store) -> None:
        await Queue(QUEUE, store=store).publish("imported", {"\x1b[2J\ncompleted": "\x1b[2J\n"})

    arrange.on_store(publish)

    ran = ropeway("events", QUEUE)

    assert len(ran.out.splitlines()) == 1
    assert "\x1b" not in ran.out


def test_what_is_no_place_in_the_stream_is_told(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert ropeway("events", QUEUE, "--after", "yesterday").code == ExitCode.USAGE


def test_following_shows_what_happens_until_ctrl_c(programs: Programs, arrange: Arrange):
    arrange.job()
    following = programs.start("events", QUEUE, "--follow", "--after", "start", "--json")
    following.says("waiting")

    job = arrange.job("cancelled")
    following.says(f'"cancelled","job_id":"{job.id}"')
    following.signal(signal.SIGINT)

    assert following.exit_code() == ExitCode.INTERRUPTED
    assert "Traceback" not in following.err
