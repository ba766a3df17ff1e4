"""Workers as programs: signals, processes, reload."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from ropeway import JobFailed, __version__
from ropeway.cli.exit_codes import ExitCode
from tests.patience import PATIENCE

from .conftest import Arrange, Ropeway
from .processes import Program, Programs, children_of, is_alive, until

STARTED = "> started"


@pytest.fixture(autouse=True)
def app(tmp_path: Path) -> Path:
    """In the folder in which the commands run."""
    path = tmp_path / "app.py"
    shutil.copy(Path(__file__).parent / "worker_app.py", path)
    return path


def result(arrange: Arrange, name: str, data: Any) -> Any:
    """Of a job that a worker runs."""

    async def run(queue: Any) -> Any:
        return await (await queue.add(name, data)).result(timeout=PATIENCE)

    return arrange.on_queue(run)


def hold(arrange: Arrange, worker: Program, gate: Path) -> str:
    """A job that runs until the file is there; answers its id."""
    job = arrange.on_queue(lambda queue: queue.add("hold", str(gate)))
    worker.says("holding")
    return str(job.id)


def test_a_worker_says_what_it_is_runs_jobs_and_ends_in_good_order(
    programs: Programs, arrange: Arrange, url: str, tmp_path: Path
):
    worker = programs.start("worker", "app:make", "--concurrency", "3", "--queues", "letters")
    worker.says(STARTED)
    assert result(arrange, "send", "you") == {"to": "you", "pid": worker.pid}
    held = hold(arrange, worker, tmp_path / "gate")

    worker.signal(signal.SIGTERM)
    worker.says("stopping")
    (tmp_path / "gate").touch()

    assert worker.exit_code() == ExitCode.OK
    assert arrange.state_of(held) == "completed"
    for told in (f"Ropeway {__version__}", url, "queues       letters\n", "send, hold, deaf", "concurrency  3"):
        assert told in worker.err


def test_two_processes_make_one_job_for_each_tick_of_a_schedule(programs: Programs, ropeway: Ropeway, arrange: Arrange):
    worker = programs.start("worker", "app:make", "--processes", "2")
    worker.says(STARTED, times=2)

    ropeway("schedules", "add", "letters", "pulse", "send", '"you"', "--every", "1s", "--limit", "3")

    def completed() -> int:
        return int(arrange.on_queue(lambda queue: queue.counts(), "letters")["completed"])

    until(lambda: completed() == 3, "three ticks")
    shown = ropeway("schedules", "show", "pulse", "--json").json["schedule"]
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK
    assert (shown["state"], shown["fired"], len({tick["job"] for tick in shown["history"]})) == ("ended", 3, 3)
    assert completed() == 3


@pytest.mark.parametrize(
    ("options", "loop"),
    [
        ([], "uvloop"),
        (["--loop", "asyncio"], "asyncio"),
        (["--loop", "uvloop", "--processes", "2"], "uvloop"),
        (["--loop", "asyncio", "--processes", "2"], "asyncio"),
    ],
)
def test_a_worker_runs_on_the_loop_that_is_asked_for(
    programs: Programs, arrange: Arrange, options: list[str], loop: str
):
    worker = programs.start("worker", "app:make", *options)
    worker.says(STARTED)
    assert result(arrange, "where", None) == loop
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK


def test_without_uvloop_a_worker_runs_on_asyncio_unless_it_is_asked_for(
    programs: Programs, arrange: Arrange, tmp_path: Path
):
    (tmp_path / "uvloop.py").write_text("raise ImportError('as if it were not installed')")

    worker = programs.start("worker", "app:make")
    worker.says(STARTED)
    assert result(arrange, "where", None) == "asyncio"
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK

    asked = programs.start("worker", "app:make", "--loop", "uvloop")
    assert asked.exit_code() == ExitCode.USAGE
    assert "pip install 'ropeway[uvloop]'" in asked.err


def test_a_second_ctrl_c_hurries(programs: Programs, arrange: Arrange, tmp_path: Path):
    worker = programs.start("worker", "app:make", "--log-format", "json")
    worker.says(STARTED)
    held = hold(arrange, worker, tmp_path / "never")

    worker.signal(signal.SIGINT)
    worker.says("stopping")
    worker.signal(signal.SIGINT)

    assert worker.exit_code() == ExitCode.OK
    assert arrange.state_of(held) == "waiting"
    entries = [json.loads(line) for line in worker.err.splitlines()]
    assert entries[0]["queues"] == ["letters", "parcels"]
    names = ["send", "hold", "deaf", "where", "die"]
    assert entries[0]["handlers"] == {"letters": names, "parcels": names}


def test_handlers_that_do_not_stop_make_the_worker_fail_in_one_line(
    programs: Programs, arrange: Arrange, tmp_path: Path
):
    worker = programs.start("worker", "app:make")
    job = arrange.on_queue(lambda queue: queue.add("deaf", str(tmp_path / "gate")))
    worker.says("not listening")

    worker.signal(signal.SIGINT)
    worker.says("stopping")
    worker.signal(signal.SIGINT)
    worker.says("Error: handlers still ran")
    (tmp_path / "gate").touch()

    assert worker.exit_code() == ExitCode.FAILED
    assert "Traceback" not in worker.err
    assert arrange.state_of(job.id) == "waiting"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["app:nobody", "-p", "2"], ExitCode.USAGE), (["app:make", "--queues", "nobody"], ExitCode.USAGE)],
)
def test_what_cannot_be_loaded_ends_at_once_with_several_processes_too(
    programs: Programs, arguments: list[str], code: ExitCode
):
    worker = programs.start("worker", *arguments)

    assert worker.exit_code() == code
    assert "Error: " in worker.err


def test_several_processes_share_the_work_and_end_together(programs: Programs, arrange: Arrange):
    worker = programs.start("worker", "app:make", "--processes", "2", "--json")
    worker.says(STARTED, times=2)
    children = children_of(worker.pid)

    ran_in = {result(arrange, "send", number)["pid"] for number in range(5)}
    worker.signal(signal.SIGTERM)

    assert len(children) == 2
    assert ran_in <= {*children}
    assert worker.exit_code() == ExitCode.OK
    assert not any(map(is_alive, children))
    # The supervisor's own lines have no number.
    assert {json.loads(line).get("process") for line in worker.err.splitlines()} == {None, "1", "2"}


def test_several_processes_without_a_store_that_they_share_are_refused(programs: Programs):
    worker = programs.start("worker", "app:make", "--processes", "2", "--url", "memory://")

    assert worker.exit_code() == ExitCode.USAGE
    assert "one process" in worker.err


def test_a_process_that_is_killed_is_started_again(programs: Programs, arrange: Arrange):
    worker = programs.start("worker", "app:make", "--processes", "2")
    worker.says(STARTED, times=2)
    [first, second] = children_of(worker.pid)

    os.kill(first, signal.SIGKILL)
    worker.says("exit code 137")
    worker.says(STARTED, times=3)

    assert second in children_of(worker.pid)
    assert len(children_of(worker.pid)) == 2
    worker.signal(signal.SIGINT)
    assert worker.exit_code() == ExitCode.OK


def test_processes_do_not_outlive_a_supervisor_that_is_killed(programs: Programs, arrange: Arrange, tmp_path: Path):
    worker = programs.start("worker", "app:make", "--processes", "2")
    worker.says(STARTED, times=2)
    children = children_of(worker.pid)
    held = hold(arrange, worker, tmp_path / "gate")

    worker.signal(signal.SIGKILL)
    worker.exit_code()
    until(lambda: "stopping" in worker.err, "the shutdown")
    (tmp_path / "gate").touch()

    until(lambda: not any(map(is_alive, children)), "the end of the children")
    assert arrange.state_of(held) == "completed"


def test_one_ctrl_c_in_a_terminal_reaches_every_process_once(programs: Programs, arrange: Arrange, tmp_path: Path):
    terminal = programs.start_in_terminal("worker", "app:make", "--processes", "2")
    terminal.shows("[1]")
    terminal.shows("[2]")
    job = arrange.on_queue(lambda queue: queue.add("hold", str(tmp_path / "gate")))
    terminal.shows("holding")

    terminal.types("\x03")
    terminal.shows("stopping")
    (tmp_path / "gate").touch()

    assert terminal.exit_code() == ExitCode.OK
    assert arrange.state_of(job.id) == "completed"


STUCK = """
import signal, sys, time
if "2/2" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("stuck", flush=True)
    time.sleep(60)
