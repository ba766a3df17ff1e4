from __future__ import annotations

from typing import Any

import pytest

from ...job.codec import encode
from ...job.events import EVENTS_KEPT, Event, expand
from ...job.record import JobRecord
from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import JobUpdate, StallRules, StoredEntry
from ..arrange import active, add, cancelled, claim, claim_one, completed, delayed, entries
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    hand_back,
    new_job,
    new_jobs,
    retry,
)
from .cases import for_each
from .listen import hears


async def names_of(store: Store, id: str | None) -> list[str]:
    """The names of the events of one job, or of the whole queue, as readers see them."""
    page = await store.events(QUEUE)
    return [
        event.name for stored in page.entries for event in expand(QUEUE, stored.id, stored.entry) if event.job_id == id
    ]


class TestEvents:
    async def test_a_job_s_life_can_be_read_in_order(self, store: Store) -> None:
        await add(store, new_job("a", delay=SECOND, attempts=3))
        await store.settle(QUEUE, [retry(await claim_one(store, now=NOW + SECOND), SECOND)], now=NOW + SECOND)
        held = await claim_one(store, now=NOW + 2 * SECOND)
        await store.update(QUEUE, [JobUpdate("a", held.token, progress="50")], now=NOW + 2 * SECOND)
        await store.tick(QUEUE, StallRules(), now=NOW + 2 * SECOND + LOCK)
        held = await claim_one(store, now=NOW + DAY)
        await store.settle(QUEUE, [complete(held, keep=Retention(count=0))], now=NOW + DAY)

        assert await names_of(store, "a") == [
            *("added", "delayed", "waiting", "active"),
            *("retrying", "delayed", "waiting", "active", "progress"),
            *("stalled", "waiting", "active", "completed", "removed"),
        ]

    async def test_the_last_failure_is_announced_as_such(self, store: Store) -> None:
        held = await active(store, id="a")

        await store.settle(QUEUE, [fail(held, exhausted=True)], now=NOW)

        assert (await names_of(store, "a"))[-2:] == ["failed", "retries-exhausted"]

    async def test_an_entry_says_when_it_happened(self, store: Store) -> None:
        await add(store, new_job(), now=NOW + 5)

        assert [entry.at for entry in await entries(store)] == [NOW + 5]

    async def test_an_entry_says_which_state_was_entered(self, store: Store) -> None:
        await store.add([[new_job("a"), new_job("b", delay=DAY)]], now=NOW)
        await store.remove(QUEUE, ["a"], now=NOW)

        assert [(entry.what, entry.to, [id for id, _ in entry.jobs]) for entry in await entries(store)][:3] == [
            ("add", "waiting", ["a"]),
            ("add", "delayed", ["b"]),
            ("remove", None, ["a"]),
        ]

    async def test_queues_have_streams_of_their_own(self, store: Store) -> None:
        await store.add([[new_job("a"), new_job("b", queue="parcels")]], now=NOW)

        assert [[id for id, _ in entry.jobs] for entry in await entries(store)] == [["a"]]
        assert [[id for id, _ in entry.jobs] for entry in await entries(store, queue="parcels")] == [["b"]]

    async def test_another_handle_reads_the_same_stream(self, store: Store, sibling: Store) -> None:
        await add(store, new_job())
        await add(sibling, new_job())

        assert await store.events(QUEUE) == await sibling.events(QUEUE)


