"""For tests, yours and ours.

Yours: a clock that is moved by hand (`FakeClock`) and a store that lives by it (`FakeStore`), `drain` to run a queue to
its end, `assert_added` for what was added, `isolated` for applications that have queues of their own, and a pytest
plugin with fixtures for all of them. Ours: the suite that every store passes, an auditor, a model and small factories.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .adds import AddedJob
    from .asserting import added, assert_added, assert_not_added
    from .clock import FakeClock
    from .drained import Attempt, Drained
    from .draining import drain, drain_sync
    from .isolation import isolated
    from .store import FakeStore

__all__ = [
    "AddedJob",
    "Attempt",
    "Drained",
    "FakeClock",
    "FakeStore",
    "added",
    "assert_added",
    "assert_not_added",
    "drain",
    "drain_sync",
    "isolated",
]

# Every pytest run loads the plugin beside this file, and most of them need nothing of it.
_HOMES: Final = {
    "AddedJob": "adds",
    "Attempt": "drained",
    "Drained": "drained",
    "FakeClock": "clock",
    "FakeStore": "store",
    "added": "asserting",
    "assert_added": "asserting",
    "assert_not_added": "asserting",
    "drain": "draining",
    "drain_sync": "draining",
    "isolated": "isolation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
