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
"""


class Ended(NamedTuple):
    code: int
    said: list[str]
    complaints: str


def start(script: str, url: str) -> subprocess.Popen[str]:
    """Runs a script that knows `queue`, `url` and `say(word)`. Warnings are printed."""
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-W", "ignore::DeprecationWarning", "-c", PRELUDE + dedent(script), url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(program: subprocess.Popen[str]) -> Ended:
    said, complaints = program.communicate(timeout=100)
    return Ended(program.returncode, said.splitlines(), complaints)


def run(script: str, url: str) -> Ended:
    return end(start(script, url))
