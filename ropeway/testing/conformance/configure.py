from __future__ import annotations

from ...store.contract import Store
from ...store.values import Settings
from ..arrange import entries
from ..factories import NOW, QUEUE


class TestConfigure:
    async def test_a_new_queue_has_no_settings_of_its_own(self, store: Store) -> None:
        assert await store.settings(QUEUE) == Settings()

    async def test_it_answers_all_settings_and_they_stay(self, store: Store) -> None:
        answer = await store.configure(QUEUE, pause=True, pause_names=["send"], max_active=3, now=NOW)

        assert answer == Settings(True, ("send",), 3)
        assert await store.settings(QUEUE) == answer

    async def test_what_is_not_given_stays(self, store: Store) -> None:
        await store.configure(QUEUE, pause=True, pause_names=["send"], max_active=3, now=NOW)

        assert await store.configure(QUEUE, now=NOW) == Settings(True, ("send",), 3)
        assert await store.configure(QUEUE, max_active=4, now=NOW) == Settings(True, ("send",), 4)
        assert await store.configure(QUEUE, pause=False, now=NOW) == Settings(False, ("send",), 4)

    async def test_a_limit_of_nothing_takes_the_limit_away(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=3, now=NOW)

        assert (await store.configure(QUEUE, max_active=0, now=NOW)).max_active is None

    async def test_names_are_paused_and_resumed_one_by_one(self, store: Store) -> None:
        await store.configure(QUEUE, pause_names=["send", "print", "fold"], now=NOW)

        answer = await store.configure(QUEUE, pause_names=["send"], resume_names=["print", "other"], now=NOW)

        assert sorted(answer.paused_names) == ["fold", "send"]

    async def test_another_handle_sees_the_settings(self, store: Store, sibling: Store) -> None:
        await store.configure(QUEUE, pause=True, now=NOW)

        assert await sibling.settings(QUEUE) == Settings(paused=True)

    async def test_another_queue_keeps_its_settings(self, store: Store) -> None:
        await store.configure(QUEUE, pause=True, max_active=1, now=NOW)

        assert await store.settings("parcels") == Settings()

    async def test_a_pause_is_announced_once(self, store: Store) -> None:
        await store.configure(QUEUE, pause=True, now=NOW)
        await store.configure(QUEUE, pause=True, now=NOW)
        await store.configure(QUEUE, pause=False, now=NOW + 1)
        await store.configure(QUEUE, pause=False, now=NOW + 1)

        assert [(entry.what, entry.at, entry.jobs) for entry in await entries(store)] == [
            ("paused", NOW, []),
            ("resumed", NOW + 1, []),
        ]

    async def test_the_pause_of_a_name_is_announced_with_the_name(self, store: Store) -> None:
        await store.configure(QUEUE, pause_names=["send"], now=NOW)
        await store.configure(QUEUE, pause_names=["send"], resume_names=["print"], now=NOW)
        await store.configure(QUEUE, resume_names=["send"], now=NOW)

        assert [(entry.what, entry.detail) for entry in await entries(store)] == [
            ("paused", {"name": "send"}),
            ("resumed", {"name": "send"}),
        ]

    async def test_a_limit_alone_announces_nothing(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=2, now=NOW)

        assert await entries(store) == []
