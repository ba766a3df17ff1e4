"""Test helpers, for applications and for Ropeway itself.

For applications: a manual clock (`FakeClock`), a store that uses it (`FakeStore`), `drain` to run all jobs of a queue,
`assert_added` to check what was added, `isolated` for applications with module-level queues, and a pytest plugin with
fixtures for all of them. For Ropeway: the conformance suite of stores, an auditor, a state machine and small factories.
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
    from .webhooks import WebhookRequest
else:
    from ..lazy import lazily

    # Every pytest run loads the plugin of this package, and most of them use nothing of it.
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
            "webhooks": "WebhookRequest",
        },
    )

__all__ = [
    "AddedJob",
    "Attempt",
    "Drained",
    "FakeClock",
    "FakeStore",
    "WebhookRequest",
    "added",
    "assert_added",
    "assert_not_added",
    "drain",
    "drain_sync",
    "isolated",
]