"""


def test_a_second_ctrl_c_hurries_every_process_and_a_third_kills(
    programs: Programs, arrange: Arrange, app: Path, tmp_path: Path
):
    app.write_text(STUCK + app.read_text())
    worker = programs.start("worker", "app:make", "--processes", "2")
    worker.says("stuck")
    worker.says(STARTED)
    held = hold(arrange, worker, tmp_path / "never")

    worker.signal(signal.SIGINT)
    worker.says("1 job still runs")
    worker.signal(signal.SIGINT)
    [stuck] = until(lambda: len(left := children_of(worker.pid)) == 1 and left, "the end of the one that hurries")
    assert arrange.state_of(held) == "waiting"
    worker.signal(signal.SIGINT)

    assert worker.exit_code() == 128 + signal.SIGKILL
    assert not is_alive(stuck)


@pytest.mark.parametrize(
    ("data", "how"), [(-signal.SIGKILL, "was killed by SIGKILL (signal 9)"), (7, "ended with exit code 7")]
)
def test_a_job_that_kills_its_process_fails_with_a_reason_that_says_how(
    programs: Programs, arrange: Arrange, app: Path, data: int, how: str
):
    app.write_text(app.read_text().replace("LOCK = 30.0", "LOCK = 1.5"))
    worker = programs.start("worker", "app:make", "--processes", "2")
    worker.says(STARTED, times=2)

    with pytest.raises(JobFailed) as failed:
        result(arrange, "die", data)

    assert failed.value.reason.startswith("stalled more than allowable limit: worker ")
    assert f" {how} and last renewed its lock at " in failed.value.reason
    # It was started twice. A process that is not there again when it shall end would leave the exit code of its death.
    worker.says(STARTED, times=4)
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK


BLOCKING = """
async def block(_: Job) -> None:
    print("blocking", flush=True)
    time.sleep(60)