class TestEventsFromAPlace:
    async def test_an_empty_stream_has_a_place_to_begin(self, store: Store) -> None:
        start = await store.events(QUEUE)
        await add(store, new_job("a"))

        page = await store.events(QUEUE, start.cursor)

        assert (start.entries, start.gap) == ([], False)
        assert ([stored.entry.what for stored in page.entries], page.gap) == (["add"], False)

    async def test_reading_goes_on_after_any_entry(self, store: Store) -> None:
        for _ in range(5):
            await add(store, new_job())
        whole = (await store.events(QUEUE)).entries

        for n, stored in enumerate(whole):
            page = await store.events(QUEUE, stored.id)
            assert (page.entries, page.gap) == (whole[n + 1 :], False)

    async def test_reading_can_begin_with_the_entry_itself(self, store: Store) -> None:
        for _ in range(5):
            await add(store, new_job())
        whole = (await store.events(QUEUE)).entries

        for n, stored in enumerate(whole):
            page = await store.events(QUEUE, stored.id, inclusive=True)
            assert (page.entries, page.gap) == (whole[n:], False)

    async def test_the_cursor_goes_on_where_the_page_ended(self, store: Store) -> None:
        for _ in range(5):
            await add(store, new_job())
        whole = (await store.events(QUEUE)).entries

        first = await store.events(QUEUE, limit=2)
        second = await store.events(QUEUE, first.cursor, limit=2)
        third = await store.events(QUEUE, second.cursor, limit=2)
        end = await store.events(QUEUE, third.cursor)

        assert first.entries + second.entries + third.entries == whole
        assert (end.entries, end.cursor, end.gap) == ([], third.cursor, False)

    async def test_reading_can_begin_now(self, store: Store) -> None:
        await add(store, new_job("a"))

        now = await store.events(QUEUE, "now")
        await add(store, new_job("b"))
        page = await store.events(QUEUE, now.cursor)

        assert now.entries == []
        assert [[id for id, _ in stored.entry.jobs] for stored in page.entries] == [["b"]]
        assert not page.gap

    async def test_who_has_seen_everything_of_an_obliterated_queue_missed_nothing(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.cancel(QUEUE, ["a"], now=NOW)
        seen = await store.events(QUEUE)
        await store.obliterate(QUEUE, now=NOW)
        after = await store.events(QUEUE, seen.cursor)
        await add(store, new_job("b"))

        page = await store.events(QUEUE, after.cursor)

        assert (after.entries, after.gap) == ([], False)
        assert ([stored.entry.what for stored in page.entries], page.gap) == (["add"], False)

    async def test_who_missed_the_end_of_an_obliterated_queue_is_told_once(self, store: Store) -> None:
        await add(store, new_job("a"))
        seen = await store.events(QUEUE)
        await add(store, new_job("b"))
        await store.obliterate(QUEUE, now=NOW)

        missed = await store.events(QUEUE, seen.cursor)
        again = await store.events(QUEUE, missed.cursor)
        await add(store, new_job("c"))
        page = await store.events(QUEUE, again.cursor)

        assert [(seen.entries, seen.gap) for seen in (missed, again)] == [([], True), ([], False)]
        assert ([stored.entry.what for stored in page.entries], page.gap) == (["add"], False)

    async def test_the_end_of_another_queue_is_no_gap(self, store: Store) -> None:
        before = await store.events(QUEUE, "now")
        await add(store, new_job("a", queue="parcels"))
        await store.obliterate("parcels", now=NOW)
        await add(store, new_job("b"))

        page = await store.events(QUEUE, before.cursor)

        assert ([stored.entry.what for stored in page.entries], page.gap) == (["add"], False)

    async def test_the_beginning_of_an_obliterated_queue_is_no_gap(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.obliterate(QUEUE, now=NOW)

        start = await store.events(QUEUE)
        again = await store.events(QUEUE, start.cursor)
        await add(store, new_job("b"))
        page = await store.events(QUEUE, start.cursor)

        assert (start.entries, start.gap, again.entries, again.gap) == ([], False, [], False)
        assert ([stored.entry.what for stored in page.entries], page.gap) == (["add"], False)

    @for_each("place", ["nonsense", "999999999999"])
    async def test_a_place_that_never_was_is_a_gap(self, store: Store, place: str) -> None:
        await add(store, new_job())

        page = await store.events(QUEUE, place)

        assert page.gap
        assert len(page.entries) == 1

    async def test_a_reader_whose_entries_were_obliterated_is_told(self, store: Store) -> None:
        await add(store, new_job("a"))
        [stored] = (await store.events(QUEUE)).entries
        await store.cancel(QUEUE, ["a"], now=NOW)
        await store.obliterate(QUEUE, now=NOW)
        await add(store, new_job("b"))

        page = await store.events(QUEUE, stored.id)

        assert page.gap
        assert [[id for id, _ in stored.entry.jobs] for stored in page.entries] == [["b"]]


class TestEventsNewestFirst:
    async def test_the_newest_come_first_page_by_page(self, store: Store) -> None:
        await store.add([[new_job("a"), new_job("b", delay=DAY)]], now=NOW)
        for _ in range(4):
            await add(store, new_job())
        whole = (await store.events(QUEUE)).entries

        for size in (1, 2, len(whole), 100):
            found: list[StoredEntry] = []
            page = await store.events(QUEUE, limit=size, newest_first=True)
            while page.entries:
                assert not page.gap
                found += page.entries
                page = await store.events(QUEUE, page.cursor, limit=size, newest_first=True)
            assert found == whole[::-1]
            assert not page.gap

    async def test_reading_goes_back_from_any_entry(self, store: Store) -> None:
        await store.add([[new_job("a"), new_job("b", delay=DAY)]], now=NOW)
        await add(store, new_job())
        whole = (await store.events(QUEUE)).entries

        for n, stored in enumerate(whole):
            page = await store.events(QUEUE, stored.id, newest_first=True)
            assert (page.entries, page.gap) == (whole[:n][::-1], False)

    async def test_an_empty_stream_has_nothing(self, store: Store) -> None:
        page = await store.events(QUEUE, newest_first=True)

        assert (page.entries, page.gap) == ([], False)

    async def test_before_what_was_trimmed_there_is_nothing(self, store: Store) -> None:
        for _ in range(3):
            await add(store, new_job())
        [first, *_] = (await store.events(QUEUE)).entries
        await store.trim_events(QUEUE, keep=2, now=NOW)

        for place in (first.id, "nonsense", "999999999999"):
            page = await store.events(QUEUE, place, newest_first=True)
            assert (page.entries, page.cursor, page.gap) == ([], place, True)
        assert (await store.events(QUEUE, newest_first=True)).entries == (await store.events(QUEUE)).entries[::-1]


async def _held(store: Store) -> list[JobRecord]:
    """Several: to change one job thousands of times in a step takes some stores long."""
    await add(store, *new_jobs(100))
    return await claim(store, 100)


async def _announce_too_much(store: Store, held: list[JobRecord]) -> None:
    """Twice as many events as are kept."""
    for _ in range(2 * EVENTS_KEPT // 1_000):
        changes = [JobUpdate(job.id, job.token, progress=str(n)) for n in range(1_000 // len(held)) for job in held]
        await store.update(QUEUE, changes, now=NOW)


class TestEventsTrimmed:
    async def test_old_events_go_and_a_reader_is_told(self, store: Store) -> None:
        held = await _held(store)
        [first, *_] = (await store.events(QUEUE)).entries
        await _announce_too_much(store, held)
        whole = await store.events(QUEUE, limit=10**6)

        while (await store.tick(QUEUE, StallRules(), now=NOW + 1)).more:
            pass

        page = await store.events(QUEUE, first.id, limit=10**6)
        kept = sum(len(stored.entry.jobs) for stored in page.entries)
        assert page.gap
        assert 0.5 * EVENTS_KEPT <= kept <= 1.5 * EVENTS_KEPT
        assert page.entries == whole.entries[-len(page.entries) :]

    async def test_a_reader_who_kept_up_is_not_told_of_a_gap(self, store: Store) -> None:
        await _announce_too_much(store, await _held(store))
        cursor = (await store.events(QUEUE, "now")).cursor
        await store.tick(QUEUE, StallRules(), now=NOW + 1)
        await add(store, new_job("a"))

        page = await store.events(QUEUE, cursor)

        assert not page.gap
        assert [stored.entry.what for stored in page.entries] == ["add"]

    async def test_the_newest_entry_stays_however_large_it_is(self, store: Store) -> None:
        jobs = new_jobs(EVENTS_KEPT + 500)
        await store.add([jobs], now=NOW)

        await store.tick(QUEUE, StallRules(), now=NOW + 1)

        assert sum(len(entry.jobs) for entry in await entries(store)) >= 1


def expanded(stored: StoredEntry) -> list[Event]:
    return [*expand(QUEUE, stored.id, stored.entry)]


class TestTrimEvents:
    async def test_as_many_stay_as_were_asked_for(self, store: Store) -> None:
        held = await active(store)
        for number in range(40):
            await store.update(QUEUE, [JobUpdate(held.id, held.token, progress=str(number))], now=NOW)
        [first, *_] = whole = (await store.events(QUEUE)).entries

        await store.trim_events(QUEUE, keep=10)
        page = await store.events(QUEUE, first.id)

        assert page.gap
        assert page.entries == whole[-10:]

    async def test_an_add_is_two_events_of_each_job(self, store: Store) -> None:
        for size in (5, 6, 7):
            await add(store, *new_jobs(size))
        kept = []
        for keep in (36, 35, 26, 25, 13):
            await store.trim_events(QUEUE, keep=keep)
            kept.append([len(entry.jobs) for entry in await entries(store)])

        assert kept == [[5, 6, 7], [4, 6, 7], [6, 7], [5, 7], [6]]

    @pytest.mark.parametrize("keep", [1, 2, 10, 499, 500])
    async def test_of_jobs_added_together_the_newest_stay(self, store: Store, keep: int) -> None:
        jobs = new_jobs(250)
        await store.add([jobs], now=NOW)

        await store.trim_events(QUEUE, keep=keep)

        assert [id for entry in await entries(store) for id, _ in entry.jobs] == [
            job.id for job in jobs[-max(1, keep // 2) :]
        ]

    async def test_of_jobs_added_one_by_one_the_newest_stay(self, store: Store) -> None:
        jobs = new_jobs(50, is_fresh=True)
        for job in jobs:
            await store.add([[job]])

        await store.trim_events(QUEUE, keep=10)

        assert [id for entry in await entries(store) for id, _ in entry.jobs] == [job.id for job in jobs[-5:]]

    async def test_what_is_trimmed_of_an_entry_does_not_come_back(self, store: Store) -> None:
        await add(store, *new_jobs(5))
        await store.trim_events(QUEUE, keep=1)
        held = await claim_one(store)
        await store.settle(QUEUE, [complete(held)], now=NOW)

        assert [(entry.what, len(entry.jobs)) for entry in await entries(store)] == [
            ("add", 1),
            ("claim", 1),
            ("complete", 1),
        ]
        await store.trim_events(QUEUE, keep=3)
        assert [entry.what for entry in await entries(store)] == ["claim", "complete"]

    async def test_the_events_of_an_entry_keep_their_ids(self, store: Store) -> None:
        await add(store, *new_jobs(5))
        before = [event.id for stored in (await store.events(QUEUE)).entries for event in expanded(stored)]

        await store.trim_events(QUEUE, keep=4)

        after = [event.id for stored in (await store.events(QUEUE)).entries for event in expanded(stored)]
        assert after == before[-4:]

    async def test_a_reader_from_the_beginning_is_told_what_was_trimmed_of_the_first_entry(self, store: Store) -> None:
        beginning = (await store.events(QUEUE, "now")).cursor
        await add(store, *new_jobs(5))
        read = (await store.events(QUEUE, beginning)).cursor

        await store.trim_events(QUEUE, keep=4)

        assert (await store.events(QUEUE, beginning)).gap
        assert not (await store.events(QUEUE, read)).gap

    async def test_the_newest_entry_stays(self, store: Store) -> None:
        await add(store, new_job("a"))
        await add(store, new_job("b"))
        cursor = (await store.events(QUEUE, "now")).cursor

        await store.trim_events(QUEUE)
        await store.trim_events(QUEUE)
        await add(store, new_job("c"))
        page = await store.events(QUEUE, cursor)

        assert [[id for id, _ in entry.jobs] for entry in await entries(store)] == [["b"], ["c"]]
        assert ([[id for id, _ in stored.entry.jobs] for stored in page.entries], page.gap) == ([["c"]], False)

    async def test_other_queues_keep_theirs(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b", queue="parcels"))
        await add(store, new_job("c"), new_job("d", queue="parcels"))

        await store.trim_events(QUEUE)
        await store.trim_events("nowhere")

        assert len(await entries(store, queue="parcels")) == 2

    async def test_more_than_there_are_trims_nothing(self, store: Store) -> None:
        await add(store, new_job("a"))
        await add(store, new_job("b"))

        await store.trim_events(QUEUE, keep=EVENTS_KEPT)

        assert len(await entries(store)) == 2


class TestPublish:
    async def test_it_is_read_as_an_event_of_its_name(self, store: Store) -> None:
        await store.publish(QUEUE, "imported", '{"rows": 3, "of": {"name": "a"}}', now=NOW)

        [stored] = (await store.events(QUEUE)).entries
        [event] = expand(QUEUE, stored.id, stored.entry)

        assert (event.name, event.job_id, event.at, event.data) == (
            "imported",
            None,
            NOW,
            {"rows": 3, "of": {"name": "a"}},
        )

    async def test_it_may_be_about_a_job_that_is_gone(self, store: Store) -> None:
        await store.publish(QUEUE, "webhook-delivered", '{"status": 200}', "gone", now=NOW)

        [stored] = (await store.events(QUEUE)).entries
        [event] = expand(QUEUE, stored.id, stored.entry)

        assert (event.name, event.job_id, event.data) == ("webhook-delivered", "gone", {"status": 200})

    async def test_it_stands_in_order_with_the_rest(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.publish(QUEUE, "one", "{}", now=NOW)
        await store.publish(QUEUE, "one", "{}", now=NOW)
        await add(store, new_job("b"))

        assert [entry.what for entry in await entries(store)] == ["add", "published", "published", "add"]

    async def test_any_text_comes_back_as_it_was(self, store: Store) -> None:
        name, text = "größer 'than' \"life\" %s \\", '☃ "quoted" \\ {} $1 %s'
        await store.publish(QUEUE, name, encode({"text": text}, "data", 1_000), now=NOW)

        [stored] = (await store.events(QUEUE)).entries
        [event] = expand(QUEUE, stored.id, stored.entry)

        assert (event.name, event.data) == (name, {"text": text})

    async def test_numbers_come_back_as_they_were(self, store: Store) -> None:
        data: dict[str, Any] = {"large": 2**63 - 1, "small": 0.1, "whole": 1.0, "none": None, "list": [], "object": {}}
        await store.publish(QUEUE, "counted", encode(data, "data", 1_000), now=NOW)

        [stored] = (await store.events(QUEUE)).entries
        [event] = expand(QUEUE, stored.id, stored.entry)

        assert event.data == data

    async def test_followers_are_woken(self, store: Store) -> None:
        listener = store.listen("events", [QUEUE])
        while await listener.wait(0.2):
            pass

        await store.publish(QUEUE, "imported", "{}")

        assert await hears(listener)
        listener.close()

    async def test_a_queue_that_has_only_events_is_not_listed(self, store: Store) -> None:
        await store.publish(QUEUE, "imported", "{}")

        assert await store.queues() == []
        assert sum((await store.count(QUEUE)).values()) == 0

    async def test_obliterate_forgets_it(self, store: Store) -> None:
        await store.publish(QUEUE, "imported", "{}", now=NOW)

        await store.obliterate(QUEUE, now=NOW)

        assert await entries(store) == []

    async def test_it_counts_in_no_metric(self, store: Store) -> None:
        await store.publish(QUEUE, "imported", "{}", now=NOW)

        assert await store.metrics(QUEUE) == []


class TestDrained:
    async def drains(self, store: Store) -> int:
        return (await names_of(store, None)).count("drained")

    async def test_the_last_job_s_end_drains_the_queue(self, store: Store) -> None:
        held = await active(store)

        await store.settle(QUEUE, [complete(held)], now=NOW)

        [entry] = await entries(store, "drained")
        assert (entry.at, entry.jobs) == (NOW, [])

    async def test_a_queue_with_jobs_left_is_not_drained(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        first, second = await claim_one(store), await claim_one(store)

        await store.settle(QUEUE, [complete(first)], now=NOW)
        await store.settle(QUEUE, [complete(second)], claim_request(), now=NOW)

        assert await self.drains(store) == 0

    async def test_an_empty_queue_is_not_drained_again(self, store: Store) -> None:
        await completed(store)

        await store.settle(QUEUE, [], claim_request(), now=NOW)
        await store.tick(QUEUE, StallRules(), now=NOW)
        await store.cancel(QUEUE, ["nobody"], now=NOW)
        await store.remove(QUEUE, ["nobody"], now=NOW)

        assert await self.drains(store) == 1

    async def test_it_is_drained_again_after_new_jobs(self, store: Store) -> None:
        await completed(store)
        await completed(store)

        assert await self.drains(store) == 2

    async def test_a_batch_drains_it_once(self, store: Store) -> None:
        jobs = [await active(store) for _ in range(3)]

        await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)

        assert await self.drains(store) == 1

    async def test_delayed_jobs_do_not_keep_it_from_being_drained(self, store: Store) -> None:
        held = await active(store, attempts=2)

        await store.settle(QUEUE, [retry(held, SECOND)], now=NOW)

        assert await self.drains(store) == 1

    async def test_a_job_that_goes_back_to_waiting_does_not_drain_it(self, store: Store) -> None:
        held = await active(store, attempts=2)
        await store.settle(QUEUE, [hand_back(held)], now=NOW)
        await claim_one(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

        assert await self.drains(store) == 0

    async def test_cancelling_the_last_job_drains_it(self, store: Store) -> None:
        await cancelled(store)

        assert await self.drains(store) == 1

    async def test_cancelling_a_delayed_job_drains_nothing(self, store: Store) -> None:
        job = await delayed(store)

        await store.cancel(QUEUE, [job.id], now=NOW)

        assert await self.drains(store) == 0

    async def test_removing_the_last_job_drains_it(self, store: Store) -> None:
        await add(store, new_job("a"))

        await store.remove(QUEUE, ["a"], now=NOW)

        assert await self.drains(store) == 1

    async def test_removing_a_finished_job_drains_nothing(self, store: Store) -> None:
        job = await completed(store)

        await store.remove(QUEUE, [job.id], now=NOW)

        assert await self.drains(store) == 1

    async def test_cleaning_the_last_waiting_jobs_drains_it(self, store: Store) -> None:
        await add(store, *new_jobs(2))

        await store.clean(QUEUE, "waiting", now=NOW)

        assert await self.drains(store) == 1

    async def test_giving_up_the_last_job_drains_it(self, store: Store) -> None:
        await active(store)

        await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

        assert await self.drains(store) == 1
