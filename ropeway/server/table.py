"""The table of routes: what the server answers, to whom, and how. Everything else is derived from it."""

from __future__ import annotations

from typing import Final

from .api import commands, system
from .routes import Route

ROUTES: Final[tuple[Route, ...]] = (
    *system.ROUTES,
    *commands.ROUTES,
)
