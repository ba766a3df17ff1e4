"""Which stores a test runs on: in every run, and in a deep one (`--deep`, or ROPEWAY_DEEP=1).

tests                                 every run                        deep run
the suite of the stores               every store; a variant runs      every store and variant
                                      the verbs that it changes
client, worker, marked every_store    every store                      every store, also behind a server
client, worker, others                SQLite                           every store
scenarios, marked every_store         every store of processes         those, also behind a server
scenarios, others                     SQLite                           those, also behind a server
marked deep                           -                                yes
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from ropeway.testing import conformance
from tests.stores.places import EVERYWHERE, PLACES

ONE: Final = ("sqlite",)
"""For tests whose subject is not the store: it answers from a thread, and checks what it is given as servers do."""

# What all stores that answer differently than the one that they vary would show.
_COMMON: Final = frozenset(
    {"TestAdd", "TestSettleAdds", "TestListen", "TestListener", "TestClosed", "TestCancelledCalls"}
)
_HANDLES: Final = frozenset({"TestFork", "TestLoops", "TestThreads"})
VARIED: Final[dict[str, frozenset[str]]] = {
    # Every verb that must see what lies in the inbox.
    "sqlite-inbox": _COMMON
    | _HANDLES
    | {
        "TestCancel",
        "TestChange",
        "TestClaim",
        "TestClaimByName",
        "TestClaimOfDelayed",
        "TestClaimOrder",
        "TestClaimsAtOnce",
        "TestClean",
        "TestCount",
        "TestCountWaiting",
        "TestDedupe",
        "TestDedupeBundles",
        "TestDrained",
        "TestEvents",
        "TestEventsFromAPlace",
        "TestEventsNewestFirst",
        "TestFind",
        "TestFindPages",
        "TestGet",
        "TestObliterate",
        "TestPayloads",
        "TestPromote",
        "TestQueues",
        "TestRemove",
        "TestRepeatedClaim",
        "TestTags",
        "TestWriteSchedules",
    },
    # Whatever concerns several queues, which may be on several nodes, and what stands outside of any queue.
    "redis-cluster": _COMMON
    | _HANDLES
    | {
        "TestClaim",
        "TestAddFlow",
        "TestChildrenAtRunTime",
        "TestClock",
        "TestDeadLetters",
        "TestDedupe",
        "TestDedupeBundles",
        "TestEvents",
        "TestExpiry",
        "TestIdsThatComeBack",
        "TestObliterate",
        "TestPublish",
        "TestQueues",
        "TestRemember",
        "TestRememberForAWhile",
        "TestRememberWithExpectation",
        "TestRelease",
        "TestRetentionCallbacks",
        "TestRetryOfParents",
        "TestRevoked",
        "TestSettleThenClaim",
        "TestSupersede",
        "TestTags",
        "TestTick",
        "TestTickPromotes",
        "TestTickRecovers",
        "TestTickRetention",
        "TestWaitingClaim",
        "TestWebhooks",
        "TestWriteSchedules",
    },
    # What a server in between changes; that each command and each answer can travel is what `memory-wired` shows.
    "remote": _HANDLES
    | {
        "TestAwaitedMarks",
        "TestCancelledCalls",
        "TestClaimsAtOnce",
        "TestClean",
        "TestClock",
        "TestClosed",
        "TestKeptMarks",
        "TestLargestMarks",
        "TestListen",
        "TestListener",
        "TestMarks",
        "TestWaitingClaim",
    },
    # Each command and each answer at least once; what they do is the memory store's.
    "memory-wired": _COMMON
    | {
        "TestAddFlow",
        "TestChange",
        "TestChildrenAtRunTime",
        "TestClaim",
        "TestClean",
        "TestClearLog",
        "TestClock",
        "TestConfigure",
        "TestCount",
        "TestCountWaiting",
        "TestEvents",
        "TestEventsTrimmed",
        "TestFind",
        "TestFindPages",
        "TestGet",
        "TestHistory",
        "TestLog",
        "TestMetrics",
        "TestMoves",
        "TestNamesOfThings",
        "TestObliterate",
        "TestPayloads",
        "TestPublish",
        "TestQueues",
        "TestRemember",
        "TestRenew",
        "TestRevoked",
        "TestSettleBatch",
        "TestSettleRetention",
        "TestSettleThenClaim",
        "TestTags",
        "TestTick",
        "TestTickSaysWhy",
        "TestTrimEvents",
        "TestUpdate",
        "TestWaitingClaim",
    },
}
"""The classes of the suite that a variant runs every time: those of the verbs that it changes."""

assert all(classes <= set(conformance.__all__) for classes in VARIED.values())


def is_deep(config: pytest.Config) -> bool:
    return bool(config.getoption("deep"))


def is_about_stores(metafunc: pytest.Metafunc) -> bool:
    return metafunc.definition.get_closest_marker("every_store") is not None


def runs_everywhere(metafunc: pytest.Metafunc) -> bool:
    return is_deep(metafunc.config) or is_about_stores(metafunc)


def give_stores(metafunc: pytest.Metafunc, stores: Iterable[str]) -> None:
    """Runs the test once on each, if it takes a store and does not name its own."""
    named = any("new_handle" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "new_handle" in metafunc.fixturenames and not named:
        metafunc.parametrize("new_handle", list(stores), indirect=True)


def stores_of_a_user(metafunc: pytest.Metafunc) -> Iterable[str]:
    """For tests of what is built on stores."""
    if is_deep(metafunc.config) and is_about_stores(metafunc):
        return [*PLACES, "remote"]
    return PLACES if runs_everywhere(metafunc) else ONE


def stores_of_the_suite(metafunc: pytest.Metafunc) -> Iterable[str]:
    """For tests of the stores themselves."""
    if is_deep(metafunc.config):
        return EVERYWHERE
    name = metafunc.cls.__name__ if metafunc.cls else ""
    return [*PLACES, *(place for place, classes in VARIED.items() if name in classes)]
