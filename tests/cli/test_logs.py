"""What a worker logs."""

from __future__ import annotations

import json
import logging
import sys

import click
import pytest

from ropeway.cli.logs import Json, Pretty

ID = "0199a3c0-6f0e-7c31-9d55-0d3c99d0b8f1"


def record(message: str, *arguments: object, error: bool = False) -> logging.LogRecord:
    caught = None
    if error:
        try:
            int("no luck")
        except ValueError:
            caught = sys.exc_info()
    return logging.LogRecord("ropeway", logging.WARNING, __file__, 1, message, arguments, caught)


def test_a_pretty_line_has_time_level_and_message():
    line = Pretty("", is_coloured=False).format(record("%s failed", "job"))

    assert line.split(maxsplit=1)[1] == "WARNING job failed"


def test_the_process_is_marked_where_there_are_several():
    assert "WARNING [2] hello" in Pretty("[2] ", is_coloured=False).format(record("hello"))
    assert json.loads(Json("2").format(record("hello")))["process"] == "2"
    assert "process" not in json.loads(Json("").format(record("hello")))


def test_further_lines_and_traces_stand_indented():
    first, *rest = Pretty("", is_coloured=False).format(record("one\ntwo", error=True)).splitlines()

    assert first.endswith("one")
    assert all(line.startswith("    ") for line in rest)
    assert rest[-1] == "    ValueError: invalid literal for int() with base 10: 'no luck'"


def test_nothing_that_is_logged_can_act_on_the_terminal():
    assert "\x1b" not in Pretty("", is_coloured=False).format(record("\x1b[2J\r\x07"))


def test_colours_are_for_terminals():
    assert "\x1b[33mWARNING" in Pretty("", is_coloured=True).format(record("hello"))


def about_a_job(event: str, message: str, id: str = "7") -> logging.LogRecord:
    told = record("%s", message)
    told.facts = {"event": event, "queue": "letters", "job_id": id, "job_name": "send"}
    return told


def test_what_became_of_a_job_stands_out():
    line = Pretty("", is_coloured=True).format(about_a_job("completed", "send completed in 3 ms (letters 7)"))

    assert line.endswith("\x1b[1msend\x1b[0m\x1b[32m completed in 3 ms \x1b[0m\x1b[2m(letters 7)\x1b[0m")


@pytest.mark.parametrize("is_coloured", [True, False])
def test_colours_change_no_letter(is_coloured: bool):
    message = "send failed (letters 7): it was (letters 7)\nline 2"

    line = Pretty("", is_coloured=is_coloured).format(about_a_job("failed", message))

    assert click.unstyle(line).split(maxsplit=2)[2] == message.replace("\n", "\n    ")


def test_json_loses_no_message_to_a_letter_that_is_half():
    entry = json.loads(Json("").format(record("caf%s is no file", "\udce9")))

    assert entry["message"] == "caf\udce9 is no file"


def test_json_is_one_object_a_line_with_the_facts_of_the_record():
    with_facts = record("%s\nstarts", "worker", error=True)
    with_facts.facts = {"queues": ["letters"]}

    line = Json("").format(with_facts)

    assert "\n" not in line
    entry = json.loads(line)
    assert entry["at"].endswith("Z")
    assert (entry["level"], entry["logger"], entry["message"]) == ("warning", "ropeway", "worker\nstarts")
    assert entry["queues"] == ["letters"]
    assert entry["exception"].endswith("'no luck'")


@pytest.mark.parametrize(("room", "shown"), [(129, "99d0b8f1"), (130, ID), (None, ID)])
@pytest.mark.parametrize("is_coloured", [False, True])
def test_a_narrow_terminal_shows_short_ids(room: int | None, shown: str, *, is_coloured: bool):
    told = about_a_job("completed", f"send completed in 3 ms (letters {ID})", ID)

    line = Pretty("", is_coloured=is_coloured, room=lambda: room).format(told)

    assert f"(letters {shown})" in line
