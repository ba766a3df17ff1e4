"""Fingerprints of failures: what is the same about errors that differ by ids, numbers and addresses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from ...client.found import FoundJob

LONGEST: Final = 300
_VARYING: Final = (
    (re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"\b0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<email>"),
    (re.compile(r"\b(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{12,}\b"), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def shape_of(reason: str) -> str:
    """The message without what varies."""
    text = reason[: LONGEST * 4]
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text[:LONGEST]


def place_of(trace: str) -> str:
    """The last frame of a trace: file, line and function."""
    frames = _FRAME.findall(trace)
    if not frames:
        return ""
    file, line, function = frames[-1]
    return f"{'/'.join(file.replace(chr(92), '/').split('/')[-2:])}:{line} in {function}"


class Group:
    """Failed jobs of one queue and name whose errors have the same shape."""

    def __init__(self, job: FoundJob, shape: str) -> None:
        found = job.snapshot
        self.queue: Final = found.queue
        self.name: Final = found.name
        self.shape: Final = shape
        self.newest: Final = job
        self.count = 0
        self.first: datetime = ended(job)
        self.last: datetime = self.first
        self.place = ""

    @property
    def id(self) -> str:
        return fingerprint(self.queue, self.name, self.shape)

    def add(self, job: FoundJob) -> None:
        at = ended(job)
        self.count += 1
        self.first, self.last = min(self.first, at), max(self.last, at)


def ended(job: FoundJob) -> datetime:
    return job.snapshot.finished_at or job.snapshot.created_at


def fingerprint(queue: str, name: str, shape: str) -> str:
    return hashlib.sha256(f"{queue}\x00{name}\x00{shape}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fingerprint_of(job: FoundJob) -> str:
    found = job.snapshot
    return fingerprint(found.queue, found.name, shape_of(found.reason or ""))


def grouped(jobs: Iterable[FoundJob]) -> list[Group]:
    """The groups of jobs that come the newest first; those with the newest failures first."""
    groups: dict[tuple[str, str, str], Group] = {}
    for job in jobs:
        found = job.snapshot
        shape = shape_of(found.reason or "")
        key = (found.queue, found.name, shape)
        groups.setdefault(key, Group(job, shape)).add(job)
    return sorted(groups.values(), key=lambda group: group.last, reverse=True)
