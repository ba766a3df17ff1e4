"""A job's log lines, read in pages and cleared."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import InvalidInput, JobNotFound, Queue, Worker


async def _lines(queue: Queue, count: int) -> Any:
    """A job that is being worked on, and has written so many lines."""
    await queue.add("send", id="a")
    [claimed] = await Worker(queue).claim()
    for number in range(1, count + 1):
        await claimed.log(f"line {number}")
    return claimed


async def test_a_log_is_read_in_pages(queue: Queue):
    await _lines(queue, 5)
    job = await queue.get("a")
    assert job is not None

    first = await job.logs(limit=3)
    second = await job.logs(after=first.next, limit=3)

    assert [line.text for line in first.lines] == ["line 1", "line 2", "line 3"]
    assert [line.text for line in second.lines] == ["line 4", "line 5"]
    assert (first.next, second.next) == (3, None)


async def test_the_newest_lines_can_come_first(queue: Queue):
    await _lines(queue, 5)

    page = await queue.logs("a", limit=2, newest_first=True)

    assert [line.text for line in page.lines] == ["line 5", "line 4"]


async def test_a_log_can_be_followed(queue: Queue):
    claimed = await _lines(queue, 2)
    seen = await queue.logs("a")
    assert (await queue.logs("a", after=seen.newest)).lines == []
    await claimed.log("line 3")

    assert [line.text for line in (await queue.logs("a", after=seen.newest)).lines] == ["line 3"]


async def test_a_log_is_cleared(queue: Queue):
    claimed = await _lines(queue, 5)
    job = await queue.get("a")
    assert job is not None

    await job.clear_logs(keep=2)
    assert [line.text for line in (await job.logs()).lines] == ["line 4", "line 5"]
    await claimed.complete()
    await queue.clear_logs("a")
    assert (await queue.history("a")).log == []
    assert (await queue.history("a")).dropped_log_lines == 5


def test_the_twin_does_the_same(queue: Queue):
    sync = queue.sync
    job = sync.add("send", id="a")
    [claimed] = Worker(queue).claim_sync()
    claimed.log("line 1")
    claimed.log("line 2")

    assert [line.text for line in job.logs(limit=1).lines] == ["line 1"]
    assert [line.text for line in sync.logs("a", newest_first=True).lines] == ["line 2", "line 1"]
    job.clear_logs(keep=1)
    sync.clear_logs("a")
    assert sync.logs("a").lines == []


async def test_a_job_that_is_not_there_has_no_log(queue: Queue):
    with pytest.raises(JobNotFound):
        await queue.logs("nobody")
    with pytest.raises(JobNotFound):
        await queue.clear_logs("nobody")


@pytest.mark.parametrize(
    "given",
    [{"after": -1}, {"after": "1"}, {"limit": 0}, {"limit": 1_001}, {"limit": True}, {"newest_first": "yes"}],
)
async def test_what_cannot_be_meant_is_refused(queue: Queue, given: dict[str, Any]):
    await queue.add("send", id="a")
    with pytest.raises(InvalidInput, match=next(iter(given))):
        await queue.logs("a", **given)


@pytest.mark.parametrize("keep", [-1, 1.5, "2", None])
async def test_a_number_to_keep_that_cannot_be_meant_is_refused(queue: Queue, keep: Any):
    with pytest.raises(InvalidInput, match="keep"):
        await queue.clear_logs("a", keep=keep)
