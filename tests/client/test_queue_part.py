"""The base classes of `Queue`, of which its users know nothing."""

from __future__ import annotations

import inspect

from ropeway import Queue


def test_texts_of_python_name_every_call_as_one_of_queue():
    calls = {name: call for name, call in inspect.getmembers(Queue, inspect.isfunction) if name[0] != "_"}

    assert {"add", "cancel", "close", "find", "pause", "pause_worker", "publish", "retry_all"} <= calls.keys()
    assert {call.__qualname__ for call in calls.values()} == {f"Queue.{name}" for name in calls}
