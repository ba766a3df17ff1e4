"""Whole programs that use the sync twins, for what only a process of their own can show."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import NamedTuple

PRELUDE = """
import asyncio, atexit, multiprocessing, os, signal, sys, threading, time
from ropeway import *
url = sys.argv[1]
queue = Queue("letters", url)
def say(word): print(word, flush=True)
# Python's own fault in these two: there the background loop and the file must be in use before.
cannot_start_threads_at_the_end = sys.version_info[:3] in ((3, 12, 0), (3, 12, 1))
"""


class Ended(NamedTuple):
    code: int
    said: list[str]
    complaints: str


def start(script: str, url: str, stdin: int | None = None) -> subprocess.Popen[str]:
    """Runs a script that knows `queue`, `url` and `say(word)`. Warnings are printed."""
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-W", "ignore::DeprecationWarning", "-c", PRELUDE + dedent(script), url],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(program: subprocess.Popen[str]) -> Ended:
    said, complaints = program.communicate(timeout=100)
    return Ended(program.returncode, said.splitlines(), complaints)


def run(script: str, url: str) -> Ended:
    return end(start(script, url))
