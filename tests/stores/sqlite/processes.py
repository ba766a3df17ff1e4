"""Python in another process, for what one process alone cannot show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any

PRELUDE = """
import asyncio, os, signal, sys
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import *
path = sys.argv[1]
def new_store(): return SQLiteStore.from_url("sqlite:///" + path)
def say(word): print(word, flush=True)
"""


def start(script: str, path: object, **popen: Any) -> subprocess.Popen[str]:
    """Runs a script that knows `new_store()`, `say(word)` and the factories."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + dedent(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **popen,
    )


def run(script: str, path: object, **popen: Any) -> str:
    """What the script said; fails if it failed."""
    process = start(script, path, **popen)
    said, complaints = process.communicate()
    assert process.returncode == 0, complaints
    return said


def line(process: subprocess.Popen[str]) -> str:
    """The next word that the process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], word: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


@contextmanager
def writing(path: object) -> Iterator[None]:
    """While another process holds the file's write lock."""
    script = """
    import apsw
    connection = apsw.Connection(path)
    connection.execute("BEGIN IMMEDIATE")
    say("writing")
    input()
    """
    with start(script, path) as writer:
        assert line(writer) == "writing"
        yield
        assert writer.poll() is None, "it stopped writing before its time"
        tell(writer)
