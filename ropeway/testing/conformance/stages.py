"""Retention of a whole queue: finished jobs become stale after one age, and are deleted after another."""

from __future__ import annotations

from typing import Any

import pytest

from ...errors import InvalidOption
from ...job.extras import Extras, Origin
from ...job.instants import LAST_INSTANT
from ...job.record import JobRecord
from ...job.retention import FOREVER, NOT_AT_ALL, Retention
from ...job.stages import CALLBACK_BATCH, CALLBACK_OPTIONS, STAGES, Stage, Stages, callback_id, callback_queue
from ...job.states import FINAL, STATES
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import BATCH, StallRules, Ticked
from ..arrange import active, add, add_one, claim, events_of, is_gone, read
from ..factories import DAY, MINUTE, NOW, QUEUE, SECOND, complete, fail, new_job

HOUR = 60 * MINUTE


async def end_each(store: Store, *ids: str, keep: Retention = FOREVER, now: int = NOW) -> None:
    """Completes, fails and cancels jobs in turn."""
    for number, id in enumerate(ids):
        held = await active(store, id=id)
        match FINAL[number % 3]:
            case "completed":
                await store.settle(QUEUE, [complete(held, '"done"', keep=keep)], now=now)
            case "failed":
                await store.settle(QUEUE, [fail(held, keep=keep)], now=now)
            case "cancelled":
                await store.cancel(QUEUE, [id], "no need", now=now)


async def stale(store: Store, **more: Any) -> list[str]:
    return [job.id for job in (await store.find(Find(QUEUE, STATES, stale=True, **more))).jobs]


async def tick(store: Store, now: int) -> Ticked:
    return await store.tick(QUEUE, StallRules(), now=now)


async def callbacks(store: Store, stage: Stage) -> list[JobRecord]:
    return await claim(store, 10, queue=callback_queue(QUEUE, stage), now=NOW + DAY)


class TestStages:
    async def test_they_are_settings_of_the_queue(self, store: Store) -> None:
        assert (await store.settings(QUEUE)).stages is None

        await store.configure_stages(QUEUE, stale_after=HOUR, callbacks=["deleted"], now=NOW)
        answer = await store.configure_stages(QUEUE, delete_after=DAY, callbacks=["stale"], now=NOW)

        assert answer.stages == Stages(HOUR, DAY, 0, ("stale", "deleted"))
        assert (await store.settings(QUEUE)).stages == answer.stages
        assert QUEUE in await store.queues()
        # Others do not change them.
        assert (await store.configure(QUEUE, pause=True, now=NOW)).stages == answer.stages

    async def test_each_can_be_removed(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, delete_after=DAY, callbacks=["stale"], now=NOW)

        await store.configure_stages(QUEUE, stale_after=0, callbacks=[], now=NOW)

        assert (await store.settings(QUEUE)).stages == Stages(None, DAY)
        assert (await store.configure_stages(QUEUE, delete_after=0, now=NOW)).stages == Stages()

    async def test_an_age_must_be_a_whole_number_of_milliseconds(self, store: Store) -> None:
        with pytest.raises(InvalidOption, match="stale_after"):
            await store.configure_stages(QUEUE, stale_after=-1, now=NOW)

        assert (await store.settings(QUEUE)).stages is None

    async def test_obliterate_forgets_them(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)

        await store.obliterate(QUEUE, now=NOW)

        assert (await store.settings(QUEUE)).stages is None