def make_blocking() -> Worker:
    return Worker(letters, {"block": block}, grace=60)
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_whose_loop_is_blocked_ends_with_an_exit_code_of_its_own(
    processes: str, programs: Programs, arrange: Arrange, app: Path
):
    app.write_text(app.read_text() + BLOCKING)
    worker = programs.start("worker", "app:make_blocking", "--processes", processes)
    job = arrange.on_queue(lambda queue: queue.add("block"))
    worker.says("blocking")

    worker.signal(signal.SIGTERM)
    worker.says("the loop is blocked, and has")
    worker.signal(signal.SIGTERM)

    assert worker.exit_code() == ExitCode.BLOCKED_LOOP
    assert arrange.state_of(job.id) == "waiting"
    assert "1 jobs were handed back" in worker.err


def test_the_banner_tells_handlers_by_queue_where_they_differ(programs: Programs, app: Path):
    app.write_text(
        "from ropeway import Queue\nqueues = pages, reports = Queue('pages'), Queue('reports')\n"
        "@pages.task\ndef fetch(n: int): ...\n@reports.task\ndef summarize(n: int): ..."
    )
    worker = programs.start("worker", "app:queues")

    worker.says("handlers     pages: fetch; reports: summarize\n")
    worker.says("Ctrl-C: let running jobs finish (25 s). Ctrl-C again: hand them back now.\n")


