"""The details of events on pages."""

from __future__ import annotations

import pytest

from ropeway.job.instants import LAST_INSTANT, moment_of
from ropeway.server.dashboard.event_details import event_details


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("phase-started", {"phase": "process", "number": 2, "of": 3}, [("", "process, 2 of 3")]),
        ("delayed", {"due_at": 60_000}, [("due", moment_of(60_000))]),
        ("delayed", {"due_at": LAST_INSTANT}, [("due", "when it is woken")]),
        (
            "retrying",
            {"reason": "E: no", "attempt": 1, "delay": 0},
            [("", "E: no"), ("attempt", "1"), ("delay", "0 ms")],
        ),
        ("active", {"worker": "web-1:4711:0a1b2c"}, [("worker", "web-1:4711:0a1b2c")]),
        ("failed", {"exhausted": True}, [("", "exhausted")]),
        ("stalled", {"stalled_count": 1}, [("stalled count", "1")]),
        ("progress", {"progress": 33.5}, [("", "33.5 %")]),
        ("progress", {"progress": 5_000_000}, [("", "5000000")]),
        ("progress", {"progress": {"done": 5}}, [("", '{"done": 5}')]),
        ("delayed", {"due_at": "…"}, [("due at", "…")]),
        ("imported", {"due_at": 5}, [("", '{"due_at": 5}')]),
        ("failed", "[hidden]", [("", '"[hidden]"')]),
    ],
)
def test_details_are_told_in_words_and_those_of_unknown_events_as_json(name, data, told):
    assert event_details(name, data) == told
