"""Queues of an application are put on a test's store, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ropeway import InvalidInput, Job, Queue, Worker
from ropeway.testing import FakeStore, added, assert_added, drain, isolated


class App:
    """What a module of an application has at its top."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "app.db"
        self.emails = Queue("emails", f"sqlite:///{self.file}", attempts=3)
        self.reports = Queue("reports", f"sqlite:///{self.file}")
        self.sent: list[object] = []
        self.worker = Worker([self.emails, self.reports], self.send)

    async def send(self, job: Job) -> None:
        self.sent.append(job.data)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(tmp_path)


async def test_the_application_runs_unchanged_and_its_own_store_is_never_touched(app: App):
    with isolated(app.emails, app.reports) as store:
        await app.emails.add("send", "hello")
        await app.reports.add("write", "numbers", delay="1 day")
        assert_added(app.emails, "send", attempts=3)
        await drain(app.worker)
        assert app.emails.store is app.reports.store is store

    assert app.sent == ["hello", "numbers"]
    assert not app.file.exists()


async def test_afterwards_the_queue_is_where_it_was_with_what_it_had(app: App):
    own = app.emails.store
    async with app.emails:
        before = await app.emails.add("send", "real")
        with isolated(app.emails):
            await app.emails.add("send", "of the test")
        with pytest.raises(ZeroDivisionError), isolated(app.emails):
            raise ZeroDivisionError
        assert app.emails.store is own
        assert [job.id for job in await app.emails.find()] == [before.id]
        after = await app.emails.add("send", "real too")
        assert [job.id for job in await app.emails.find()] == [before.id, after.id]


async def test_closing_the_queue_in_the_application_does_not_end_the_store(app: App):
    with isolated(app.emails) as store:
        async with app.emails:
            await app.emails.add("send")

        assert (await store.count("emails"))["waiting"] == 1
    assert app.emails._owns_store


async def test_isolation_can_be_nested(app: App):
    with isolated(app.emails) as outer:
        await app.emails.add("send", "outer")
        with isolated(app.emails):
            assert added(app.emails) == []
        assert app.emails.store is outer
        assert_added(app.emails, data="outer")


def test_each_test_begins_with_nothing_on_any_loop(app: App):
    for _ in range(2):
        with isolated(app.emails):
            asyncio.run(app.emails.add("send"))
            assert len(added(app.emails)) == 1


def test_what_cannot_be_meant_is_refused(app: App):
    store = FakeStore()
    with pytest.raises(InvalidInput, match="name the queues"), isolated():
        pass
    with (
        pytest.raises(InvalidInput, match="a store has its clock"),
        isolated(app.emails, store=store, clock=store.time),
    ):
        pass