def test_a_queue_runs_its_tasks(programs: Programs, arrange: Arrange, app: Path):
    app.write_text(
        "from ropeway import Queue\nletters = Queue('letters')\n@letters.task\ndef double(n: int): return 2 * n\n"
        "from ropeway import Phase, Pipeline\nletters.task(Pipeline([Phase('half', print)]), name='halve')"
    )
    worker = programs.start("worker", "app:letters")
    worker.says("handlers     double, halve\n")

    assert result(arrange, "double", {"n": 21}) == 42


def test_a_change_of_the_app_starts_it_anew(programs: Programs, arrange: Arrange, app: Path):
    worker = programs.start("worker", "app:make", "--reload")
    worker.says(STARTED)

    working = app.read_text()
    app.write_text("1 / 0")
    worker.says("ZeroDivisionError")
    app.write_text(working.replace('"to": job.data', '"to": "somebody new"'))
    worker.says(STARTED, times=2)

    assert result(arrange, "send", "you")["to"] == "somebody new"
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK


def test_the_log_tells_of_every_job_unless_it_shall_be_quiet(programs: Programs, arrange: Arrange):
    worker = programs.start("worker", "app:make")
    worker.says(STARTED)
    result(arrange, "send", "you")
    worker.says("send completed in ")
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK

    quiet = programs.start("worker", "app:make", "--log-level", "warning")
    result(arrange, "send", "you")
    quiet.signal(signal.SIGTERM)
    assert quiet.exit_code() == ExitCode.OK
    assert "send completed" not in quiet.err


@pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["one", "two processes"])
def test_a_relative_file_is_in_the_folder_of_the_app(
    programs: Programs, arrange: Arrange, tmp_path: Path, app: Path, options: list[str]
):
    (tmp_path / "shop").mkdir()
    app.rename(tmp_path / "shop" / "app.py")
    worker = programs.start("worker", "app:make", "--app-dir", "shop", *options, ROPEWAY_URL="")
    worker.says(f"store        sqlite:///{tmp_path}/shop/ropeway.db\n")
    there = Arrange(f"sqlite:///{tmp_path}/shop/ropeway.db")

    assert result(there, "send", "you")["to"] == "you"
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == ExitCode.OK
    assert not (tmp_path / "ropeway.db").exists()


def test_the_url_is_for_queues_that_name_no_store(programs: Programs, tmp_path: Path):
    worker = programs.start("worker", "app:make", "--url", f"sqlite:///{tmp_path}/other.db")
    worker.says(STARTED)

    worker.signal(signal.SIGTERM)

    assert worker.exit_code() == ExitCode.OK
    assert f"store        sqlite:///{tmp_path}/other.db\n" in worker.err
    assert not (tmp_path / "ropeway.db").exists()


HEARS_AT_ONCE = """
from ropeway.worker.maintenance import presence
presence.ORDERS_INTERVAL = 0.05
"""


def test_a_worker_is_paused_and_drained_by_commands(
    programs: Programs, ropeway: Ropeway, arrange: Arrange, app: Path, tmp_path: Path
):
    app.write_text(app.read_text() + HEARS_AT_ONCE)
    worker = programs.start("worker", "app:make")
    worker.says(STARTED)
    held = hold(arrange, worker, tmp_path / "gate")
    [listed] = ropeway("workers", "list", "--json").json["workers"]
    id = listed["id"]

    paused = ropeway("workers", "pause", id.rpartition(":")[2])
    assert (paused.code, paused.out) == (ExitCode.OK, f"{id} is paused\n")
    assert "paused" in ropeway("workers", "list").out
    assert ropeway("workers", "resume", id, "--json").json["worker"]["state"] == "running"
    drained = ropeway("workers", "drain", id)
    assert drained.out == f"{id} drains: it ends with its 1 job\n"
    (tmp_path / "gate").touch()

    assert worker.exit_code() == ExitCode.OK
    assert arrange.state_of(held) == "completed"
    gone = ropeway("workers", "pause", id)
    assert (gone.code, "no worker" in gone.err) == (ExitCode.NOT_FOUND, True)
    assert ropeway("workers", "list").err == "No worker runs now.\n"
