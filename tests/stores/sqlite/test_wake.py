"""Processes wake each other, and an idle one does nothing at all."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ropeway.stores.sqlite import SQLiteStore, pipes, wake
from ropeway.testing.factories import QUEUE, new_job

from . import processes

ADDS_WHEN_TOLD = """
async def main():
    store = new_store()
    await store.open()
    say("ready")
    while sys.stdin.readline():
        await store.add([[new_job(f"{os.getpid()}-{next(numbers)}")]])
        say("added")
    await store.close()
import itertools
numbers = itertools.count()
asyncio.run(main())
"""

LISTENS = """
async def main():
    store = new_store()
    listener = store.listen("jobs", [QUEUE])
    await store.open()
    say("ready")
    while await listener.wait():
        say("woken")
asyncio.run(main())
"""

LONG = 60.0
"""Seconds after which a wake that was missed fails a test."""


async def test_a_commit_of_another_process_wakes(store: SQLiteStore, path: Path):
    other = processes.start(ADDS_WHEN_TOLD, path)
    assert processes.line(other) == "ready"
    jobs, events = store.listen("jobs", [QUEUE]), store.listen("events", ["another", QUEUE])
    elsewhere = store.listen("jobs", ["another"])

    for _ in range(3):
        processes.tell(other)
        assert await jobs.wait(LONG)
        assert await events.wait(LONG)
    assert not await elsewhere.wait(0)
    assert await asyncio.to_thread(other.communicate) is not None


async def test_a_wake_that_comes_before_the_wait_is_not_missed(store: SQLiteStore, path: Path):
    other = processes.start(ADDS_WHEN_TOLD, path)
    assert processes.line(other) == "ready"
    listener = store.listen("jobs", [QUEUE])
    processes.tell(other)
    assert await asyncio.to_thread(processes.line, other) == "added"
    # The byte is written after the answer: the end of the process comes after both.
    await asyncio.to_thread(other.communicate)

    assert await listener.wait(0)
    assert not await listener.wait(0)


async def test_our_commits_wake_another_process(store: SQLiteStore, path: Path):
    other = processes.start(LISTENS, path)
    assert processes.line(other) == "ready"
    for _ in range(3):
        await store.add([[new_job()]])
        assert await asyncio.to_thread(processes.line, other) == "woken"

    other.kill()
    other.communicate()


async def test_the_pipes_of_a_dead_process_are_removed(store: SQLiteStore, path: Path):
    other = processes.start(LISTENS, path)
    assert processes.line(other) == "ready"
    folder = Path(f"{path}-wake")
    assert len(list(folder.iterdir())) == 1
    other.kill()
    other.communicate()

    await store.add([[new_job()]])
    # The bell is rung after the answer; the next call is done after the bell.
    await store.add([[new_job()]])

    assert list(folder.iterdir()) == []


async def test_pipes_that_somebody_has_cleaned_up_are_made_anew(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(wake, "LOOK_EVERY", 0)
    listener = store.listen("jobs", [QUEUE])
    await listener.wait(0)
    shutil.rmtree(f"{path}-wake")

    assert await listener.wait(LONG), "what came meanwhile may have been missed"
    with processes.start(ADDS_WHEN_TOLD, path) as other:
        processes.tell(other)
        assert await listener.wait(LONG)
        await asyncio.to_thread(other.communicate)


async def test_pipes_that_could_not_be_made_anew_are_tried_again(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(wake, "LOOK_EVERY", 0)
    folder = Path(f"{path}-wake")
    listener = store.listen("jobs", [QUEUE])
    await listener.wait(0)
    shutil.rmtree(folder)
    folder.write_text("in the way")
    await listener.wait(0)
    await listener.wait(0)
    folder.unlink()

    assert await listener.wait(0), "what came meanwhile may have been missed"
    assert len(list(folder.iterdir())) == 1
    assert not await listener.wait(0)


async def test_pipes_that_no_loop_could_hear_are_not_made_again(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def cannot(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(wake, "LOOK_EVERY", 0)
    monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", cannot)
    listener = store.listen("jobs", [QUEUE])
    await listener.wait(0)
    monkeypatch.setattr(os, "mkfifo", lambda *_: pytest.fail("it was tried again"))

    assert not await listener.wait(0)
    assert not Path(f"{path}-wake").exists()


async def test_closing_the_last_listener_removes_the_folder(store: SQLiteStore, path: Path):
    first, second = store.listen("jobs", [QUEUE]), store.listen("revoked", [QUEUE])
    assert Path(f"{path}-wake").is_dir()

    first.close()
    await store.close()

    assert not Path(f"{path}-wake").exists()
    assert not await second.wait(0)


async def test_a_thousand_wakes_are_one(store: SQLiteStore, path: Path):
    folder = Path(f"{path}-wake")
    listener = store.listen("jobs", [QUEUE])
    [pipe] = folder.iterdir()
    fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(fd, b"!" * 4096):
            pass
    os.close(fd)

    assert await listener.wait(LONG)
    while await listener.wait(0):
        pass
    assert not await listener.wait(0)


def test_a_pipe_made_in_the_same_tick_of_the_clock_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "wake"
    waker = pipes.RemoteWaker(str(folder))
    first = pipes.Pipe(str(folder), "jobs", "a")
    when = folder.stat().st_mtime_ns
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(pipes, "_process_name", "another process")
        assert waker.look()
        waker.wake([("jobs", "a")])
    second = pipes.Pipe(str(folder), "jobs", "b")
    os.utime(folder, ns=(when, when))

    monkeypatch.setattr(pipes, "_process_name", "another process")
    assert waker.look()
    waker.wake([("jobs", "b")])

    assert first.empty()
    assert second.empty()
    waker.close()
    first.close()
    second.close()


def test_a_folder_that_does_not_change_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "wake"
    waker = pipes.RemoteWaker(str(folder))
    pipe = pipes.Pipe(str(folder), "jobs", "a")
    monkeypatch.setattr(pipes, "_process_name", "another process")
    os.utime(folder, ns=(1, 1))
    assert waker.look()
    monkeypatch.setattr(os, "listdir", lambda _: pytest.fail("it was listed again"))

    assert not waker.look()
    waker.wake([("jobs", "a")])

    assert pipe.empty()

    waker.close()
    pipe.close()


@pytest.mark.parametrize(
    ("call", "act"),
    [("listdir", lambda waker: waker.look()), ("write", lambda waker: waker.wake([("jobs", "a")]))],
    ids=["look", "ring"],
)
def test_what_a_signal_raises_in_between_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, act: Callable[[pipes.RemoteWaker], object]
):
    def interrupt(*_: object) -> None:
        raise TimeoutError("the user's own")

    waker = pipes.RemoteWaker(str(tmp_path / "wake"))
    pipe = pipes.Pipe(str(tmp_path / "wake"), "jobs", "a")
    monkeypatch.setattr(pipes, "_process_name", "another process")
    assert waker.look()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(os, call, interrupt)
        with pytest.raises(TimeoutError, match="own"):
            act(waker)

    waker.wake([("jobs", "a")])

    assert pipe.empty()
    waker.close()
    pipe.close()


async def test_without_pipes_commits_are_noticed_all_the_same(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_pipes(*_: object) -> None:
        raise OSError("this file system has none")

    monkeypatch.setattr(os, "mkfifo", no_pipes)
    other = processes.start(ADDS_WHEN_TOLD, path)
    assert processes.line(other) == "ready"
    listener = store.listen("jobs", [QUEUE])
    # The first wait cannot know what came before it.
    assert await listener.wait(LONG)
    assert not await listener.wait(0)

    processes.tell(other)

    assert await listener.wait(LONG)
    listener.close()
    await asyncio.to_thread(other.communicate)


async def test_a_listener_made_before_the_file_hears_of_it(path: Path, store: SQLiteStore):
    sibling = store.sibling()
    listener = sibling.listen("jobs", [QUEUE])

    await store.add([[new_job()]])

    assert await listener.wait(0)
    await sibling.close()
