"""Kills and stops in the middle of work, and an account of what they caused."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from ropeway import Queue

from .chronicle import Chronicle
from .diary import Line
from .harness import AppProcess, Fleet, stop_between_calls, until


class Blow(NamedTuple):
    """A kill, a stop with its end, or what happened to the way to the store."""

    pid: int | None
    """None: it struck all."""
    at: float
    until: float


class Run(NamedTuple):
    """One run of a job, as its handler wrote it down."""

    begun: Line
    ended_at: float
    """Infinite, if its end was never written."""


class Chaos:
    """Strikes workers that are busy, and puts new ones in the place of the killed."""

    def __init__(self, fleet: Fleet, queue: Queue, chronicle: Chronicle, random: Random, **options: Any) -> None:
        self._fleet = fleet
        self._queue = queue
        self._chronicle = chronicle
        self._random = random
        self._options = options
        self._alive: list[AppProcess] = []
        self.kills: list[Blow] = []
        self.stops: list[Blow] = []

    async def begin(self, workers: int) -> None:
        self._alive = await self._fleet.start_many(workers, **self._options)

    async def kill(self) -> None:
        victim = await self._busy_worker()
        at = victim.kill()
        self.kills.append(Blow(victim.pid, at, math.inf))
        self._alive.remove(victim)
        # The next blow waits for it: jobs are recovered by workers that live.
        self._alive.append(await self._fleet.start(**self._options).ready())

    async def stop(self) -> None:
        """Stops a worker until others have taken its jobs from it, and sees its own outcomes refused."""
        victim = await self._busy_worker()
        at = await stop_between_calls(victim, self._queue)
        held = set(victim.running())
        await self._chronicle.read()
        recovered = self._chronicle.count("stall")
        refused = self._chronicle.count("lock-lost")
        await until(lambda: self._grown("stall", recovered, held), f"the recovery of {held}")
        self.stops.append(Blow(victim.pid, at, victim.go_on()))
        await until(lambda: self._grown("lock-lost", refused, held), f"the refusal of {held}")

    async def recover(self) -> None:
        """Waits until every worker works again, and none has jobs in its hands from before."""
        now = time.monotonic()
        for worker in self._alive:
            await worker.until(partial(_works_since, worker, now), "more work")

    async def _grown(self, what: str, before: Counter[str], ids: Iterable[str]) -> bool:
        await self._chronicle.read()
        now = self._chronicle.count(what)
        return all(now[job_id] > before[job_id] for job_id in ids)

    async def _busy_worker(self) -> AppProcess:
        """One with jobs in its hands, after it has begun some more: so blows come at any point of its work."""
        victim = self._random.choice(self._alive)
        begun = len(victim.wrote("start")) + self._random.randrange(1, 10)
        await victim.until(lambda: len(victim.wrote("start")) >= begun and victim.running(), "work")
        return victim


def _works_since(worker: AppProcess, moment: float) -> bool:
    begun = worker.wrote("start")
    return bool(begun) and begun[-1].at > moment and all(line.at > moment for line in worker.running().values())


def runs_by_job(fleet: Fleet) -> dict[str, list[Run]]:
    """In the order of their claims: a worker that stood still may begin a run after the next one has begun."""
    ends = {(line.job, line.token): line.at for line in [*fleet.lines("end"), *fleet.lines("stopped")]}
    runs: dict[str, list[Run]] = {}
    for line in sorted(fleet.lines("start"), key=lambda line: line.start):
        runs.setdefault(line.job, []).append(Run(line, ends.get((line.job, line.token), math.inf)))
    return runs


def reruns(fleet: Fleet) -> list[tuple[Run, Run]]:
    """Every run with the next one of the same job."""
    return [pair for runs in runs_by_job(fleet).values() for pair in pairwise(runs)]


def cause(first: Run, second: Run, blows: Iterable[Blow], lock: float) -> Blow | None:
    """What struck the first run's worker after its claim, before the second run, and before it could be settled.

    An outcome that is not settled a lock's length after its run is late by itself.
    """
    for blow in blows:
        if (
            blow.pid in (None, first.begun.pid)
            and first.begun.claimed_at <= blow.until
            and blow.at <= min(second.begun.at, first.ended_at + lock)
        ):
            return blow
    return None
