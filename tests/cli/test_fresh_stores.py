"""A store that nobody has used yet looks the same wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ropeway.cli.exit_codes import ExitCode
from tests.stores.databases import new_database_place

from .conftest import Ran, Ropeway
from .fresh import FRESH

Look = Callable[..., Ran]


@pytest.fixture(params=FRESH)
def look(request: pytest.FixtureRequest, ropeway: Ropeway, tmp_path: Path) -> Look:
    """Runs a command on an empty folder, server or database."""
    url = FRESH[request.param](tmp_path)
    return lambda *arguments: ropeway(*arguments, "--url", url)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [(["queues", "list"], {"queues": []}), (["jobs", "list"], {"jobs": [], "next": None, "more": False})],
    ids=str,
)
def test_an_empty_list_is_an_empty_list(look: Look, arguments: list[str], answer: dict[str, object]):
    ran = look(*arguments, "--json")

    assert ran.code == ExitCode.OK
    assert {**ran.json, **answer} == ran.json
    assert "yet" in look("queues", "list").err


def test_the_live_view_is_empty(look: Look):
    ran = look("top", "--once", "--json")

    assert (ran.code, ran.json["queues"], ran.json["trouble"]) == (ExitCode.OK, [], None)


@pytest.mark.parametrize(
    "arguments",
    [["jobs", "show", "a"], ["events", "letters"], ["queues", "resume", "letters"], ["queues", "drain", "letters"]],
    ids=" ".join,
)
def test_what_is_not_there_is_not_found(look: Look, arguments: list[str]):
    assert look(*arguments).code == ExitCode.NOT_FOUND


def test_the_doctor_finds_no_problem_and_no_queues(look: Look):
    document = look("doctor", "--json").json

    assert document["ok"]
    [doubt] = [finding for finding in document["findings"] if finding["level"] != "ok" and finding["check"] == "queues"]
    assert (doubt["level"], doubt["what"]) == ("warning", "there is none yet")
    assert "--url" in doubt["remedy"]


def test_a_queue_is_paused_before_its_first_job(look: Look):
    refused = look("queues", "pause", "letters")
    paused = look("queues", "pause", "letters", "--create")
    misspelt = look("queues", "pause", "leters")
    look("add", "letters", "send")

    assert (refused.code, misspelt.code) == (ExitCode.NOT_FOUND, ExitCode.NOT_FOUND)
    assert (paused.code, paused.out, paused.err) == (ExitCode.OK, "letters is paused\n", "")
    assert "did you mean 'letters'?" in misspelt.err
    assert [queue["paused"] for queue in look("queues", "list", "--json").json["queues"]] == [True]


def test_a_schema_that_only_a_migration_may_make_is_told(ropeway: Ropeway):
    url = f"{new_database_place()}&migrate=off"

    looked = ropeway("doctor", "--url", url)
    refused = ropeway("queues", "pause", "letters", "--create", "--url", url)

    assert looked.code == ExitCode.OK
    assert "run `ropeway migrate`" in looked.out
    assert refused.code == ExitCode.STORE
    assert ropeway("migrate", "--url", url).code == ExitCode.OK
    assert ropeway("queues", "pause", "letters", "--create", "--url", url).code == ExitCode.OK
