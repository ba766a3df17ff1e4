"""What the files of the `sql` folder may say, and what only one of them may do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

import pytest

from ropeway.job.events import NOTICES, PUBLISHED
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.moves import MOVES
from ropeway.job.states import FINAL, STATES
from ropeway.store.templates import fill
from ropeway.stores.postgres.placeholders import CARRIED, values
from ropeway.stores.postgres.statements import functions, migrations

from .conftest import Execute, OpenStore

FOLDER = files("ropeway.stores.postgres") / "sql"
NAMES = (*MOVES, *NOTICES, PUBLISHED)
NUMBERS = {value for value in values().values() if isinstance(value, int) and value >= 1_000}


def texts() -> Iterator[tuple[str, str]]:
    """Functions by their file's name, without comments; migrations are history, and say what was true then."""
    for folder in (FOLDER, FOLDER / "lib"):
        yield from ((file.name, code_of(file)) for file in folder.iterdir() if file.name.endswith(".sql"))


def code_of(file: Traversable) -> str:
    # The milliseconds of a second are no rule of ours.
    return re.sub(r"^\s*--.*$", "", file.read_text("utf-8").replace("* 1000)", ""), flags=re.MULTILINE)


FUNCTIONS = dict(texts())


@pytest.mark.parametrize("file", FUNCTIONS)
def test_no_rule_of_the_domain_is_spelled_out(file: str):
    text = FUNCTIONS[file]
    names = [name for name in NAMES if re.search(rf"""'{name}'|\["{name}",""", text)]
    numbers = [number for number in NUMBERS if re.search(rf"(?<![.\d]){number}(?![.\d])", text)]

    assert names == []
    assert numbers == []
    assert ", ".join(f"'{state}'" for state in FINAL) not in text
    assert ", ".join(CARRIED) not in re.sub(r"\s+", " ", text)


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(LookupError, match="NOTHING"):
        fill("SELECT {{NOTHING}}", values())


def test_nothing_is_left_to_fill_in():
    assert "{{" not in functions() + "".join(migrations())


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("INSERT INTO ropeway.finished", "end_jobs.sql"),
        ("DELETE FROM ropeway.failure AS f WHERE f.seq = ANY", "drop_jobs.sql"),
    ],
)
def test_one_function_ends_jobs_and_one_removes_them(statement: str, file: str):
    assert [name for name, text in FUNCTIONS.items() if statement in text] == [file]


def test_no_function_but_one_deletes_a_job():
    """Those that add take back what they have just written, if it cannot be added with the rest of its bundle."""
    deleting = {name for name, text in FUNCTIONS.items() if "DELETE FROM ropeway.job " in text}
    assert deleting == {"drop_jobs.sql", "add.sql", "add_one_by_one.sql", "take_keys.sql"}


async def test_the_tables_say_what_the_domain_says(open_store: OpenStore, url: str, execute: Execute):
    await open_store(url).open()

    assert execute("SELECT enum_range(NULL::ropeway.state)::text[]") == [([*STATES],)]
    [(index,)] = execute("SELECT pg_get_indexdef('ropeway.finished_expiring'::regclass)")
    assert f"expires_at < '{LAST_INSTANT}'" in index
