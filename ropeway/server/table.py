"""The table of routes: what the server answers, to whom, and how. Everything else is derived from it."""

from __future__ import annotations

from typing import Final

from .api import bulk, commands, events, jobs, metrics, queues, schedules, submitting, system, working
from .routes import Route

ROUTES: Final[tuple[Route, ...]] = (
    *system.ROUTES,
    *metrics.ROUTES,
    *submitting.ROUTES,
    *working.ROUTES,
    *jobs.ROUTES,
    *bulk.ROUTES,
    *queues.ROUTES,
    *events.ROUTES,
    *schedules.ROUTES,
    *commands.ROUTES,
)
