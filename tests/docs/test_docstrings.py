"""Every public name says what it does, in words of its own."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

import ropeway
import ropeway.testing
from docs.derived.api import ALIASES
from docs.derived.source import alias_of

NAMES = [(module, name) for module in (ropeway, ropeway.testing) for name in module.__all__]


def words_of(value: Any) -> str | None:
    return vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_public_name_has_a_docstring_of_its_own(module: ModuleType, name: str):
    text = words_of(getattr(module, name)) if name not in ALIASES else alias_of(name, ALIASES[name])[1]

    assert text, f"{name} has no docstring"
    assert text.splitlines()[0].strip(), f"the first line of {name}'s docstring is empty"
