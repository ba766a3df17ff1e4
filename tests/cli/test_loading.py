"""From `module:attr` to a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ropeway import Worker
from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.loading import load_worker, narrow

from .conftest import Ropeway

APP = """
from ropeway import Queue, Worker

letters, parcels = Queue("letters", "memory://"), Queue("parcels", "memory://")
queues = [letters, parcels]
worker = Worker(queues, print)

class box:
    worker = worker

def make(): return letters
def make_worker(): return worker
def needs(argument): return worker
async def later(): return worker
def broken():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise LookupError("no queues today") from error
def leaves(): raise SystemExit(3)
def makes_nothing(): return None

number, nothing, mixed = 5, [], [letters, 5]
"""


MOODY = """
class Queues(list):
    def __iter__(self): raise RuntimeError("no list")

queues = Queues()
def __getattr__(name): raise RuntimeError("not today")
"""


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test has a module `app` of its own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Loading goes there: this comes back when the test has ended.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "jobs.py").write_text(APP)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "queues"),
    [
        ("app:worker", ["letters", "parcels"]),
        ("app:letters", ["letters"]),
        ("app:queues", ["letters", "parcels"]),
        ("app:make", ["letters"]),
        ("app:make_worker", ["letters", "parcels"]),
        ("app:box.worker", ["letters", "parcels"]),
        ("shop.jobs:worker", ["letters", "parcels"]),
    ],
)
def test_an_app_gives_a_worker(folder: Path, target: str, queues: list[str]):
    worker = load_worker(target, folder)

    assert isinstance(worker, Worker)
    assert [queue.name for queue in worker.queues] == queues


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("app", "module:attr"),
        (":worker", "module:attr"),
        ("app:", "module:attr"),
        ("app.py:worker", "app:worker"),
        ("./shop/jobs.py:worker", "shop.jobs:worker"),
        ("ap:worker", "did you mean 'app'?"),
        ("shop.job:worker", "no module 'shop.job'"),
        ("app:wroker", "did you mean 'worker'?"),
        ("app:zzz", "there is letters, parcels, worker"),
        ("app:box.queue", "'box' has no 'queue'"),
        ("app:number", "is an int"),
        ("app:nothing", "a Worker, a Queue"),
        ("app:mixed", "a Worker, a Queue"),
        ("app:makes_nothing", "is a NoneType"),
        ("app:needs", "needs arguments"),
        ("app:later", "is async"),
        (".app:worker", "is relative: write the whole name of the module, app:worker"),
    ],
)
def test_what_is_no_app_is_told_with_what_may_be_meant(folder: Path, target: str, hint: str):
    with pytest.raises(click.UsageError) as told:
        load_worker(target, folder)

    assert hint in told.value.message


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("app:broken", ["ZeroDivisionError", "LookupError: no queues today", "in broken", "while calling app:broken"]),
        ("app:leaves", ["SystemExit: 3"]),
        ("faulty:worker", ["faulty.py", "1 / 0", "ZeroDivisionError", "while importing faulty"]),
        ("unclear:worker", ["unclear.py", "SyntaxError"]),
        ("missing:worker", ["missing.py", "No module named 'nowhere_to_be_found'"]),
        ("own:worker", ["own.py", "Own", "while importing own"]),
        ("moody:worker", ["moody.py", "RuntimeError: not today", "while looking for worker"]),
        ("moody:queues", ["moody.py", "RuntimeError: no list", "while going through moody:queues"]),
    ],
)
def test_what_the_app_raises_is_shown_without_our_part(
    folder: Path, target: str, told: list[str], capsys: pytest.CaptureFixture[str]
):
    (folder / "faulty.py").write_text("1 / 0")
    (folder / "unclear.py").write_text("def")
    (folder / "missing.py").write_text("import nowhere_to_be_found")
    (folder / "own.py").write_text("class Own(BaseException): pass\nraise Own")
    (folder / "moody.py").write_text(MOODY)

    with pytest.raises(click.exceptions.Exit) as left:
        load_worker(target, folder)

    shown = capsys.readouterr().err
    assert left.value.exit_code == ExitCode.APP
    assert all(each in shown for each in told), shown
    assert "importlib" not in shown
    assert "loading.py" not in shown


def test_a_worker_is_narrowed_to_some_of_its_queues(folder: Path):
    worker = load_worker("app:worker", folder)

    narrow(worker, ["parcels"])

    assert [queue.name for queue in worker.queues] == ["parcels"]
    with pytest.raises(click.UsageError, match="did you mean 'parcels'"):
        narrow(worker, ["parcel"])


def test_only_our_own_folder_is_left_out_of_what_an_app_raised(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.cli.loading.__file__", str(folder / "shop" / "loading.py"))
    (folder / "shop_jobs.py").write_text("1 / 0")

    with pytest.raises(click.exceptions.Exit):
        load_worker("shop_jobs:queue", folder)

    assert f'{folder / "shop_jobs.py"}", line 1' in capsys.readouterr().err


def test_a_wrong_url_is_no_fault_of_the_app(ropeway: Ropeway):
    ran = ropeway("worker", "app:letters", "--url", "nowhere://host")

    assert ran.code == ExitCode.USAGE
    assert "'nowhere://host' names no store" in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_without_modules_is_told_as_one(tmp_path: Path):
    with pytest.raises(click.UsageError) as told:
        load_worker("nowhere_at_all:queue", tmp_path)

    assert "that folder has no modules at all" in told.value.message
    assert "yet" not in told.value.message


def test_a_module_without_a_queue_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bare_module.py").write_text("number = 5")
    monkeypatch.setattr(sys, "path", [*sys.path])

    with pytest.raises(click.UsageError, match="'bare_module' has no 'queue'; it has no Queue and no Worker"):
        load_worker("bare_module:queue", tmp_path)
