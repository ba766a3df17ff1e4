"""The threads that do calls in rounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway.stores.sqlite.lane import AwaitedCall, BlockingCall, Call, Lane, deliver, nothing


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


async def test_a_call_for_later_has_its_turn_among_others_that_never_cease():
    done: list[Call[Any]] = []
    later = AwaitedCall(nothing, ())

    def do(calls: list[Call[Any]]) -> None:
        done.extend(calls)
        if later not in done:
            lane.put(BlockingCall(nothing, ()))
        deliver(calls)

    lane = Lane("writer", "jobs.db", do, lambda: None)
    lane.put(BlockingCall(nothing, ()))
    lane.put_later(0.01, later)
    lane.start()

    await later.future
    lane.stop()
    await lane.end()


async def test_of_two_calls_for_later_the_second_is_dropped():
    done: list[Call[Any]] = []

    def do(calls: list[Call[Any]]) -> None:
        done.extend(calls)
        deliver(calls)

    lane = Lane("writer", "jobs.db", do, lambda: None)
    first, second, again = [AwaitedCall(nothing, ()) for _ in range(3)]
    lane.put_later(0.01, first)
    lane.put_later(0.0, second)
    lane.start()
    await first.future
    lane.put_later(0.01, again)
    await again.future
    lane.stop()
    await lane.end()

    assert done == [first, again]
