"""For all tests: how deep they go, how Hypothesis searches, asserts that explain themselves, and Ctrl+C."""

import gc
import os
import signal
import sys
from pkgutil import iter_modules

import pytest
from hypothesis import HealthCheck, settings

import ropeway.testing

# Not the package itself nor its plugin, which pytest may have loaded before it comes here.
_modules = [f"ropeway.testing.{module.name}" for module in iter_modules(ropeway.testing.__path__)]
pytest.register_assert_rewrite(*(name for name in _modules if name not in sys.modules))

# The same examples in every run: a failure is the change's fault. ROPEWAY_EXAMPLES=5000 looks for new ones.
_examples = int(os.environ.get("ROPEWAY_EXAMPLES", "0"))
settings.register_profile(
    "ropeway",
    max_examples=_examples or 50,
    derandomize=not _examples,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ropeway")

# Collecting makes objects that all remain: looking for garbage among them is a fifth of its time.
gc.disable()

# Hundreds of programs are started: where the shell forbids it, each would compile Ropeway anew instead of once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that runs the tests in the background has them ignore it, and so would all programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    deep = os.environ.get("ROPEWAY_DEEP", "0") != "0"
    parser.addoption(
        "--deep", action="store_true", default=deep, help="run every test, on every store (ROPEWAY_DEEP=1)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("deep"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("deep")])
        items[:] = [item for item in items if not item.get_closest_marker("deep")]


def pytest_collection_finish() -> None:
    """Thousands of tests are objects too: no search for garbage needs to go through them again."""
    gc.collect()
    gc.freeze()
    gc.enable()
