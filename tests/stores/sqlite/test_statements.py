"""Rules of the domain are not repeated in SQL: placeholders stand for them."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

from ropeway.job.events import EVENT_NAMES
from ropeway.job.flows import CHILD_STATES, POLICIES, Effect
from ropeway.job.moves import MOVES
from ropeway.job.record import JobRecord
from ropeway.job.rules import MetricName
from ropeway.job.stalls import GIVEN_UP
from ropeway.job.states import STATES
from ropeway.store.values import Why
from ropeway.stores.sqlite import statements
from ropeway.stores.sqlite.families import Family
from ropeway.stores.sqlite.placeholders import FAMILY, PLACEHOLDERS, RARE

FOLDER = files("ropeway.stores.sqlite") / "sql"
MIGRATIONS = {
    f"migrations/{file.name}": file.read_text("utf-8")
    for file in (FOLDER / "migrations").iterdir()
    if file.name.endswith(".sql")
}
VERBS = {file.name: file.read_text("utf-8") for file in FOLDER.iterdir() if file.name.endswith(".sql")}

WORDS = {
    *STATES, *MOVES, *EVENT_NAMES, *get_args(MetricName), *get_args(Why), *GIVEN_UP.values(),
    *POLICIES, *CHILD_STATES, *get_args(Effect),
} - {"error"}  # fmt: skip
COLUMNS = [*get_args(MetricName), *(state.replace("-", "_") for state in STATES)]
LARGEST_NUMBER = 10
"""Positions in JSON lists, and nothing else."""


def code(text: str) -> str:
    return re.sub(r"--.*", "", text)


@pytest.mark.parametrize("name", [*VERBS, *MIGRATIONS])
def test_no_word_of_the_domain_is_spelled_out(name: str):
    literals = re.findall(r"'([^']*)'", code({**VERBS, **MIGRATIONS}[name]))

    assert not WORDS.intersection(literals)


@pytest.mark.parametrize("name", [*VERBS, *MIGRATIONS])
def test_no_limit_is_spelled_out(name: str):
    numbers = [int(number) for number in re.findall(r"\b\d+\b", code({**VERBS, **MIGRATIONS}[name]))]

    # The length of the inbox's random tag.
    assert [number for number in numbers if number > LARGEST_NUMBER and number != 16] == []


@pytest.mark.parametrize("name", VERBS)
def test_no_list_of_columns_is_spelled_out(name: str):
    column = rf"(?:\w+\.|:)?(?:{'|'.join(COLUMNS)})\b"

    assert not re.search(rf"{column},\s+{column},\s+{column}", code(VERBS[name]))


@pytest.mark.parametrize("name", VERBS)
def test_a_move_carries_all_that_it_does_not_change(name: str):
    tables = "waiting|active|later|finished"
    moves = [
        statement
        for statement in code(VERBS[name]).split(";")
        if re.search(rf"INSERT INTO ({tables})\b", statement)
        and re.search(rf"^(FROM|CROSS JOIN) ({tables}|whole_job)\b", statement, re.MULTILINE)
    ]

    assert [move for move in moves if "{{CARRIED" not in move] == []


def test_a_record_has_every_field_in_its_order():
    start, _, without = str(PLACEHOLDERS["RECORD"]).rpartition("json_array(")
    _, _, with_rare = start.partition("json_array(")
    fields = without.replace("whole_job.ord,", "whole_job.order,").replace(":queue_name", "whole_job.queue")

    assert re.findall(r"whole_job\.(\w+)", fields) == [*JobRecord.__struct_fields__[: -len(RARE)]]
    assert with_rare.startswith(without.removesuffix("))"))
    assert JobRecord.__struct_fields__[-len(RARE) :] == (*RARE,)


def test_a_family_is_read_and_written_in_the_order_of_its_fields():
    assert Family.__struct_fields__[: len(FAMILY)] == FAMILY


def test_an_unknown_placeholder_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statements, "PLACEHOLDERS", {})
    statements.statements.cache_clear()

    with pytest.raises(LookupError, match="ACTIVE"):
        statements.statements("look")
