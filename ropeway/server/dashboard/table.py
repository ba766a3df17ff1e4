"""The table of all pages: what each needs of its visitor is in its row."""

from __future__ import annotations

from typing import Final

from ..routes import Route
from .pages import entry, overview, queues

ROUTES: Final[tuple[Route, ...]] = (
    *entry.ROUTES,
    *overview.ROUTES,
    *queues.ROUTES,
)
