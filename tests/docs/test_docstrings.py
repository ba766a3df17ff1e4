"""Every public name says what it does, in words of its own."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import ropeway
import ropeway.testing

NAMES = [(module, name) for module in (ropeway, ropeway.testing) for name in module.__all__]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_public_name_has_a_docstring_of_its_own(module: ModuleType, name: str):
    value = getattr(module, name)
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__

    assert text, f"{name} has no docstring"
    assert text.splitlines()[0].strip(), f"the first line of {name}'s docstring is empty"
