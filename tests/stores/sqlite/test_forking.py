"""Files that are open when their process forks, for real and under load."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from . import processes

# Adds in threads of the parent, from before the first fork until after the last.
BUSY_PARENT = """
import threading
from ropeway import Queue
queue = Queue("letters", "sqlite:///" + path)
acknowledged, done = [], threading.Event()
def produce():
    while not done.is_set():
        acknowledged.append(queue.sync.add("by-parent").id)
producers = [threading.Thread(target=produce) for _ in range(3)]
def stored():
    queue = Queue("letters", "sqlite:///" + path).sync
    page = queue.find(limit=1000)
    ids = {job.id for job in page}
    while page.next:
        page = queue.find(limit=1000, after=page.next)
        ids |= {job.id for job in page}
    return ids
"""


def test_a_handle_made_before_a_fork_can_be_used_in_the_child(path: Path):
    script = """
    store = new_store()
    if os.fork() == 0:
        asyncio.run(store.add([[new_job()]]))
        os._exit(0)
    os.wait()
    say(asyncio.run(store.count(QUEUE))["waiting"])
    """
    assert processes.run(script, path).strip() == "1"


def test_a_handle_that_was_used_before_a_fork_can_be_used_on_both_sides(path: Path):
    script = """
    store = new_store()
    asyncio.run(store.add([[new_job("before")]]))
    if os.fork() == 0:
        asyncio.run(store.add([[new_job("child")]]))
        os._exit(0)
    asyncio.run(store.add([[new_job("parent")]]))
    os.wait()
    say(asyncio.run(store.count(QUEUE))["waiting"])
    """
    assert processes.run(script, path).strip() == "3"


def test_nothing_of_a_file_is_open_at_the_fork(path: Path):
    script = """
    store = new_store()
    async def use():
        store.listen("jobs", [QUEUE])
        await store.add([[new_job(is_fresh=True)]])
        await store.count(QUEUE)
    asyncio.run(use())
    if os.fork() == 0:
        targets = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2
                   and os.path.lexists(f"/proc/self/fd/{fd}")]
        say([target for target in targets if target.removeprefix(path) in ("", "-wal", "-shm", "-inbox")])
        os._exit(0)
    os.wait()
    """
    assert processes.run(script, path).strip() == "[]"


def test_nothing_acknowledged_is_lost_when_a_busy_process_forks_and_children_are_killed(path: Path):
    script = (
        BUSY_PARENT
        + """
for producer in producers: producer.start()
read, write = os.pipe()
children = []
for number in range(12):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            os.write(write, f"{queue.sync.add('by-child').id} ".encode())
        if number % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        queue.sync.close()
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
done.set()
for producer in producers: producer.join()
os.close(write)
with os.fdopen(read) as told:
    by_children = told.read().split()
queue.sync.close()
say(codes == [0, -9] * 6)
say(len(by_children))
say(len({*acknowledged, *by_children} - stored()))
"""
    )
    assert processes.run(script, path).split() == ["True", "240", "0"]


def test_a_worker_in_the_parent_goes_on_through_forks(path: Path):
    script = (
        BUSY_PARENT
        + """
from ropeway import Worker
worker = Worker(queue, lambda job: job.id, concurrency=5)
running = threading.Thread(target=worker.run_sync)
running.start()
jobs = queue.sync.add_many(["task"] * 50)
for number in range(5):
    if os.fork() == 0:
        queue.sync.add("task", number)
        os._exit(0)
    os.wait()
for job in jobs:
    assert job.result(timeout=60) == job.id
for job in queue.sync.find(name="task"):
    job.result(timeout=60)
say(queue.sync.counts()["completed"])
worker.stop()
running.join()
"""
    )
    assert processes.run(script, path).strip() == "55"


def test_threads_may_fork_at_once(path: Path):
    script = (
        BUSY_PARENT
        + """
queue.sync.add("first")
codes = []
def fork():
    for _ in range(5):
        child = os.fork()
        if child == 0:
            queue.sync.add("by-child")
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
forkers = [threading.Thread(target=fork) for _ in range(4)]
for forker in forkers: forker.start()
for forker in forkers: forker.join()
say(codes == [0] * 20)
say(queue.sync.counts()["waiting"])
"""
    )
    assert processes.run(script, path).split() == ["True", "21"]


def test_a_file_that_cannot_be_closed_for_the_fork_is_refused_in_the_child(path: Path):
    """Here by a write lock that another connection keeps, so that the writer's round does not end."""
    script = """
    import threading, apsw
    from ropeway.errors import StoreClosed, StoreRefused
    from ropeway.stores.sqlite import forking
    from ropeway.stores.sqlite.writer import Writer
    begun, begin = threading.Event(), Writer._begin
    Writer._begin = lambda *arguments: (begun.set(), begin(*arguments))
    forking.PAUSE_LIMIT = 0.2
    store = new_store()
    def attempt(handle):
        try:
            asyncio.run(handle.add([[new_job()]]))
        except (StoreClosed, StoreRefused) as refused:
            say(f"{type(refused).__name__} {'close it before the fork' in str(refused)}")
    asyncio.run(store.open())
    blocker = apsw.Connection(path)
    blocker.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=lambda: asyncio.run(store.sibling().add([[new_job()]])))
    waiting.start()
    begun.wait()
    if os.fork() == 0:
        attempt(store)
        attempt(new_store())
        os._exit(0)
    os.wait()
    blocker.execute("ROLLBACK")
    waiting.join()
    say(asyncio.run(store.count(QUEUE))["waiting"])
    """
    assert processes.run(script, path).splitlines() == ["StoreClosed True", "StoreRefused True", "1"]


