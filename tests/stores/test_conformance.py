"""The suite, on every store."""

from importlib import import_module
from pkgutil import iter_modules

from ropeway.testing import conformance
from ropeway.testing.conformance import *  # noqa: F403 - pytest collects what the suite exports


def test_no_part_of_the_suite_is_left_out() -> None:
    modules = [import_module(f"{conformance.__name__}.{found.name}") for found in iter_modules(conformance.__path__)]
    written = {name for module in modules for name in vars(module) if name.startswith("Test")}

    assert written == {name for name in conformance.__all__ if name.startswith("Test")}
