"""The threads that do calls in rounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway.stores.sqlite.calls import AwaitedCall, BlockingCall, Call, CallThread, deliver, no_op


@pytest.mark.parametrize("way", ["end", "rest"])
async def test_what_cannot_be_let_go_of_keeps_nobody_waiting(way: str, caplog: pytest.LogCaptureFixture):
    def close_connection() -> None:
        raise OSError(5, "the disk is broken")

    def do(calls: list[Call[Any]]) -> None:
        deliver(calls)

    thread = CallThread("writer", "jobs.db", do, close_connection)
    thread.start()
    if way == "rest":
        pause = thread.pause()
        await asyncio.to_thread(pause.reached.wait)
        pause.over.set()
        call = AwaitedCall(no_op, ())
        thread.put(call)
        await call.future
    thread.stop()
    await thread.end()

    assert "the disk is broken" in caplog.text


async def test_a_call_for_later_has_its_turn_among_others_that_never_cease():
    done: list[Call[Any]] = []
    later = AwaitedCall(no_op, ())

    def do(calls: list[Call[Any]]) -> None:
        done.extend(calls)
        if later not in done:
            thread.put(BlockingCall(no_op, ()))
        deliver(calls)

    thread = CallThread("writer", "jobs.db", do, lambda: None)
    thread.put(BlockingCall(no_op, ()))
    thread.schedule(0.01, later)
    thread.start()

    await later.future
    thread.stop()
    await thread.end()


async def test_of_two_calls_for_later_the_second_is_dropped():
    done: list[Call[Any]] = []

    def do(calls: list[Call[Any]]) -> None:
        done.extend(calls)
        deliver(calls)

    thread = CallThread("writer", "jobs.db", do, lambda: None)
    first, second, again = [AwaitedCall(no_op, ()) for _ in range(3)]
    thread.schedule(0.01, first)
    thread.schedule(0.0, second)
    thread.start()
    await first.future
    thread.schedule(0.01, again)
    await again.future
    thread.stop()
    await thread.end()

    assert done == [first, again]
