"""The table of all pages: what each needs of its visitor is in its row."""

from __future__ import annotations

from typing import Final

from ..routes import Route
from .pages import doctor, entry, events, failures, flows, job, jobs, overview, queues, schedules, workers

ROUTES: Final[tuple[Route, ...]] = (
    *entry.ROUTES,
    *overview.ROUTES,
    *queues.ROUTES,
    *jobs.ROUTES,
    *job.ROUTES,
    *failures.ROUTES,
    *flows.ROUTES,
    *schedules.ROUTES,
    *workers.ROUTES,
    *events.ROUTES,
    *doctor.ROUTES,
)
