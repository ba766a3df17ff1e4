from __future__ import annotations

from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import active
from ..factories import MINUTE, NOW, QUEUE, SECOND, complete, revoked_lock


class TestRevoked:
    async def test_without_a_place_it_says_only_where_to_begin(self, store: Store) -> None:
        held = await active(store)
        await store.cancel(QUEUE, [held.id], now=NOW)

        start = await store.revoked(QUEUE)

        assert start.locks == []
        assert (await store.revoked(QUEUE, start.cursor)).locks == []

    async def test_locks_come_in_the_order_they_were_revoked(self, store: Store) -> None:
        first, second, third = [await active(store) for _ in range(3)]
        start = (await store.revoked(QUEUE)).cursor
        await store.cancel(QUEUE, [second.id], now=NOW)
        await store.remove(QUEUE, [third.id], force=True, now=NOW)
        await store.cancel(QUEUE, [first.id], now=NOW)

        assert (await store.revoked(QUEUE, start)).locks == [
            revoked_lock(second),
            revoked_lock(third, "removed"),
            revoked_lock(first),
        ]

    async def test_the_cursor_goes_on_where_reading_ended(self, store: Store) -> None:
        first, second = [await active(store) for _ in range(2)]
        start = (await store.revoked(QUEUE)).cursor
        await store.cancel(QUEUE, [first.id], now=NOW)
        read = await store.revoked(QUEUE, start)
        await store.cancel(QUEUE, [second.id], now=NOW)

        assert read.locks == [revoked_lock(first)]
        assert (await store.revoked(QUEUE, read.cursor)).locks == [revoked_lock(second)]

    async def test_a_lock_that_ended_by_itself_is_not_revoked(self, store: Store) -> None:
        first, _ = [await active(store) for _ in range(2)]
        start = (await store.revoked(QUEUE)).cursor
        await store.settle(QUEUE, [complete(first)], now=NOW)
        await store.tick(QUEUE, StallRules(), now=NOW + MINUTE)

        assert (await store.revoked(QUEUE, start)).locks == []

    async def test_a_repeated_cancel_revokes_nothing_more(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor
        for _ in range(2):
            await store.cancel(QUEUE, [held.id], now=NOW)

        assert len((await store.revoked(QUEUE, start)).locks) == 1

    async def test_locks_are_kept_for_a_minute(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor
        await store.cancel(QUEUE, [held.id], now=NOW)

        await store.tick(QUEUE, StallRules(), now=NOW + MINUTE - SECOND)

        assert (await store.revoked(QUEUE, start)).locks == [revoked_lock(held)]

    async def test_then_they_are_forgotten(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor
        await store.cancel(QUEUE, [held.id], now=NOW)

        await store.tick(QUEUE, StallRules(), now=NOW + MINUTE + SECOND)

        assert (await store.revoked(QUEUE, start)).locks == []

    async def test_a_forgotten_place_still_leads_to_what_came_after(self, store: Store) -> None:
        first, second = [await active(store) for _ in range(2)]
        start = (await store.revoked(QUEUE)).cursor
        await store.cancel(QUEUE, [first.id], now=NOW)
        place = (await store.revoked(QUEUE, start)).cursor
        await store.tick(QUEUE, StallRules(10), now=NOW + SECOND)
        await store.cancel(QUEUE, [second.id], now=NOW + MINUTE)
        await store.tick(QUEUE, StallRules(10), now=NOW + MINUTE + SECOND)

        assert (await store.revoked(QUEUE, place)).locks == [revoked_lock(second)]

    async def test_queues_are_apart(self, store: Store) -> None:
        other = await active(store, queue="parcels")
        start = (await store.revoked(QUEUE)).cursor
        there = (await store.revoked("parcels")).cursor
        await store.cancel("parcels", [other.id], now=NOW)

        assert (await store.revoked(QUEUE, start)).locks == []
        assert (await store.revoked("parcels", there)).locks == [revoked_lock(other)]
