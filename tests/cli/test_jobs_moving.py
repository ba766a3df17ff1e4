"""Retry, cancel, promote and remove, by id and by filter."""

from __future__ import annotations

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.job.states import State
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway

MOVES: list[tuple[str, State, str | None]] = [
    ("retry", "failed", "waiting"),
    ("cancel", "waiting", "cancelled"),
    ("promote", "delayed", "waiting"),
    ("remove", "completed", None),
]


@pytest.mark.parametrize(("verb", "before", "after"), MOVES)
def test_jobs_are_moved_by_id_wherever_they_are(
    ropeway: Ropeway, arrange: Arrange, verb: str, before: State, after: str | None
):
    here, there = arrange.job(before), arrange.job(before, queue="other")

    ran = ropeway("jobs", verb, here.id, there.id)

    assert ran.code == ExitCode.OK
    assert [line.split()[0] for line in ran.out.splitlines()] == [here.id, there.id]
    assert (arrange.state_of(here.id), arrange.state_of(there.id, "other")) == (after, after)


@pytest.mark.parametrize(("verb", "before", "after"), MOVES)
def test_jobs_are_moved_by_filter(ropeway: Ropeway, arrange: Arrange, verb: str, before: State, after: str | None):
    moved, other_name = arrange.job(before, name="print"), arrange.job(before, name="send")

    ran = ropeway("jobs", verb, "--queue", QUEUE, "--state", before, "--name", "print", "--yes")

    assert (ran.code, ran.out.split()[:2]) == (ExitCode.OK, ["1", "job"])
    assert (arrange.state_of(moved.id), arrange.state_of(other_name.id)) == (after, before)


@pytest.mark.parametrize(("verb", "before", "after"), MOVES)
def test_without_a_terminal_a_filter_needs_yes(
    ropeway: Ropeway, arrange: Arrange, verb: str, before: State, after: str | None
):
    jobs = [arrange.job(before) for _ in range(3)]

    ran = ropeway("jobs", verb, "--state", before, given="y\n")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"{verb.capitalize()} 3 {before} jobs of {QUEUE}?" in ran.err
    assert "--yes" in ran.err
    assert {arrange.state_of(job.id) for job in jobs} == {before}


def test_a_limit_bounds_a_filter_over_all_queues(ropeway: Ropeway, arrange: Arrange):
    for queue in (QUEUE, "other"):
        for _ in range(2):
            arrange.job("failed", queue=queue)

    ran = ropeway("jobs", "retry", "--limit", "3", "--yes", "--json")

    assert (ran.json["done"], ran.json["refused"], ran.json["missing"]) == (3, 0, 0)
    assert [job["queue"] for job in ran.json["jobs"]] == [QUEUE, QUEUE, "other"]


def test_a_filter_that_matches_nothing_does_nothing(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    ran = ropeway("jobs", "retry", "--queue", QUEUE)

    assert (ran.code, ran.out) == (ExitCode.OK, "0 jobs retried\n")


def test_what_is_missing_and_what_is_refused_is_told_per_job(ropeway: Ropeway, arrange: Arrange):
    failed, waiting = arrange.job("failed"), arrange.job()

    refused = ropeway("jobs", "retry", failed.id, waiting.id)
    missing = ropeway("jobs", "retry", "nobody", "--json")

    assert (refused.code, refused.out) == (ExitCode.FAILED, f"{failed.id} retried\n")
    assert f"{waiting.id!r} is waiting" in refused.err
    assert missing.code == ExitCode.NOT_FOUND
    assert missing.json["jobs"] == [{"id": "nobody", "queue": None, "verdict": "missing", "state": None}]


def test_a_running_job_is_removed_by_force_alone(ropeway: Ropeway, arrange: Arrange):
    active = arrange.job("active")

    assert ropeway("jobs", "remove", active.id).code == ExitCode.FAILED
    assert ropeway("jobs", "remove", active.id, "--force").code == ExitCode.OK
    assert arrange.state_of(active.id) is None


def test_a_cancelled_job_keeps_the_reason(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job()

    ropeway("jobs", "cancel", job.id, "--reason", "wrong address")

    assert ropeway("jobs", "show", job.id, "--json").json["job"]["reason"] == "wrong address"


def test_a_reset_gives_all_attempts_again(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job("failed")

    ropeway("jobs", "retry", job.id, "--reset")

    assert ropeway("jobs", "show", job.id, "--json").json["job"]["attempts_made"] == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["retry"], "give the ids"),
        (["remove", "--queue", QUEUE], "--state"),
        (["retry", "--state", "waiting"], "not for waiting"),
        (["remove", "--state", "active"], "not for active"),
        (["retry", "a", "--state", "failed"], "not both"),
        (["retry", "a b"], "job id"),
        (["retry", "--limit", "0"], "--limit"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_told(ropeway: Ropeway, arrange: Arrange, arguments: list[str], hint: str):
    arrange.job()

    ran = ropeway("jobs", *arguments)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert hint in ran.err