def test_a_fork_that_the_store_was_not_told_of_is_refused_in_the_child(path: Path):
    """As when an extension forks. Here Python forks: a child of another's fork hangs if a thread had the GIL."""
    script = """
    from ropeway.errors import StoreClosed
    from ropeway.stores.sqlite import shared
    shared.hold_all, shared.begin_anew = lambda until: None, lambda: None
    store = new_store()
    asyncio.run(store.open())
    if os.fork() == 0:
        try:
            asyncio.run(store.count(QUEUE))
        except StoreClosed as refused:
            say("close it before the fork" in str(refused))
        os._exit(0)
    os.wait()
    """
    assert processes.run(script, path).strip() == "True"


def test_a_listener_of_the_parent_outlives_its_copy_in_the_child(path: Path):
    script = """
    store = new_store()
    async def main():
        listener = store.listen("jobs", [QUEUE])
        await listener.wait(0)
        if os.fork() == 0:
            listener.close()
            os._exit(0)
        os.wait()
        pipes = os.listdir(path + "-wake")
        heard = asyncio.create_task(listener.wait(60))
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PRODUCER, path, QUEUE)
        await other.wait()
        say(len(pipes))
        say(await heard)
    PRODUCER = "import sys, ropeway; ropeway.Queue(sys.argv[2], 'sqlite:///' + sys.argv[1]).sync.add('send')"
    asyncio.run(main())
    """
    assert processes.run(script, path).split() == ["1", "True"]


def test_subprocesses_do_not_close_the_file(path: Path):
    """They run a program at once, and take no memory with them."""
    script = """
    import subprocess
    from ropeway.stores.sqlite.shared import SharedFile
    rests = []
    SharedFile.rest = lambda *arguments: rests.append(arguments)
    asyncio.run(new_store().open())
    subprocess.run([sys.executable, "-c", ""])
    say(len(rests))
    """
    assert processes.run(script, path, env=dict(os.environ)).strip() == "0"


def test_a_handle_that_a_thread_uses_first_during_a_fork_can_be_used_in_the_child(path: Path):
    script = """
    import threading
    from ropeway.stores.sqlite import shared
    store = new_store()
    acquiring, forked = threading.Event(), threading.Event()
    acquire = shared.acquire
    def slowly(path):
        acquiring.set()
        forked.wait()
        return acquire(path)
    from ropeway.stores.sqlite import store as handles
    handles.acquire = slowly
    thread = threading.Thread(target=store.add_blocking, args=([[new_job("parent")]],))
    thread.start()
    acquiring.wait()
    if os.fork() == 0:
        forked.set()
        store.add_blocking([[new_job("child")]])
        os._exit(0)
    os.wait()
    forked.set()
    thread.join()
    say(asyncio.run(store.count(QUEUE))["waiting"])
    """
    assert processes.run(script, path).strip() == "2"


@pytest.mark.parametrize("step", ["hold_all", "let_all_go"])
def test_a_signal_in_the_middle_of_a_fork_leaves_nothing_held(path: Path, step: str):
    script = f"""
    import time
    from ropeway.stores.sqlite import shared
    # Python prints what a signal handler raises in the middle of a fork, and goes on.
    sys.unraisablehook = lambda _: None
    is_struck = False
    def strike(*_):
        global is_struck
        is_struck = True
        raise KeyboardInterrupt
    def do_and_strike(*arguments):
        answer = step(*arguments) if "{step}" == "hold_all" else None
        os.kill(os.getpid(), signal.SIGALRM)
        return answer or step(*arguments)
    store = new_store()
    store.add_blocking([[new_job()]])
    signal.signal(signal.SIGALRM, strike)
    step, shared.{step} = shared.{step}, do_and_strike
    try:
        if os.fork() == 0:
            os._exit(0)
        while not is_struck:
            time.sleep(0.001)
    except KeyboardInterrupt:
        pass
    store.add_blocking([[new_job()]])
    new_store().add_blocking([[new_job()]])
    say("added")
    """
    assert processes.run(script, path) == "added\n"
