"""Sync calls at the end of Python, under Ctrl-C, and across forks: each in a real process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from ropeway import Queue
from tests.stores.servers import new_place

from . import programs


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/jobs.db"}[request.param]


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def waiting(url: str) -> int:
    async def count() -> int:
        async with Queue("letters", url) as queue:
            return (await queue.counts())["waiting"]

    return asyncio.run(count())


class TestExit:
    def test_a_program_that_closes_nothing_ends_in_silence_and_leaves_a_tidy_file(self, file_url: str, tmp_path: Path):
        script = """
        events = queue.sync.events("start")
        job = queue.sync.add("send")
        next(events)
        threading.Thread(target=job.result, daemon=True).start()
        """
        assert programs.run(script, file_url) == (0, [], "")
        assert [path.name for path in tmp_path.iterdir()] == ["jobs.db"]
        assert waiting(file_url) == 1

    def test_jobs_added_by_threads_after_the_main_thread_has_ended_are_stored(self, file_url: str):
        script = """
        queue.sync.pause("other") if cannot_start_threads_at_the_end else None
        def add():
            threading.main_thread().join()
            for _ in range(20): queue.sync.add("send")
        for _ in range(3): threading.Thread(target=add).start()
        """
        assert programs.run(script, file_url) == (0, [], "")
        assert waiting(file_url) == 60

    def test_daemon_threads_that_add_until_the_end_say_nothing_and_lose_nothing_acknowledged(self, file_url: str):
        script = """
        enough = threading.Event()
        def add():
            while True:
                say(queue.sync.add("send").id)
                enough.set()
        for _ in range(4): threading.Thread(target=add, daemon=True).start()
        enough.wait()
        """
        code, said, complaints = programs.run(script, file_url)
        assert (code, complaints) == (0, "")
        assert 1 <= len(said) <= waiting(file_url)

    def test_an_atexit_function_may_still_add(self, file_url: str):
        script = """
        queue.sync.pause("other") if cannot_start_threads_at_the_end else None
        atexit.register(queue.sync.add, "farewell")
        """
        assert programs.run(script, file_url) == (0, [], "")
        assert waiting(file_url) == 1

    def test_a_call_after_the_end_says_so(self, file_url: str):
        script = """
        def too_late():
            try:
                queue.sync.add("send")
            except SyncRefused as refused:
                say(refused)
        from ropeway.client import portal
        atexit.unregister(portal._end)
        atexit.register(too_late)
        atexit.register(portal._end)
        queue.sync.add("send")
        """
        code, said, complaints = programs.run(script, file_url)
        assert (code, complaints) == (0, "")
        assert "Python is ending" in said[0]

    def test_it_does_not_wait_for_a_store_that_hangs(self, file_url: str):
        script = """
        import apsw
        from ropeway.client import portal
        portal.END_LIMIT = 0.1
        queue.sync.add("send")
        blocker = apsw.Connection(url.removeprefix("sqlite:///"))
        blocker.execute("BEGIN IMMEDIATE")
        threading.Thread(target=queue.sync.add, args=("send",), daemon=True).start()
        """
        code, _, complaints = programs.run(script, file_url)
        assert (code, complaints) == (0, "")


class TestInterrupt:
    def test_ctrl_c_ends_a_wait_at_once_and_cancels_it(self, url: str):
        script = """
        job = queue.sync.add("send")
        def tell():
            from ropeway.client import portal
            while not [t for t in asyncio.all_tasks(portal.loop()) if "Endings._read" in repr(t)]: time.sleep(0.01)
            say("waiting")
        threading.Thread(target=tell).start()
        try:
            job.result()
        except KeyboardInterrupt:
            say("interrupted")
        say(job.state())
        from ropeway.client import portal
        async def others(): return len(asyncio.all_tasks()) - 1
        while portal.run(others()): pass
        """
        program = programs.start(script, url)
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        program.send_signal(signal.SIGINT)
        assert programs.end(program) == (0, ["interrupted", "waiting"], "")

    def test_ctrl_c_ends_the_iteration_of_events(self, url: str):
        script = """
        queue.sync.add("send")
        try:
            for event in queue.sync.events("start"):
                if event.name == "waiting":
                    say("caught up")
        except KeyboardInterrupt:
            say("interrupted")
        """
        program = programs.start(script, url)
        assert program.stdout is not None
        assert program.stdout.readline() == "caught up\n"
        program.send_signal(signal.SIGINT)
        assert programs.end(program) == (0, ["interrupted"], "")

    def test_ctrl_c_that_nobody_catches_ends_the_program_as_usual(self, url: str):
        script = """
        job = queue.sync.add("send")
        say("waiting")
        job.result()
        """
        program = programs.start(script, url)
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        program.send_signal(signal.SIGINT)
        code, _, complaints = programs.end(program)
        assert code == -signal.SIGINT
        assert complaints.splitlines()[-1] == "KeyboardInterrupt"


class TestFork:
    PREFORK = """
    {before}
    def serve(number):
        for _ in range(10):
            queue.sync.add("request", number)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            serve(number)
            sys.exit(0)
        children.append(child)
    say([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
    say(queue.sync.counts()["waiting"])
    """

    BEFORE: ClassVar = {
        "unused": "",
        "called": "queue.sync.add('import-time')",
        "awaited": "asyncio.run(queue.add('import-time'))",
        "waiting": "threading.Thread(target=queue.sync.add('import-time').result, daemon=True).start()",
    }

    # What was done before the fork matters to the client alone: on one store it is shown for all.
    @pytest.mark.parametrize(
        ("place", "use"),
        [
            *(("sqlite", use) for use in BEFORE),
            ("redis", "called"),
            *(pytest.param("redis", use, marks=pytest.mark.deep) for use in ("unused", "awaited", "waiting")),
        ],
    )
    def test_a_preforking_server_has_one_queue_for_all_its_processes(self, place: str, use: str, tmp_path: Path):
        before = self.BEFORE[use]
        code, said, warnings = programs.run(self.PREFORK.format(before=before), PLACES[place](tmp_path))
        # The servers of tests have no disk, and the store says so once in each process.
        complaints = [line for line in warnings.splitlines() if "keeps nothing on disk" not in line]
        assert (code, complaints) == (0, [])
        assert said == ["[0, 0, 0, 0]", "41" if before else "40"]

    def test_processes_of_multiprocessing_have_the_queue_too(self, file_url: str):
        script = """
        def work(number):
            return queue.sync.add("request", number).id
        queue.sync.add("import-time")
        with multiprocessing.get_context("fork").Pool(3) as pool:
            ids = pool.map(work, range(30))
        say(len(set(ids)))
        say(queue.sync.counts()["waiting"])
        """
        assert programs.run(script, file_url) == (0, ["30", "31"], "")

    def test_the_parent_still_hears_when_a_child_ends(self, file_url: str):
        """The child has a copy of the parent's waits, and of the selector behind them."""
        script = """
        job = queue.sync.add("send")
        results = []
        waiter = threading.Thread(target=lambda: results.append(job.result(timeout=60)))
        waiter.start()
        while not os.path.isdir(url.removeprefix("sqlite:///") + "-wake"): time.sleep(0.01)
        child = os.fork()
        if child == 0:
            queue.sync.counts()
            sys.exit(0)
        os.waitpid(child, 0)
        say(len(os.listdir(url.removeprefix("sqlite:///") + "-wake")))
        [claimed] = Worker(queue, lambda job: None).claim_sync()
        claimed.complete("done")
        waiter.join()
        say(results)
        """
        assert programs.run(script, file_url) == (0, ["1", "['done']"], "")

    def test_jobs_in_memory_stay_with_the_parent(self):
        script = """
        queue.sync.add("send")
        if os.fork() == 0:
            try:
                queue.sync.add("send")
            except RopewayError as refused:
                say(refused)
            os._exit(0)
        os.wait()
        say(queue.sync.counts()["waiting"])
        """
        code, said, complaints = programs.run(script, "memory://")
        assert (code, complaints) == (0, "")
        assert said == ["memory://: this handle was opened before a fork: connect in the child", "1"]


PLACES: dict[str, Callable[[Path], str]] = {
    "memory": lambda _: "memory://storm",
    "sqlite": lambda folder: f"sqlite:///{folder}/jobs.db",
    "redis": lambda _: new_place(),
}

STORM = """
from tests.storming import Storm

async def work(job): return job.id

def act():
    queue.sync.add("send")
    queue.sync.counts()

threading.Thread(target=Worker(Queue("letters", url), work).run_sync, daemon=True).start()
queue.sync.add("send").result(timeout=60)
Storm({base}, every=0.0007).interrupt(1_000, act)

queue.sync.add("send").result(timeout=60)
until = time.monotonic() + 30
while (counts := queue.sync.counts())["waiting"] + counts["active"] and time.monotonic() < until:
    time.sleep(0.01)
say("busy" if counts["waiting"] + counts["active"] else "calm")
"""


# Which class a signal raises matters to the client alone: on one store it is shown for both.
@pytest.mark.parametrize(
    ("place", "base"),
    [
        *((place, "KeyboardInterrupt") for place in PLACES),
        ("sqlite", "TimeoutError"),
        pytest.param("memory", "TimeoutError", marks=pytest.mark.deep),
        pytest.param("redis", "TimeoutError", marks=pytest.mark.deep),
    ],
)
def test_signals_at_any_moment_leave_everything_in_order(place: str, base: str, tmp_path: Path):
    ended = programs.run(STORM.replace("{base}", base), PLACES[place](tmp_path))
    assert (ended.code, ended.said) == (0, ["calm"]), ended.complaints
