"""For tests, yours and ours.

Yours: a clock that is moved by hand (`FakeClock`) and a store that lives by it (`FakeStore`), `drain` to run a queue to
its end, `assert_added` for what was added, `isolated` for applications that have queues of their own, and a pytest
plugin with fixtures for all of them. Ours: the suite that every store passes, an auditor, a model and small factories.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .adds import AddedJob
    from .asserting import added, assert_added, assert_not_added
    from .clock import FakeClock
    from .drained import Attempt, Drained
    from .draining import drain, drain_sync
    from .isolation import isolated
    from .store import FakeStore
else:
    from ..lazy import lazily

    # Every pytest run loads the plugin beside this file, and most of them need nothing of it.
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "adds": "AddedJob",
            "asserting": "added assert_added assert_not_added",
            "clock": "FakeClock",
            "drained": "Attempt Drained",
            "draining": "drain drain_sync",
            "isolation": "isolated",
            "store": "FakeStore",
        },
    )

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
