"""Changing a job that is not finished."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway


def _seen(arrange: Arrange, id: str) -> Any:
    return arrange.on_queue(lambda queue: queue.get(id)).snapshot


def test_all_that_is_given_is_changed(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job("delayed")

    ran = ropeway("jobs", "change", job.id, "--priority", "-10", "--at", "2200-01-01T00:00Z", "--data", '{"to": "me"}')

    assert (ran.code, ran.out) == (ExitCode.OK, f"{job.id} changed\n")
    seen = _seen(arrange, job.id)
    assert (seen.priority, seen.due_at.year, seen.data) == (-10, 2200, {"to": "me"})


def test_data_may_come_from_standard_input(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job()

    ran = ropeway("jobs", "change", job.id, "--data", "-", "--json", given="[1, 2]")

    assert ran.json == {"id": job.id, "queue": QUEUE, "changed": ["data"]}
    assert _seen(arrange, job.id).data == [1, 2]


def test_a_place_in_the_line_is_given_and_taken_back(ropeway: Ropeway, arrange: Arrange):
    first, second = arrange.job(), arrange.job()

    def line() -> list[str]:
        return [job.id for job in arrange.on_queue(lambda queue: queue.find("waiting"))]

    ropeway("jobs", "change", second.id, "--lifo")
    assert line() == [second.id, first.id]
    ropeway("jobs", "change", second.id, "--fifo")
    assert line() == [first.id, second.id]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([], "say what to change"),
        (["--delay", "1h", "--at", "2200-01-01"], "not both"),
        (["--delay", "soon"], "is not a duration"),
        (["--priority", "9999999"], "use -2097152 to 2097152"),
        (["--data", "{"], "is not JSON"),
    ],
)
def test_what_cannot_be_meant_is_refused(ropeway: Ropeway, arrange: Arrange, change: list[str], said: str):
    job = arrange.job("delayed")
    before = _seen(arrange, job.id)

    ran = ropeway("jobs", "change", job.id, *change)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert said in ran.err
    assert _seen(arrange, job.id) == before


def test_a_finished_job_and_one_that_is_not_there_have_codes_of_their_own(ropeway: Ropeway, arrange: Arrange):
    done = arrange.job("completed")

    assert ropeway("jobs", "change", done.id, "--priority", "1").code == ExitCode.FAILED
    assert ropeway("jobs", "change", "nobody", "--priority", "1").code == ExitCode.NOT_FOUND
