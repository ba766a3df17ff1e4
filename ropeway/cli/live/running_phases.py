"""The phases that run now, from events; those that began before the view are read once from their jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...job.events import Entry
from ...job.phases import phases_of
from ...job.record import JobRecord
from ...store.contract import Store
from .picture import RunningPhase


class RunningPhases:
    """Knows for each running job its phase, or that it has none. Lists of jobs come without it."""

    def __init__(self) -> None:
        self._known: dict[str, RunningPhase | None] = {}

    def hear(self, entry: Entry) -> None:
        if entry.what == "phase-started":
            for job_id, detail in entry.jobs:
                data = entry.data_of(detail)
                self._known[job_id] = msgspec.convert(
                    {"name": data["phase"], "number": data["number"], "of": data["of"]}, RunningPhase
                )

    def forget(self) -> None:
        """For when events were missed."""
        self._known.clear()

    async def look(self, store: Store, queue: str, active: Sequence[JobRecord]) -> None:
        # A running phase has progress from its start.
        strangers = [job.id for job in active if job.progress is not None and job.id not in self._known]
        if strangers:
            for job in await store.get(queue, strangers):
                if job is not None:
                    self._known[job.id] = _phase_of(job)
        shown = {job.id for job in active}
        self._known = {job_id: phase for job_id, phase in self._known.items() if job_id in shown}

    def of(self, job_id: str) -> RunningPhase | None:
        return self._known.get(job_id)


def _phase_of(job: JobRecord) -> RunningPhase | None:
    try:
        phases = phases_of(job)
    except msgspec.MsgspecError:
        return None
    for number, phase in enumerate(phases, 1):
        if phase.state != "completed":
            return RunningPhase(phase.name, number, len(phases))
    return None
