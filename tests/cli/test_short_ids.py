"""Jobs by the last letters of their ids, as `ropeway top` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.ids import is_short, short_id
from ropeway.cli.jobs import searching
from ropeway.job.ids import new_id
from ropeway.job.states import STATES, State
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway
from .fresh import FRESH

ID = "0190b3f2-5c5e-7a2b-9d4e-1f2a3b4c5d6e"
NEIGHBOUR = "0190b3f2-5c5e-7a2b-9d4e-aaaaaaaa5d6e"


def test_an_id_that_ropeway_made_is_known_by_its_end():
    assert short_id(ID) == "3b4c5d6e"
    assert short_id("welcome-42") == "welcome-42"


@pytest.mark.parametrize("given", ["3b4c5d6e", "5D6E", ID[1:]])
def test_the_end_of_an_id_is_short(given: str):
    assert is_short(given)


@pytest.mark.parametrize("given", ["d6e", "welcome-42", ID])
def test_few_letters_and_ids_of_the_application_are_not(given: str):
    assert not is_short(given)


@pytest.mark.parametrize("state", [state for state in STATES if state != "waiting-children"])
def test_a_job_of_any_state_and_queue_is_found(ropeway: Ropeway, arrange: Arrange, state: State):
    arrange.job()
    job = arrange.job(state, queue="other", id=new_id())

    shown = ropeway("jobs", "show", short_id(job.id), "--json")

    assert (shown.code, shown.json["job"]["id"]) == (ExitCode.OK, job.id)


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (["show", "{}"], "completed"),
        (["logs", "{}"], "active"),
        (["clear-logs", "{}", "--yes"], "active"),
        (["change", "{}", "--priority", "3"], "waiting"),
        (["cancel", "{}"], "waiting"),
        (["promote", "{}"], "delayed"),
        (["retry", "{}"], "failed"),
        (["remove", "{}"], "completed"),
    ],
)
def test_every_command_takes_a_short_id(ropeway: Ropeway, arrange: Arrange, command: list[str], state: State):
    job = arrange.job(state, id=new_id())

    ran = ropeway("jobs", *(part.format(short_id(job.id)) for part in command))

    assert (ran.code, ran.err) == (ExitCode.OK, "")


def test_what_is_moved_is_named_in_full(ropeway: Ropeway, arrange: Arrange):
    job = arrange.job(id=new_id())

    ran = ropeway("jobs", "cancel", short_id(job.id), job.id)

    assert ran.out == f"{job.id} cancelled\n"


def test_events_are_chosen_by_a_short_id(ropeway: Ropeway, arrange: Arrange):
    job, _ = arrange.job(id=new_id()), arrange.job(id=new_id())

    lines = ropeway("events", QUEUE, "--job", short_id(job.id)).out.splitlines()

    assert lines
    assert all(job.id in line for line in lines)


@pytest.mark.parametrize("verb", ["show", "remove"])
def test_a_short_id_of_several_jobs_lists_them_and_takes_none(ropeway: Ropeway, arrange: Arrange, verb: str):
    arrange.job("failed", id=ID, name="send")
    arrange.job("waiting", id=NEIGHBOUR, name="print", queue="other")

    ran = ropeway("jobs", verb, "5d6e")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    listed = sorted(line.split() for line in ran.err.splitlines()[:-1])
    assert [line[:4] for line in listed] == [[ID, QUEUE, "send", "failed"], [NEIGHBOUR, "other", "print", "waiting"]]
    assert "give more of the one you mean" in ran.err
    assert (arrange.state_of(ID), arrange.state_of(NEIGHBOUR, "other")) == ("failed", "waiting")


def test_a_queue_settles_which_job_is_meant(ropeway: Ropeway, arrange: Arrange):
    arrange.job(id=ID)
    arrange.job(id=NEIGHBOUR, queue="other")

    assert ropeway("jobs", "cancel", "5d6e", "--queue", "other").out == f"{NEIGHBOUR} cancelled\n"


def test_a_whole_id_is_never_taken_for_the_end_of_another(ropeway: Ropeway, arrange: Arrange):
    arrange.job(id=ID)
    arrange.job(id="5d6e")

    assert ropeway("jobs", "cancel", "5d6e").out == "5d6e cancelled\n"


@pytest.mark.parametrize("command", [["show"], ["remove"], ["show", "--queue", QUEUE]])
def test_a_search_that_ended_early_says_so(
    ropeway: Ropeway, arrange: Arrange, monkeypatch: pytest.MonkeyPatch, command: list[Any]
):
    for limit, value in (("SEARCHED", 2), ("_PAGE", 1)):
        monkeypatch.setattr(searching, limit, value)
    old, *_ = [arrange.job(id=new_id()) for _ in range(3)]

    ran = ropeway("jobs", command[0], short_id(old.id), *command[1:])

    assert ran.code == ExitCode.NOT_FOUND
    assert "give the whole id" in ran.err


def test_what_was_never_there_is_not_found(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    ran = ropeway("jobs", "show", "ffffffff")

    assert ran.code == ExitCode.NOT_FOUND
    assert "give the whole id" not in ran.err


@pytest.mark.parametrize("store", FRESH)
def test_every_store_is_searched(ropeway: Ropeway, tmp_path: Path, store: str):
    url = FRESH[store](tmp_path)
    id = ropeway("add", QUEUE, "send", "--url", url).out.strip()
    ropeway("add", QUEUE, "send", "--delay", "1h", "--url", url)

    ran = ropeway("jobs", "cancel", short_id(id), "--url", url)

    assert (ran.code, ran.out) == (ExitCode.OK, f"{id} cancelled\n")
    assert ropeway("jobs", "show", short_id(id), "--json", "--url", url).json["job"]["state"] == "cancelled"


def test_too_few_letters_are_told_how_many_will_do(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert "(the end of an id will do, from 4 letters on)" in ropeway("jobs", "show", "5e4").err
    assert "will do" not in ropeway("jobs", "show", "xyz").err
