"""The index of one state: its jobs in the order in which they are claimed or listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from itertools import islice
from typing import Final

from ...job.record import JobRecord
from ...job.states import FINAL, State
from .keys import Key, MergedKeys, SortedKeys


def _by_finish(job: JobRecord) -> Key:
    return (job.finished_at or 0, abs(job.order), job.id)


_KEYS: Final[dict[State, Callable[[JobRecord], Key]]] = {
    "waiting": lambda job: (job.priority, job.order, job.id),
    "waiting-children": lambda job: (0, abs(job.order), job.id),
    "delayed": lambda job: (job.due_at or 0, job.order, job.id),
    "active": lambda job: (job.started_at or 0, abs(job.order), job.id),
    "completed": _by_finish,
    "failed": _by_finish,
    "cancelled": _by_finish,
}
"""Sort keys by state, for `find`; waiting jobs are also claimed in that order.

`abs(order)` is the sequence number that the job got when it was added, or when it was last moved to the end.
"""


class StateIndex:
    """A job's position depends on its record alone, so that a step can be undone by restoring records.

    Two more orders, by name and by age, are built when they are first needed, maintained from then on, and dropped when
    the index is empty.
    """

    __slots__ = ("_by_age", "_by_name", "_is_final", "_jobs", "_kept", "_key", "counted")

    def __init__(self, state: State, jobs: Mapping[str, JobRecord]) -> None:
        self.counted = SortedKeys()
        """Keys of jobs that count towards retention limits: not those kept for ever, which may be far more."""
        self._kept = SortedKeys()
        self._is_final = state in FINAL
        self._key = _KEYS[state]
        self._jobs = jobs
        self._by_name: dict[str, SortedKeys] | None = None
        self._by_age: SortedKeys | None = None

    def __len__(self) -> int:
        return len(self.counted) + len(self._kept)

    @property
    def keys(self) -> SortedKeys | MergedKeys:
        return MergedKeys(self.counted, self._kept) if self._kept else self.counted

    def add(self, jobs: list[JobRecord]) -> None:
        for keys, part in self._parts(jobs):
            keys.add([*map(self._key, part)])
        if self._by_name is not None:
            for job in jobs:
                self._by_name.setdefault(job.name, SortedKeys()).add([self._key(job)])
        if self._by_age is not None:
            self._by_age.add([*map(_age, jobs)])

    def remove(self, jobs: list[JobRecord]) -> None:
        for keys, part in self._parts(jobs):
            keys.remove([*map(self._key, part)])
        if not self:
            self._by_name = self._by_age = None
        if self._by_name is not None:
            for job in jobs:
                self._by_name[job.name].remove([self._key(job)])
                if not self._by_name[job.name]:
                    del self._by_name[job.name]
        if self._by_age is not None:
            self._by_age.remove([*map(_age, jobs)])

    def _parts(self, jobs: list[JobRecord]) -> list[tuple[SortedKeys, list[JobRecord]]]:
        if self._is_final and any(job.expires_at is None for job in jobs):
            kept = [job for job in jobs if job.expires_at is None]
            return [(self.counted, [job for job in jobs if job.expires_at is not None]), (self._kept, kept)]
        return [(self.counted, jobs)]

    def first_named(self, allowed: Callable[[str], bool], names: Iterable[str] | None, count: int) -> list[Key]:
        """The first jobs whose names are allowed; `names`, if given, are the only candidates."""
        if self._by_name is None or names is None:
            # Most workers take most names, so the first few jobs are often enough.
            head = self.keys.first(4 * count)
            found = [key for key in head if allowed(self._jobs[key[2]].name)][:count]
            if len(found) == count or len(head) == len(self.keys):
                return found
        # Millions of unwanted jobs may be in front: they are skipped by name, not one by one.
        lines = self._lines()
        wanted = [name for name in (lines if names is None else names) if name in lines and allowed(name)]
        return [*islice(merge(*(lines[name].first(count) for name in wanted)), count)]

    def oldest(self) -> SortedKeys:
        """All its jobs by `created_at`."""
        if self._by_age is None:
            self._by_age = SortedKeys(_age(self._jobs[id]) for _, _, id in self.keys)
        return self._by_age

    def _lines(self) -> dict[str, SortedKeys]:
        if self._by_name is None:
            lines: dict[str, list[Key]] = {}
            for key in self.keys:
                lines.setdefault(self._jobs[key[2]].name, []).append(key)
            self._by_name = {name: SortedKeys(keys) for name, keys in lines.items()}
        return self._by_name


def _age(job: JobRecord) -> Key:
    return (job.created_at, abs(job.order), job.id)
