"""The table of routes: what the server answers, to whom, and how. Everything else is derived from it."""

from __future__ import annotations

from typing import Final

from .api import (
    bulk,
    changing,
    claiming,
    commands,
    events,
    jobs,
    metrics,
    numbers,
    queues,
    schedules,
    submitting,
    system,
    workers,
    working,
)
from .routes import Route

ROUTES: Final[tuple[Route, ...]] = (
    *system.ROUTES,
    *metrics.ROUTES,
    *submitting.ROUTES,
    *claiming.ROUTES,
    *working.ROUTES,
    *jobs.ROUTES,
    *changing.ROUTES,
    *bulk.ROUTES,
    *queues.ROUTES,
    *numbers.ROUTES,
    *workers.ROUTES,
    *events.ROUTES,
    *schedules.ROUTES,
    *commands.ROUTES,
)
