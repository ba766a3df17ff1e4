"""Handlers in parts: a pipeline of two phases, and handlers with steps. Each part writes its start into the diary.

All of them stand before the gate that their data names, in the middle of their work: what comes before is stored then.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from ropeway import Job, LockLost, Phase, PhaseContext, Pipeline, SyncJob, SyncPhaseContext

from .diary import Diary
from .handlers import LOOK, is_open

FETCHED: Final = {"rows": [3, "\u00e9", None]}
REACHED: Final = 40
"""Percent of the second phase, before the gate."""


class Parts:
    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    def by_name(self) -> dict[str, Any]:
        return {
            "import": Pipeline([Phase("fetch", self._fetch), Phase("process", self._process)]),
            "import-in-thread": Pipeline([Phase("fetch", self._fetch), Phase("process", self._process_in_thread)]),
            "steps": self._steps,
            "steps-in-thread": self._steps_in_thread,
        }

    async def _fetch(self, job: Job, _: PhaseContext) -> Any:
        self._note("fetch", job)
        return FETCHED

    async def _process(self, job: Job, ctx: PhaseContext) -> list[Any]:
        self._note(f"process after {ctx.last_progress}", job)
        await ctx.progress(REACHED)
        return [ctx.phase_result("fetch"), *await self._steps(job)]

    async def _steps(self, job: Job) -> list[Any]:
        numbers = [await job.step(f"before-{n}", self._number, job, "before", n) for n in range(2)]
        self._diary.write("start", job)
        while not is_open(job):  # noqa: ASYNC110 - it is opened by another process
            await asyncio.sleep(LOOK)
        try:
            numbers.append(await job.step("after", self._number, job, "after", 2))
        except (LockLost, asyncio.CancelledError):
            self._diary.write("stopped", job)
            raise
        self._diary.write("end", job)
        return [numbers, job.token]

    async def _number(self, job: Job, what: str, number: int) -> int:
        self._note(f"{what} {number}", job)
        return number

    def _process_in_thread(self, job: SyncJob, ctx: SyncPhaseContext) -> list[Any]:
        self._note(f"process after {ctx.last_progress}", job)
        ctx.progress(REACHED)
        return [ctx.phase_result("fetch"), *self._steps_in_thread(job)]

    def _steps_in_thread(self, job: SyncJob) -> list[Any]:
        """Deaf to its end: it tries to store another step, and completes even if that was refused."""
        numbers = [job.step(f"before-{n}", self._number_in_thread, job, "before", n) for n in range(2)]
        self._diary.write("start", job)
        while not is_open(job):
            time.sleep(LOOK)
        try:
            numbers.append(job.step("after", self._number_in_thread, job, "after", 2))
        except LockLost:
            self._note("refused", job)
        self._diary.write("end", job)
        return [numbers, job.token]

    def _number_in_thread(self, job: SyncJob, what: str, number: int) -> int:
        self._note(f"{what} {number}", job)
        return number

    def _note(self, part: str, job: Job | SyncJob) -> None:
        self._diary.write("part", job, part)
