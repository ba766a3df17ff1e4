from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from ropeway.errors import StoreClosed
from ropeway.store.single_flight import SingleFlight


class Work:
    """Is done when a test says so, and knows how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        self.reached.set()
        await self.opened.wait()
        if self.error is not None:
            raise self.error
        return self.begun


@pytest.fixture
async def work() -> Work:
    return Work()


@pytest.fixture
async def shared(work: Work) -> SingleFlight[int]:
    return SingleFlight("test://", work)


async def test_all_who_wait_share_it_and_who_comes_later_begins_anew(work: Work, shared: SingleFlight[int]):
    shared.begin()
    waiting = [asyncio.create_task(shared.result()) for _ in range(3)]
    await work.reached.wait()
    work.opened.set()

    assert await asyncio.gather(*waiting) == [1, 1, 1]
    assert await shared.result() == 2


async def test_it_goes_on_when_one_who_waits_is_cancelled(work: Work, shared: SingleFlight[int]):
    cancelled, other = (asyncio.create_task(shared.result()) for _ in range(2))
    await work.reached.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    work.opened.set()

    assert await other == 1


async def test_what_went_wrong_is_told_to_those_who_wait_and_to_nobody_else(work: Work, shared: SingleFlight[int]):
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    work.error = RuntimeError("on purpose")
    work.opened.set()
    with pytest.raises(RuntimeError, match="on purpose"):
        await shared.result()

    await asyncio.wait([shared.begin()])
    del shared
    gc.collect()

    assert unheard == []


@pytest.mark.parametrize("has_begun", [True, False])
async def test_who_waits_when_it_is_closed_is_told_so(work: Work, shared: SingleFlight[int], has_begun: bool):
    waiting = asyncio.create_task(shared.result())
    if has_begun:
        await work.reached.wait()
    else:
        # One turn of the loop, in which the caller comes to wait; the work's comes next.
        await asyncio.sleep(0)

    await shared.close()

    assert work.begun == has_begun
    with pytest.raises(StoreClosed):
        await waiting
    with pytest.raises(StoreClosed):
        await shared.result()


async def test_who_is_cancelled_while_it_is_closed_is_cancelled(work: Work, shared: SingleFlight[int]):
    waiting = asyncio.create_task(shared.result())
    await work.reached.wait()
    waiting.cancel()

    await shared.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting
