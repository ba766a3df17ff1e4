"""Several servers that could answer, asked one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from ropeway.errors import StoreUnavailable
from ropeway.stores.redis.hedging import first_answer

LONG = 3_600.0


class Servers:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.left: list[str] = []

    async def answer(self, name: str) -> str:
        self.asked.append(name)
        return name

    async def fail(self, name: str) -> str:
        self.asked.append(name)
        raise StoreUnavailable(name, "on purpose")

    async def hang(self, name: str) -> str:
        self.asked.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            self.left.append(name)
        raise AssertionError


def calls(servers: Servers, *kinds: str) -> list[Callable[[], Coroutine[Any, Any, str]]]:
    return [partial(getattr(servers, kind), f"{kind} {n}") for n, kind in enumerate(kinds)]


async def test_the_first_that_answers_is_asked_alone():
    servers = Servers()

    assert await first_answer(calls(servers, "answer", "answer"), LONG) == "answer 0"
    assert servers.asked == ["answer 0"]


async def test_one_that_fails_gives_way_at_once():
    servers = Servers()

    assert await first_answer(calls(servers, "fail", "fail", "answer"), LONG) == "answer 2"


async def test_one_that_hangs_has_a_head_start_and_is_left_when_another_answers():
    servers = Servers()

    assert await first_answer(calls(servers, "hang", "fail", "answer"), 0.01) == "answer 2"
    assert servers.left == ["hang 0"]


async def test_the_last_error_is_raised_when_all_fail():
    with pytest.raises(StoreUnavailable, match="fail 1"):
        await first_answer(calls(Servers(), "fail", "fail"), LONG)


async def test_a_caller_that_is_cancelled_leaves_nobody_asked():
    servers = Servers()
    asking = asyncio.create_task(first_answer(calls(servers, "hang", "hang"), 0))
    while len(servers.asked) < 2:  # noqa: ASYNC110 - they tell nobody
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert sorted(servers.left) == ["hang 0", "hang 1"]
