"""The ring: what is put into it, by whomever, is read once and in order, and its room comes again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropeway.stores.sqlite import inbox
from ropeway.stores.sqlite.inbox import CAPACITY, MOST_AT_ONCE, Inbox, open_inbox

KEY = b"0123456789abcdef"


@pytest.fixture(autouse=True)
def file(path: Path) -> None:
    path.touch()


@pytest.fixture
def box(path: Path) -> Iterator[Inbox]:
    box = open_inbox(str(path), KEY, lambda: 0)
    yield box
    box.close()


def reopened(path: Path, ingested: int = 0, key: bytes = KEY) -> list[bytes]:
    box = open_inbox(str(path), key, lambda: ingested)
    bodies, _ = box.read(ingested)
    box.close()
    return bodies


def abandon(box: Inbox) -> None:
    """As if its process were killed: nothing is taken away."""
    box._map.close()
    os.close(box._file)


def test_what_is_put_is_read_in_order(box: Inbox):
    assert not box.has_more(0)
    assert box.put(b"first")
    assert box.put(b"second" * 100)

    bodies, ingested = box.read(0)

    assert bodies == [b"first", b"second" * 100]
    assert box.has_more(0)
    assert not box.has_more(ingested)
    assert box.read(ingested) == ([], ingested)


def test_a_full_ring_takes_nothing_until_room_is_freed(box: Inbox):
    body = b"x" * (MOST_AT_ONCE - 16)
    while box.put(body):
        pass
    bodies, ingested = box.read(0)
    assert len(bodies) == CAPACITY // MOST_AT_ONCE
    assert not box.put(body)

    box.free(ingested)

    assert box.put(b"again")
    assert box.read(ingested)[0] == [b"again"]


def test_records_lie_across_the_end_of_the_ring(box: Inbox):
    ingested = 0
    for number in range(1_000):
        body = bytes([number % 251]) * (3_001 + number)
        assert box.put(body)
        bodies, ingested = box.read(ingested)
        assert bodies == [body]
        box.free(ingested)
    assert ingested > 2 * CAPACITY


def test_too_much_for_one_record_is_not_put(box: Inbox):
    assert not box.put(b"x" * (MOST_AT_ONCE - 15))
    assert not box.has_more(0)


def test_what_is_left_of_earlier_turns_is_never_read_again(box: Inbox):
    position = 0
    while position < 3 * CAPACITY:
        assert box.put(b"x" * 48)
        bodies, position = box.read(position)
        assert len(bodies) == 1
        box.free(position)
    assert not box.has_more(position)


def test_two_users_put_behind_each_other(path: Path, box: Inbox):
    other = open_inbox(str(path), KEY, lambda: 0)
    for number in range(100):
        assert (box, other)[number % 2].put(b"%d" % number)

    assert box.read(0) == other.read(0)
    assert other.read(0)[0] == [b"%d" % number for number in range(100)]
    other.close()


def test_a_user_who_slept_for_many_turns_finds_the_end(path: Path, box: Inbox):
    sleeper = open_inbox(str(path), KEY, lambda: 0)
    assert sleeper.put(b"before")
    ingested = 0
    while ingested < 2 * CAPACITY + 12_345:
        assert box.put(b"x" * 1_000)
        _, ingested = box.read(ingested)
        box.free(ingested)

    assert sleeper.has_more(0), "who stands far behind is told to look"
    assert sleeper.put(b"after")
    assert box.read(ingested)[0] == [b"after"]
    sleeper.close()


PUT_MANY = """
import sys
from ropeway.stores.sqlite.inbox import open_inbox
box = open_inbox(sys.argv[1], b"0123456789abcdef", lambda: 0)
put = 0
while put < 2_000:
    put += box.put(b"%s-%d" % (sys.argv[2].encode(), put))
