"""The threads that do calls in rounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway.stores.sqlite.lane import AwaitedCall, Call, Lane, deliver, nothing


@pytest.mark.parametrize("way", ["end", "rest"])
async def test_what_cannot_be_let_go_of_keeps_nobody_waiting(way: str, caplog: pytest.LogCaptureFixture):
    def let_go() -> None:
        raise OSError(5, "the disk is broken")

    def do(calls: list[Call[Any]]) -> None:
        deliver(calls)

    lane = Lane("writer", "jobs.db", do, let_go)
    lane.start()
    if way == "rest":
        rest = lane.rest()
        await asyncio.to_thread(rest.reached.wait)
        rest.over.set()
        call = AwaitedCall(nothing, ())
        lane.put(call)
        await call.future
    lane.stop()
    await lane.end()

    assert "the disk is broken" in caplog.text