class TestStale:
    async def test_finished_jobs_become_stale_at_their_age(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        await end_each(store, "a", "b", "c")
        await end_each(store, "later", now=NOW + 1)
        await add_one(store, id="waits")

        early = await tick(store, NOW + HOUR - 1)
        ticked = await tick(store, NOW + HOUR)

        assert (early.stale, early.next_at) == (0, NOW + HOUR)
        assert (ticked.stale, ticked.next_at, ticked.more) == (3, NOW + HOUR + 1, False)
        assert await events_of(store, "stale") == [("a", {}), ("b", {}), ("c", {})]
        assert await stale(store) == ["a", "b", "c"]
        assert (await store.settings(QUEUE)).stages == Stages(HOUR, None, NOW)

    async def test_each_is_announced_once(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        await end_each(store, "a")

        for _ in range(2):
            await tick(store, NOW + HOUR)
        await end_each(store, "b", now=NOW + HOUR)
        ticked = await tick(store, NOW + 2 * HOUR)

        assert (ticked.stale, ticked.next_at) == (1, None)
        assert await events_of(store, "stale") == [("a", {}), ("b", {})]

    async def test_a_queue_without_this_setting_has_none(self, store: Store) -> None:
        await end_each(store, "a")

        ticked = await tick(store, NOW + DAY)

        assert (ticked.stale, await stale(store)) == (0, [])

    async def test_jobs_that_ended_before_it_was_set_become_stale_too(self, store: Store) -> None:
        await end_each(store, "a")
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW + DAY)

        assert (await tick(store, NOW + DAY)).stale == 1
        assert await stale(store) == ["a"]

    async def test_a_job_that_is_retried_by_hand_is_no_longer_stale(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        await end_each(store, "a", "b")
        await tick(store, NOW + HOUR)

        await store.retry(QUEUE, ["a"], now=NOW + HOUR)
        assert await stale(store) == ["b"]
        [held] = await claim(store, now=NOW + HOUR)
        await store.settle(QUEUE, [complete(held, keep=FOREVER)], now=NOW + HOUR)

        assert await stale(store) == ["b"]
        assert (await tick(store, NOW + 2 * HOUR)).stale == 1
        assert sorted(await stale(store)) == ["a", "b"]

    async def test_a_tick_marks_a_batch_and_those_of_the_same_instant(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        ids = [f"job-{number}" for number in range(BATCH + 30)]
        await add(store, *(new_job(id, remove_on_fail=False) for id in ids))
        await store.cancel(QUEUE, ids[: BATCH - 10], now=NOW)
        await store.cancel(QUEUE, ids[BATCH - 10 :], now=NOW + 1)

        first = await tick(store, NOW + DAY)
        second = await tick(store, NOW + DAY)

        assert (first.stale, first.more) == (BATCH + 30, True)
        assert (second.stale, second.more) == (0, False)
        assert len(await events_of(store, "stale")) == BATCH + 30

    async def test_stale_jobs_come_in_pages_in_both_directions(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        await end_each(store, "a", "b", "c", "d", "e", "f", "g")
        await end_each(store, "fresh", "young", "new", now=NOW + 1)
        await tick(store, NOW + HOUR)
        in_order = ["a", "d", "g", "b", "e", "c", "f"]

        for newest_first in (False, True):
            found: list[str] = []
            after: str | None = None
            while True:
                query = Find(QUEUE, STATES, limit=2, after=after, newest_first=newest_first, stale=True)
                page = await store.find(query)
                found += [job.id for job in page.jobs]
                after = page.next
                if after is None:
                    break
            assert found == (in_order[::-1] if newest_first else in_order)

    async def test_they_are_found_by_state_name_and_tag(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, now=NOW)
        await add(
            store,
            new_job("a", tags=("red",), remove_on_fail=False),
            new_job("b", name="print", remove_on_fail=False),
            new_job("fresh", tags=("red",), name="print", remove_on_fail=False),
        )
        await store.cancel(QUEUE, ["a", "b"], now=NOW)
        await store.cancel(QUEUE, ["fresh"], now=NOW + 1)
        await tick(store, NOW + HOUR)

        assert await stale(store, tag="red") == ["a"]
        assert await stale(store, name="print") == ["b"]
        found = await store.find(Find(QUEUE, ("failed", "waiting"), stale=True))
        assert found.jobs == []


class TestDeleteAfter:
    async def test_finished_jobs_are_deleted_at_their_age(self, store: Store) -> None:
        await store.configure_stages(QUEUE, delete_after=HOUR, now=NOW)
        await end_each(store, "a", "b", "c")
        await end_each(store, "later", now=NOW + 1)
        await add_one(store, id="waits")

        early = await tick(store, NOW + HOUR - 1)
        ticked = await tick(store, NOW + HOUR)

        assert (early.removed, early.next_at) == (0, NOW + HOUR)
        assert (ticked.removed, ticked.next_at, ticked.stale) == (3, NOW + HOUR + 1, 0)
        assert await events_of(store, "deleted") == [("a", {}), ("b", {}), ("c", {})]
        removed = [(id, {"prev": state}) for id, state in zip("abc", FINAL, strict=True)]
        assert await events_of(store, "remove") == removed
        assert await is_gone(store, "a")
        assert (await read(store, "later")).state == "completed"
        assert sum(metric.removed for metric in await store.metrics(QUEUE)) == 3

    async def test_it_replaces_the_default_retention(self, store: Store) -> None:
        held = await active(store, id="before")
        await store.settle(QUEUE, [complete(held)], now=NOW)
        await store.configure_stages(QUEUE, delete_after=30 * DAY, now=NOW)
        for id in ("completed", "failed"):
            held = await active(store, id=id)
            await store.settle(QUEUE, [complete(held) if id == "completed" else fail(held)], now=NOW)
        await add_one(store, id="cancelled")
        await store.cancel(QUEUE, ["cancelled"], now=NOW)

        await tick(store, NOW + 10 * DAY)

        assert await is_gone(store, "before")
        for state in FINAL:
            assert (await read(store, state)).expires_at == LAST_INSTANT
        assert (await tick(store, NOW + 30 * DAY)).removed == 3

    async def test_a_job_of_its_own_rule_goes_by_whichever_comes_first(self, store: Store) -> None:
        await store.configure_stages(QUEUE, delete_after=DAY, now=NOW)
        for id, keep in {"at-once": NOT_AT_ALL, "hour": Retention(age=HOUR), "month": Retention(age=30 * DAY)}.items():
            held = await active(store, id=id)
            await store.settle(QUEUE, [complete(held, keep=keep)], now=NOW)

        assert await is_gone(store, "at-once")
        assert (await tick(store, NOW + HOUR)).removed == 1
        assert (await tick(store, NOW + DAY)).removed == 1
        assert await events_of(store, "deleted") == [("month", {})]

    async def test_none_is_deleted_before_it_was_stale(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, delete_after=DAY, now=NOW)
        await end_each(store, "a")

        ticked = await tick(store, NOW + 2 * DAY)

        assert (ticked.stale, ticked.removed) == (1, 1)
        assert await events_of(store, "stale") == await events_of(store, "deleted") == [("a", {})]

    async def test_it_goes_in_batches(self, store: Store) -> None:
        await store.configure_stages(QUEUE, delete_after=HOUR, now=NOW)
        await add(store, *(new_job(f"job-{number}", remove_on_fail=False) for number in range(BATCH + 1)))
        await store.cancel(QUEUE, [f"job-{number}" for number in range(BATCH + 1)], now=NOW)

        first = await tick(store, NOW + HOUR)
        second = await tick(store, NOW + HOUR)

        assert (first.removed, first.more) == (BATCH, True)
        assert (second.removed, second.more) == (1, False)


class TestRetentionCallbacks:
    async def test_stages_with_callbacks_go_in_smaller_batches(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, delete_after=DAY, callbacks=STAGES, now=NOW)
        ids = [f"job-{number}" for number in range(CALLBACK_BATCH + 1)]
        await add(store, *(new_job(id, remove_on_fail=False) for id in ids))
        await store.cancel(QUEUE, ids[:-1], now=NOW)
        await store.cancel(QUEUE, ids[-1:], now=NOW + 1)

        first = await tick(store, NOW + 2 * DAY)
        second = await tick(store, NOW + 2 * DAY)

        assert (first.stale, first.removed, first.more) == (CALLBACK_BATCH, CALLBACK_BATCH, True)
        assert (second.stale, second.removed, second.more) == (1, 1, False)

    async def test_a_stale_job_leaves_a_job_in_a_queue_of_callbacks(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, callbacks=["stale"], now=NOW)
        held = await active(store, id="job", data='{"n":1}', attempts=2)
        await store.settle(QUEUE, [complete(held, '"done"', keep=FOREVER)], now=NOW)

        await tick(store, NOW + HOUR)

        left = await read(store, callback_id("stale", NOW, "job"), callback_queue(QUEUE, "stale"))
        origin = Origin(QUEUE, "job", "", 0, NOW, "completed", '"done"', "stale")
        assert left.extras == Extras(origin=origin)
        assert (left.state, left.name, left.data) == ("waiting", held.name, '{"n":1}')
        assert (left.options, left.created_at) == (CALLBACK_OPTIONS, NOW + HOUR)

    async def test_a_deleted_job_leaves_one_that_outlives_it(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, delete_after=DAY, callbacks=["deleted"], now=NOW)
        await end_each(store, "a", "b", "c")

        await tick(store, NOW + DAY)

        assert await is_gone(store, "a")
        assert [job.extras and job.extras.origin for job in await callbacks(store, "deleted")] == [
            Origin(QUEUE, "a", "", 0, NOW, "completed", '"done"', "deleted"),
            Origin(QUEUE, "b", "no luck", 1, NOW, "failed", None, "deleted"),
            Origin(QUEUE, "c", "no need", 0, NOW, "cancelled", None, "deleted"),
        ]

    async def test_without_callbacks_there_are_none(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, delete_after=DAY, now=NOW)
        await end_each(store, "a", "b", "c")

        await tick(store, NOW + DAY)

        for stage in STAGES:
            assert await callbacks(store, stage) == []

    async def test_a_job_with_a_long_id_leaves_one_too(self, store: Store) -> None:
        await store.configure_stages(QUEUE, stale_after=HOUR, callbacks=["stale"], now=NOW)
        await end_each(store, "x" * 255)

        await tick(store, NOW + HOUR)

        [left] = await callbacks(store, "stale")
        assert left.extras is not None
        assert left.extras.origin is not None
        assert left.extras.origin.id == "x" * 255

    async def test_a_job_removed_by_its_own_rule_leaves_none(self, store: Store) -> None:
        await store.configure_stages(QUEUE, delete_after=DAY, callbacks=["deleted"], now=NOW)
        await end_each(store, "a", keep=Retention(age=SECOND))

        await tick(store, NOW + DAY - 1)

        assert await is_gone(store, "a")
        assert await callbacks(store, "deleted") == []