box.sync()
"""


def test_processes_put_at_once(path: Path, box: Inbox):
    names = ["a", "b", "c"]
    processes = [subprocess.Popen([sys.executable, "-c", PUT_MANY, str(path), name]) for name in names]
    assert [process.wait() for process in processes] == [0, 0, 0]

    bodies, _ = box.read(0)

    for name in names:
        own = [body for body in bodies if body.startswith(name.encode())]
        assert own == [b"%s-%d" % (name.encode(), number) for number in range(2_000)]


def test_the_first_sync_makes_the_name_last_too(path: Path, ring: Path, box: Inbox, monkeypatch: pytest.MonkeyPatch):
    synced: list[Path] = []

    def note(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink())

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(inbox, "sync_file", note)
    box.put(b"job")
    box.sync()
    assert synced == [ring, path.parent]

    box.sync()
    assert synced[2:] == [ring]


@pytest.mark.parametrize("missing", [1, 16, 20, 100])
def test_a_record_that_was_cut_off_is_none(path: Path, ring: Path, box: Inbox, missing: int):
    box.put(b"whole")
    _, position = box.read(0)
    box.put(b"x" * 100)
    _, end = box.read(0)
    contents = bytearray(ring.read_bytes())
    cut = inbox._HEAD + end - missing - 12
    contents[cut : inbox._HEAD + end] = bytes(missing + 12)
    ring.write_bytes(contents)

    assert box.read(0) == ([b"whole"], position)
    other = open_inbox(str(path), KEY, lambda: 0)
    assert other.put(b"instead")
    assert box.read(0)[0] == [b"whole", b"instead"]
    other.close()


def test_the_last_user_takes_the_file_away(path: Path, ring: Path):
    first = open_inbox(str(path), KEY, lambda: 0)
    second = open_inbox(str(path), KEY, lambda: 0)
    second.put(b"job")
    second.free(second.read(0)[1])

    second.close()
    assert ring.exists()
    first.close()
    assert not ring.exists()


def test_what_was_not_taken_in_stays(path: Path, ring: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"first")
    _, ingested = box.read(0)
    box.free(ingested)
    box.put(b"second")
    box.close()

    assert ring.exists()
    assert reopened(path, ingested) == [b"second"]


def test_what_was_taken_in_but_may_not_last_stays(path: Path, ring: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"job")
    box.read(0)
    box.close()

    assert ring.exists()


def test_a_killed_user_leaves_everything(path: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"job")
    abandon(box)

    assert reopened(path) == [b"job"]


def test_a_ring_of_another_file_begins_anew(path: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"job of a file that was deleted")
    abandon(box)

    assert reopened(path, key=b"another tag 1234") == []


def test_a_ring_that_is_ahead_of_its_file_begins_anew(path: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    for _ in range(3):
        box.put(b"job")
        box.free(box.read(box.freed)[1])
    abandon(box)

    box = open_inbox(str(path), KEY, lambda: 0)
    assert box.freed == 0
    assert not box.has_more(0)
    box.close()


@pytest.mark.parametrize("size", [0, 100, 5_000])
def test_a_ring_that_was_never_finished_is_made_again(path: Path, ring: Path, size: int):
    ring.write_bytes(b"Ropeway inbox 1\n".ljust(size, b"\0")[:size])

    box = open_inbox(str(path), KEY, lambda: 4_800)
    assert box.put(b"job")
    assert box.read(4_800)[0] == [b"job"]
    box.close()


def test_a_ring_in_use_for_another_file_is_left_alone(path: Path, box: Inbox):
    box.put(b"job")

    with pytest.raises(OSError, match="another file"):
        open_inbox(str(path), b"another tag 1234", lambda: 0)
    assert box.read(0)[0] == [b"job"]


def test_links_are_not_followed(path: Path, ring: Path, tmp_path: Path):
    (tmp_path / "precious").write_text("mine")
    ring.symlink_to(tmp_path / "precious")

    with pytest.raises(OSError, match="symbolic links"):
        open_inbox(str(path), KEY, lambda: 0)
    assert (tmp_path / "precious").read_text() == "mine"


def test_records_that_end_before_the_files_position_begin_anew(path: Path, ring: Path):
    """As after a power cut: what others took in for good, its own process had not synced."""
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"synced")
    _, synced = box.read(0)
    box.put(b"taken in, and not synced")
    _, ingested = box.read(0)
    contents = bytearray(ring.read_bytes())
    contents[inbox._HEAD + synced :] = bytes(len(contents) - inbox._HEAD - synced)
    abandon(box)
    ring.write_bytes(contents)

    box = open_inbox(str(path), KEY, lambda: ingested)
    assert box.put(b"after it")

    assert box.read(ingested)[0] == [b"after it"]
    box.free(box.read(ingested)[1])
    box.close()


def test_a_position_within_a_record_of_another_history_begins_anew(path: Path):
    box = open_inbox(str(path), KEY, lambda: 0)
    box.put(b"x" * 1_000)
    abandon(box)

    box = open_inbox(str(path), KEY, lambda: 160)
    assert box.put(b"mine")

    assert box.read(160)[0] == [b"mine"]
    box.free(box.read(160)[1])
    box.close()


LEAVE_TOGETHER = """
import sys
from ropeway.stores.sqlite.inbox import open_inbox
for _ in range(300):
    box = open_inbox(sys.argv[1], b"0123456789abcdef", lambda: 0)
    print("open", flush=True)
    input()
    box.close()
    print("closed", flush=True)
    input()
"""


def test_of_two_who_leave_at_once_one_takes_the_file_away(path: Path, ring: Path):
    def both(word: str) -> None:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == word

    def go_on() -> None:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

    command = [sys.executable, "-c", LEAVE_TOGETHER, str(path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for _ in range(300):
        both("open")
        go_on()
        both("closed")
        assert not ring.exists()
        go_on()
    for process in processes:
        process.communicate()


def test_without_room_for_it_nothing_is_left(path: Path, ring: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(inbox, "_write_all", fail)
    with pytest.raises(OSError, match="no space"):
        open_inbox(str(path), KEY, lambda: 0)

    assert not ring.exists()


@pytest.mark.parametrize("contents", [b"my letters", b"Ropeway inbox 2\n" + b"jobs" * 10_000])
def test_what_is_not_ours_is_left_alone(path: Path, ring: Path, contents: bytes):
    ring.write_bytes(contents)

    with pytest.raises(OSError, match="another program's"):
        open_inbox(str(path), KEY, lambda: 0)

    assert ring.read_bytes() == contents


def test_a_pipe_in_its_place_is_left_alone(path: Path, ring: Path):
    os.mkfifo(ring)

    with pytest.raises(OSError, match="another program's"):
        open_inbox(str(path), KEY, lambda: 0)

    assert ring.is_fifo()
