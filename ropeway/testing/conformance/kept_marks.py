"""Marks through the moves of their job, at their limits, and after its end."""

from __future__ import annotations

from typing import Final

from ...job.codec import SIZE_LIMIT
from ...job.marks import LONGEST_MARK, MARKS_LIMIT, MOST_MARKS, Mark, Marking
from ...job.record import JobRecord
from ...job.retention import NOT_AT_ALL, Retention
from ...store.contract import Store
from ...store.values import JobChange, JobUpdate, StallRules
from ..arrange import active, add_one, claim, claim_one, is_gone, read
from ..factories import DAY, LOCK, NOW, QUEUE, complete, fail, hand_back, retry
from .cases import for_each

FEW: Final = (Mark("a", "1", NOW), Mark("b", '{"rows":[1]}', NOW))
MANY: Final = tuple(Mark(f"m-{number:02}", f'"{"x" * 200}{number}"', NOW) for number in range(50))
"""More than stores keep beside the job itself."""
ODD_NAMES: Final = (
    '"', "\\", "'", "''", "`", "%", "%s", "$1", ":1", "?", "_", "*", "{0}", "[[x]]", "$.key", ",", "|", " ", "null",
    "123", "-1", "a:b", "a\\u0000", "step:a\x1fb", "\u00e9", "e\u0301", "\u2028", "\u202eabc", "\U0001f6a1", "<b>&amp;",
    "x" * LONGEST_MARK, "\u00e9" * LONGEST_MARK, "\U0001f6a1" * LONGEST_MARK,
)  # fmt: skip


async def write(store: Store, id: str, marks: tuple[Mark, ...], token: str | None = None) -> None:
    [answer] = await store.update(QUEUE, [JobUpdate(id, token, marking=Marking(marks))], now=NOW)
    assert answer.verdict == "done"


async def marked(store: Store, marks: tuple[Mark, ...] = FEW, *, id: str = "job") -> JobRecord:
    """A job that runs, and has marks."""
    held = await active(store, id=id, attempts=3)
    await write(store, id, marks, held.token)
    return held


class TestKeptMarks:
    @for_each("marks", [FEW, MANY], ids=["few", "many"])
    async def test_every_way_to_the_next_claim_keeps_them(self, store: Store, marks: tuple[Mark, ...]) -> None:
        await add_one(store, id="job", delay=DAY, attempts=3)
        await write(store, "job", marks)
        await store.change(QUEUE, [JobChange("job", priority=7), JobChange("job", delay=2 * DAY)], now=NOW)
        assert (await read(store, "job")).marks == marks
        await store.promote(QUEUE, ["job"], now=NOW)
        await store.change(QUEUE, [JobChange("job", priority=-3), JobChange("job", lifo=True)], now=NOW)
        assert (await read(store, "job")).marks == marks
        held = await claim_one(store)
        assert held.marks == marks
        await store.settle(QUEUE, [retry(held, DAY)], now=NOW)
        await store.promote(QUEUE, ["job"], now=NOW)

        assert (await claim_one(store)).marks == marks

    @for_each("marks", [FEW, MANY], ids=["few", "many"])
    async def test_a_delayed_job_that_is_cancelled_keeps_them(self, store: Store, marks: tuple[Mark, ...]) -> None:
        held = await marked(store, marks)
        await store.settle(QUEUE, [retry(held, DAY)], now=NOW)

        await store.cancel(QUEUE, ["job"], now=NOW)

        job = await read(store, "job")
        assert (job.state, job.marks) == ("cancelled", marks)
        await store.retry(QUEUE, ["job"], now=NOW)
        assert (await claim_one(store)).marks == marks

    @for_each("marks", [FEW, MANY], ids=["few", "many"])
    async def test_a_job_that_is_given_up_keeps_them(self, store: Store, marks: tuple[Mark, ...]) -> None:
        await marked(store, marks)

        ticked = await store.tick(QUEUE, StallRules(max_stalled_count=0), now=NOW + LOCK)

        assert ticked.given_up == ["job"]
        job = await read(store, "job")
        assert (job.state, job.marks) == ("failed", marks)

    async def test_another_job_has_none_of_them(self, store: Store) -> None:
        await marked(store, MANY)

        await add_one(store, id="other")

        assert (await claim_one(store)).marks == (await read(store, "other")).marks == ()

    @for_each("marks", [FEW, MANY], ids=["few", "many"])
    async def test_whatever_removes_a_job_removes_them(self, store: Store, marks: tuple[Mark, ...]) -> None:
        """A job of the same id, added later, has none."""
        ways = ["kept-not-at-all", "removed", "too-old", "cleaned"]
        for id in ways:
            await marked(store, marks, id=id)
        gone, removed, old, cleaned = [await read(store, id) for id in ways]
        await store.settle(
            QUEUE,
            [
                complete(gone, keep=NOT_AT_ALL),
                fail(removed),
                complete(old, keep=Retention(age=DAY)),
                fail(cleaned),
            ],
            now=NOW,
        )
        await store.remove(QUEUE, ["removed"], now=NOW)
        await store.tick(QUEUE, StallRules(), now=NOW + DAY)
        await store.clean(QUEUE, "failed", limit=10, now=NOW + DAY)
        assert [await is_gone(store, id) for id in ways] == [True] * 4

        for id in ways:
            await add_one(store, id=id)

        assert [(await read(store, id)).marks for id in ways] == [()] * 4
        assert [job.marks for job in await claim(store, 4)] == [()] * 4

    async def test_an_obliterated_queue_leaves_none(self, store: Store) -> None:
        await marked(store, MANY)
        await store.obliterate(QUEUE, force=True, now=NOW)

        await add_one(store, id="job")

        assert (await read(store, "job")).marks == ()


class TestLargestMarks:
    async def test_as_many_as_a_job_may_have(self, store: Store) -> None:
        marks = tuple(Mark(f"step:page-{number:03}", str(number), NOW) for number in range(MOST_MARKS))
        held = await marked(store, marks[: MOST_MARKS // 2])
        await write(store, "job", marks[MOST_MARKS // 2 :], held.token)
        assert (await read(store, "job")).marks == marks

        await store.settle(QUEUE, [hand_back(held)], now=NOW)

        assert (await claim_one(store)).marks == marks

    async def test_as_large_as_they_may_be(self, store: Store) -> None:
        sizes = [SIZE_LIMIT - 2] * (MARKS_LIMIT // SIZE_LIMIT)
        marks = tuple(Mark(f"step:{number}", f'"{str(number) * size}"', NOW) for number, size in enumerate(sizes))
        held = await active(store, id="job")
        for mark in marks:
            await write(store, "job", (mark,), held.token)
        assert (await read(store, "job")).marks == marks

        await store.settle(QUEUE, [hand_back(held)], now=NOW)

        assert (await claim_one(store)).marks == marks

    async def test_any_name_is_kept_and_forgotten(self, store: Store) -> None:
        marks = tuple(Mark(name, f"{number}", NOW) for number, name in enumerate(sorted(ODD_NAMES)))
        held = await marked(store, marks)
        assert (await read(store, "job")).marks == marks
        await store.settle(QUEUE, [hand_back(held)], now=NOW)
        again = await claim_one(store)
        assert again.marks == marks

        forgets = tuple(mark.name for mark in marks[::2])
        await store.update(QUEUE, [JobUpdate("job", again.token, marking=Marking(forgets=forgets))], now=NOW)

        assert (await read(store, "job")).marks == marks[1::2]
