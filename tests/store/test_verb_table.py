"""Tables of verbs are read from the modules of a package."""

from __future__ import annotations

from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from ropeway.store.commands import Cancel, Command, ReadEvents
from ropeway.store.verb_table import verb_table

NUMBERS: Final = count()


def table_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **modules: str) -> dict[type[Command[Any]], str]:
    """The names of the functions in the table of a package with these modules."""
    package = folder / f"verbs_{next(NUMBERS)}"
    package.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    table = verb_table(package.name, import_module(package.name).__path__)
    return {command: verb.__module__.partition(".")[2] for command, verb in table.items()}


def test_a_function_named_as_a_verb_executes_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = table_of(
        tmp_path,
        monkeypatch,
        operate="def cancel(): ...\ndef cancel_all(): ...",
        look="async def events(): ...\nclock = None",
    )

    assert table == {Cancel: "operate", ReadEvents: "look"}


def test_an_imported_function_counts_where_it_is_defined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = table_of(tmp_path, monkeypatch, a="from .operate import cancel", operate="def cancel(): ...")

    assert table == {Cancel: "operate"}


def test_two_functions_for_one_command_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TypeError, match="Cancel is executed by two functions"):
        table_of(tmp_path, monkeypatch, a="def cancel(): ...", b="def cancel(): ...")
