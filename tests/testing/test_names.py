"""What tests of users import is there, and costs nothing until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ropeway
from ropeway import testing

PACKAGES = [ropeway, testing]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_the_one_that_type_checkers_see(package):
    seen: dict[str, str | None] = {}
    (checked,) = [node for node in ast.parse(Path(package.__file__).read_text()).body if isinstance(node, ast.If)]
    for node in checked.body:
        assert isinstance(node, ast.ImportFrom)
        seen |= {alias.name: node.module for alias in node.names}

    assert sorted(seen) == sorted(package.__all__) == list(package.__all__)
    for name, module in seen.items():
        home = import_module(f".{module}", package.__name__)
        assert getattr(package, name) is getattr(home, name)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_name_that_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Cue'"):
        package.Cue  # noqa: B018 - what the test is about

    assert set(package.__all__) <= set(dir(package))


def test_the_kit_needs_neither_pytest_nor_hypothesis():
    code = "import sys; from ropeway.testing import *; assert not {'pytest', 'hypothesis'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
