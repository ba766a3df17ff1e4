"""Whole queues."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ropeway import Queue
from ropeway.cli.exit_codes import ExitCode
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.store.values import Record, StallRules
from ropeway.testing.arrange import ARRANGED, NURSERY
from ropeway.testing.factories import MINUTE, NOW, QUEUE

from .conftest import Arrange, Ropeway


def test_a_list_counts_every_state(ropeway: Ropeway, arrange: Arrange):
    for state in reversed(ARRANGED):
        arrange.job(state)
    arrange.job(queue="other")

    ran = ropeway("queues", "list")
    first, _, second = ropeway("queues", "list", "--json").json["queues"]

    assert [line.split()[0] for line in ran.out.splitlines()] == ["QUEUE", QUEUE, NURSERY, "other"]
    assert first["counts"] == dict.fromkeys(ARRANGED, 1)
    assert (first["name"], second["name"], first["workers"], first["paused"]) == (QUEUE, "other", 0, False)


def test_a_store_without_queues_is_empty_and_no_error(ropeway: Ropeway, arrange: Arrange):
    arrange.on_store(lambda store: store.open())

    assert ropeway("queues", "list").code == ExitCode.OK
    assert ropeway("queues", "list", "--json").json["queues"] == []


def test_a_queue_is_paused_and_resumed(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    paused = ropeway("queues", "pause", QUEUE, "--json").json
    listed = ropeway("queues", "list").out
    resumed = ropeway("queues", "resume", QUEUE)

    assert paused == {"queue": QUEUE, "paused": True, "paused_names": []}
    assert listed.splitlines()[1].endswith("all")
    assert resumed.out == f"{QUEUE} is resumed\n"
    assert not ropeway("queues", "list", "--json").json["queues"][0]["paused"]


def test_one_job_name_is_paused_and_resumed(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert ropeway("queues", "pause", QUEUE, "--name", "send").out == f"{QUEUE} is paused for send\n"
    assert ropeway("queues", "list").out.splitlines()[1].endswith("send")
    assert ropeway("queues", "resume", QUEUE, "--name", "send", "--json").json["paused_names"] == []


def test_resuming_a_name_of_a_paused_queue_says_that_the_queue_still_is(ropeway: Ropeway, arrange: Arrange):
    arrange.on_queue(lambda queue: queue.pause())

    assert f"ropeway queues resume {QUEUE}" in ropeway("queues", "resume", QUEUE, "--name", "send").err


def test_clean_removes_one_state(ropeway: Ropeway, arrange: Arrange):
    for state in ("completed", "failed", "failed"):
        arrange.job(state)

    completed = ropeway("queues", "clean", QUEUE, "--yes")
    none_so_old = ropeway("queues", "clean", QUEUE, "--state", "failed", "--older-than", "1h", "--yes")
    one = ropeway("queues", "clean", QUEUE, "--state", "failed", "--limit", "1", "--yes", "--json")

    assert completed.out == f"1 job removed from {QUEUE}\n"
    assert none_so_old.out == f"0 jobs removed from {QUEUE}\n"
    assert one.json == {"queue": QUEUE, "removed": 1}


@pytest.mark.parametrize("age", ["-5", "-0.1", "nan", "-5s"])
def test_an_age_of_less_than_nothing_cleans_nothing(ropeway: Ropeway, arrange: Arrange, age: str):
    arrange.job("completed")

    ran = ropeway("queues", "clean", QUEUE, "--older-than", age, "--yes")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ropeway("queues", "clean", QUEUE, "--yes").out == f"1 job removed from {QUEUE}\n"


def test_drain_removes_what_waits_and_on_request_what_is_delayed(ropeway: Ropeway, arrange: Arrange):
    finished, delayed, waiting = arrange.job("completed"), arrange.job("delayed"), arrange.job()

    ropeway("queues", "drain", QUEUE, "--yes")
    assert [arrange.state_of(job.id) for job in (finished, delayed, waiting)] == ["completed", "delayed", None]
    ropeway("queues", "drain", QUEUE, "--delayed", "--yes")
    assert [arrange.state_of(job.id) for job in (finished, delayed)] == ["completed", None]


def test_obliterate_leaves_nothing_of_a_queue(ropeway: Ropeway, arrange: Arrange):
    arrange.job("failed")
    arrange.job()

    ran = ropeway("queues", "obliterate", QUEUE, "--yes", "--json")

    assert ran.json == {"queue": QUEUE, "removed": 2}
    assert ropeway("queues", "list", "--json").json["queues"] == []


def test_obliterate_stops_at_active_jobs_unless_forced(ropeway: Ropeway, arrange: Arrange):
    arrange.job("active")

    refused = ropeway("queues", "obliterate", QUEUE, "--yes")

    assert (refused.code, refused.out) == (ExitCode.FAILED, "")
    assert "1 active job" in refused.err
    assert "--force" in refused.err
    assert ropeway("queues", "obliterate", QUEUE, "--yes", "--force").code == ExitCode.OK


@pytest.mark.parametrize("verb", ["clean", "drain", "obliterate"])
def test_without_a_terminal_nothing_is_removed_unless_it_is_meant(ropeway: Ropeway, arrange: Arrange, verb: str):
    job = arrange.job("completed")

    ran = ropeway("queues", verb, QUEUE)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--yes" in ran.err
    assert arrange.state_of(job.id) == "completed"


def test_running_jobs_cannot_be_cleaned(ropeway: Ropeway, arrange: Arrange):
    arrange.job("active")

    ran = ropeway("queues", "clean", QUEUE, "--state", "active", "--yes")

    assert ran.code == ExitCode.USAGE
    assert "cancel or remove" in ran.err


def test_the_memory_of_another_process_cannot_be_looked_at(ropeway: Ropeway):
    ran = ropeway("queues", "list", "--url", "memory://")

    assert (ran.code, ran.out) == (ExitCode.STORE, "")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("wrong", [["let ters"], ["letters", "--name", "a\tb"]], ids=" ".join)
def test_a_name_that_cannot_be_paused_makes_no_store(ropeway: Ropeway, tmp_path: Path, wrong: list[str]):
    assert ropeway("queues", "pause", *wrong, "--create").code == ExitCode.USAGE
    assert list(tmp_path.iterdir()) == []


def test_a_limit_over_all_workers_is_set_and_ended(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    limited = ropeway("queues", "concurrency", QUEUE, "20")
    listed = ropeway("queues", "list").out.splitlines()
    ended = ropeway("queues", "concurrency", QUEUE, "none", "--json")

    assert limited.out == f"{QUEUE} runs at most 20 jobs at once\n"
    assert ("LIMIT" in listed[0], listed[1].split()[-1]) == (True, "20")
    assert ended.json == {"queue": QUEUE, "max_global_concurrency": None}
    assert arrange.on_queue(lambda queue: queue.settings()).max_active is None
    assert "LIMIT" not in ropeway("queues", "list").out


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5", str(2**40)])
def test_a_limit_that_cannot_be_meant_is_refused(ropeway: Ropeway, tmp_path: Path, limit: str):
    ran = ropeway("queues", "concurrency", QUEUE, "--", limit)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "use a whole number" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["pause", "resume", "concurrency {} 2", "clean {} --yes", "drain {} --yes", "obliterate {} --yes"]
)
def test_a_queue_that_was_misspelt_is_refused_and_not_made(ropeway: Ropeway, arrange: Arrange, command: str):
    arrange.job()

    ran = ropeway("queues", *(command if "{}" in command else f"{command} {{}}").format(f"{QUEUE}x").split())

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert f"did you mean {QUEUE!r}" in ran.err
    assert arrange.on_store(lambda store: store.queues()) == [QUEUE]


@pytest.mark.parametrize("verb", [["pause"], ["concurrency", "2"]])
def test_a_queue_is_made_for_its_settings_only_when_that_is_said(
    ropeway: Ropeway, arrange: Arrange, tmp_path: Path, verb: list[str]
):
    refused = ropeway("queues", verb[0], QUEUE, *verb[1:])
    assert refused.code == ExitCode.NOT_FOUND
    assert "--create" in refused.err
    assert list(tmp_path.iterdir()) == []

    assert ropeway("queues", verb[0], QUEUE, *verb[1:], "--create").code == ExitCode.OK
    assert arrange.on_store(lambda store: store.queues()) == [QUEUE]


def test_a_name_that_no_worker_handles_is_told_when_it_is_paused(ropeway: Ropeway, arrange: Arrange):
    info = WorkerInfo("w", "w", "host", 1, (QUEUE,), {QUEUE: ("send_email",)}, 10, 0, NOW)
    record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
    arrange.on_store(lambda store: store.remember(record, lasting=MINUTE))

    misspelt = ropeway("queues", "pause", QUEUE, "--name", "send-email")

    assert misspelt.code == ExitCode.OK
    assert "did you mean 'send_email'?" in misspelt.err
    assert ropeway("queues", "pause", QUEUE, "--name", "send_email").err == ""


def test_resuming_a_name_that_is_not_paused_says_so(ropeway: Ropeway, arrange: Arrange):
    arrange.on_queue(lambda queue: queue.pause("send_email"))

    assert (
        "were not paused; did you mean 'send_email'?" in ropeway("queues", "resume", QUEUE, "--name", "send-email").err
    )
    assert ropeway("queues", "resume", QUEUE, "--name", "send_email").err == ""


def test_retention_in_stages_is_set_shown_and_ended(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    first = ropeway("queues", "retention", QUEUE, "--stale-after", "36 hours", "--delete-after", "7 days")
    shown = ropeway("queues", "retention", QUEUE, "--json")
    ended = ropeway("queues", "retention", QUEUE, "--stale-after", "none", "--forget-callbacks")

    assert first.out == f"finished jobs of {QUEUE} become stale after 36h\nand are deleted after 7d\n"
    assert shown.json == {"queue": QUEUE, "stale_after": 129_600.0, "delete_after": 604_800.0, "callbacks": []}
    assert ended.out == f"finished jobs of {QUEUE} become stale never\nand are deleted after 7d\n"


def test_jobs_cannot_be_deleted_before_they_are_stale(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    ran = ropeway("queues", "retention", QUEUE, "--stale-after", "2 days", "--delete-after", "1 day")

    assert ran.code == ExitCode.USAGE
    assert "cannot be less than stale_after" in ran.err


def test_an_age_of_zero_is_refused_and_does_not_end_a_stage(ropeway: Ropeway, arrange: Arrange):
    arrange.job()
    ropeway("queues", "retention", QUEUE, "--delete-after", "7 days")

    ran = ropeway("queues", "retention", QUEUE, "--delete-after", "0")

    assert (ran.code, "None for never" in ran.err) == (ExitCode.USAGE, True)
    assert ropeway("queues", "retention", QUEUE, "--json").json["delete_after"] == 604_800.0


def test_stale_jobs_are_listed_and_shown_as_such(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job("failed")
    arrange.job()
    arrange.on_queue(lambda queue: queue.set_retention(stale_after=0.001))

    async def tick(queue: Queue) -> None:
        await queue.store.tick(queue.name, StallRules(), now=await queue.store.clock() + MINUTE)

    arrange.on_queue(tick)

    listed = ropeway("jobs", "list", "--queue", QUEUE, "--stale", "--json").json
    shown = ropeway("jobs", "show", job.id)

    assert [found["id"] for found in listed["jobs"]] == [job.id]
    assert "failed · stale" in shown.out
    assert ropeway("jobs", "show", job.id, "--json").json["stale"] is True
