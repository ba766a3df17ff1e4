from __future__ import annotations

import asyncio

from ...store.contract import Store
from ...store.values import Record, StallRules
from ..factories import NOW, QUEUE, SECOND


class TestRemember:
    async def test_a_record_is_recalled_as_it_was(self, store: Store) -> None:
        remembered = await store.remember(Record("worker", "w1", '{"pid":1}'), now=NOW)

        expected = Record("worker", "w1", '{"pid":1}', version=1)
        assert (remembered.verdict, remembered.record) == ("done", expected)
        assert await store.recall("worker", "w1", now=NOW) == [expected]

    async def test_each_writing_adds_one_to_the_version(self, store: Store) -> None:
        for n in range(1, 4):
            remembered = await store.remember(Record("worker", "w1", str(n)), now=NOW)
            assert remembered.record == Record("worker", "w1", str(n), version=n)

    async def test_all_records_of_a_kind_are_recalled(self, store: Store) -> None:
        for kind, key in [("worker", "w2"), ("worker", "w1"), ("schedule", "w3")]:
            await store.remember(Record(kind, key, "1"), now=NOW)

        assert sorted(record.key for record in await store.recall("worker", now=NOW)) == ["w1", "w2"]

    async def test_what_was_never_remembered_is_not_recalled(self, store: Store) -> None:
        assert await store.recall("worker", now=NOW) == []
        assert await store.recall("worker", "w1", now=NOW) == []

    async def test_a_forgotten_record_is_gone(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), now=NOW)

        assert await store.forget("worker", "w1") is True
        assert await store.forget("worker", "w1") is False
        assert await store.recall("worker", now=NOW) == []

    async def test_a_kind_and_a_key_never_run_into_each_other(self, store: Store) -> None:
        await store.remember(Record("a", "b:c", "1"), now=NOW)
        await store.remember(Record("a:b", "c", "2"), now=NOW)

        assert [record.value for record in await store.recall("a", now=NOW)] == ["1"]
        assert [record.value for record in await store.recall("a:b", "c", now=NOW)] == ["2"]

    async def test_another_handle_recalls_it(self, store: Store, sibling: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), now=NOW)

        assert await sibling.recall("worker", now=NOW) == [Record("worker", "w1", "1", version=1)]


class TestRememberWithExpectation:
    async def test_the_expected_version_is_written(self, store: Store) -> None:
        await store.remember(Record("schedule", "s", "1"), now=NOW)

        remembered = await store.remember(Record("schedule", "s", "2"), expect=1, now=NOW)

        assert (remembered.verdict, remembered.record) == ("done", Record("schedule", "s", "2", version=2))

    async def test_another_version_is_left_and_shown(self, store: Store) -> None:
        for value in ("1", "2"):
            await store.remember(Record("schedule", "s", value), now=NOW)

        remembered = await store.remember(Record("schedule", "s", "3"), expect=1, now=NOW)

        current = Record("schedule", "s", "2", version=2)
        assert (remembered.verdict, remembered.record) == ("lost", current)
        assert await store.recall("schedule", "s", now=NOW) == [current]

    async def test_none_is_expected_by_zero(self, store: Store) -> None:
        first = await store.remember(Record("schedule", "s", "1"), expect=0, now=NOW)
        second = await store.remember(Record("schedule", "s", "2"), expect=0, now=NOW)

        assert (first.verdict, second.verdict) == ("done", "lost")

    async def test_what_is_not_there_has_no_version_to_expect(self, store: Store) -> None:
        remembered = await store.remember(Record("schedule", "s", "1"), expect=3, now=NOW)

        assert (remembered.verdict, remembered.record) == ("lost", None)

    async def test_the_version_in_the_record_itself_means_nothing(self, store: Store) -> None:
        remembered = await store.remember(Record("schedule", "s", "1", version=7), now=NOW)

        assert remembered.record == Record("schedule", "s", "1", version=1)

    async def test_of_many_writers_at_once_one_succeeds(self, store: Store, sibling: Store) -> None:
        written = await asyncio.gather(
            *(
                handle.remember(Record("schedule", "s", str(n)), expect=0)
                for n in range(10)
                for handle in (store, sibling)
            )
        )

        assert [remembered.verdict for remembered in written].count("done") == 1

    async def test_what_is_forgotten_at_the_same_moment_is_gone(self, store: Store, sibling: Store) -> None:
        for _ in range(20):
            await store.remember(Record("schedule", "s", "1"), expect=0, now=NOW)

            remembered, was_there = await asyncio.gather(
                store.remember(Record("schedule", "s", "2"), expect=1, now=NOW), sibling.forget("schedule", "s")
            )

            assert was_there
            assert await store.recall("schedule", "s", now=NOW) == []
            assert remembered.verdict == "done" or remembered.record is None


class TestRememberForAWhile:
    async def test_a_record_expires(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW)

        early = await store.recall("worker", now=NOW + SECOND - 1)
        late = await store.recall("worker", now=NOW + SECOND)

        assert early == [Record("worker", "w1", "1", version=1, expires_at=NOW + SECOND)]
        assert late == []

    async def test_writing_it_again_makes_it_last_longer(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW)
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW + 500)

        assert len(await store.recall("worker", "w1", now=NOW + SECOND)) == 1

    async def test_an_expired_record_counts_as_none(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW)

        remembered = await store.remember(Record("worker", "w1", "2"), expect=0, now=NOW + SECOND)

        assert (remembered.verdict, remembered.record) == ("done", Record("worker", "w1", "2", version=1))

    async def test_there_is_no_expired_record_to_forget(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW)

        assert await store.forget("worker", "w1") is False

    async def test_a_tick_leaves_what_lasts(self, store: Store) -> None:
        await store.remember(Record("worker", "w1", "1"), lasting=SECOND, now=NOW)
        await store.remember(Record("worker", "w2", "1"), now=NOW)

        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

        assert [record.key for record in await store.recall("worker", now=NOW)] == ["w2"]
