from __future__ import annotations

import asyncio
import gc
import weakref

from ropeway.store.loops import LoopResources, PerLoop


class Room(LoopResources):
    """Holds its loop, as connections do."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


async def enter(everywhere: PerLoop[Room]) -> Room:
    room = everywhere.here()
    if not room.closes_with_loop:
        await room.close_with_loop()
    return room


def test_a_loop_has_one_place():
    everywhere: PerLoop[Room] = PerLoop(Room)

    async def enter_twice() -> bool:
        return await enter(everywhere) is await enter(everywhere)

    assert asyncio.run(enter_twice())


def test_a_loop_that_ends_closes_its_place_and_is_not_kept():
    everywhere: PerLoop[Room] = PerLoop(Room)

    async def use() -> tuple[Room, weakref.ref[asyncio.AbstractEventLoop]]:
        return await enter(everywhere), weakref.ref(asyncio.get_running_loop())

    room, loop = asyncio.run(use())
    assert room.is_closed

    del room
    gc.collect()
    assert loop() is None


def test_a_loop_that_was_only_closed_is_forgotten_with_the_next_one():
    everywhere: PerLoop[Room] = PerLoop(Room)
    closed = asyncio.new_event_loop()
    closed.run_until_complete(enter(everywhere))
    closed.close()
    loop = weakref.ref(closed)
    del closed

    asyncio.run(enter(everywhere))
    gc.collect()

    assert loop() is None


def test_a_loop_that_goes_on_after_its_shutdown_gets_another_place():
    everywhere: PerLoop[Room] = PerLoop(Room)
    loop = asyncio.new_event_loop()
    first = loop.run_until_complete(enter(everywhere))
    loop.run_until_complete(loop.shutdown_asyncgens())

    async def look() -> Room:
        return everywhere.here()

    assert loop.run_until_complete(look()) is not first
    loop.close()


async def test_closing_reaches_the_places_of_other_threads():
    everywhere: PerLoop[Room] = PerLoop(Room)
    entered, is_over = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    rooms: list[Room] = []

    async def use() -> None:
        rooms.append(await enter(everywhere))
        loop.call_soon_threadsafe(entered.set)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(is_over.wait(), loop))

    using = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(use())))
    await entered.wait()

    await everywhere.close()

    assert rooms[0].is_closed
    is_over.set()
    await using
