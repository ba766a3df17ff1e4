"""The marks in a page, and what stands between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from . import api, cli, dedupe, errors, events, flows, life, metrics, server, settings

PAGES: Final = Path(__file__).parents[1]

SECTIONS: Final[dict[str, Callable[[], str]]] = {
    "api": api.reference,
    "commands": cli.commands,
    "dedupe actions": dedupe.actions,
    "error tree": errors.tree,
    "ends of children": flows.effects,
    "events of moves": events.of_moves,
    "exit codes": cli.exit_codes,
    "job options": settings.job_options,
    "limits": settings.limits,
    "metrics of a server": metrics.of_servers,
    "metrics of a store": metrics.of_stores,
    "moves": life.table,
    "moves between states": life.matrix,
    "notices": events.notices,
    "queue options": settings.queue_options,
    "roles": server.roles,
    "routes": server.routes,
    "schedule options": settings.schedule_options,
    "server limits": server.limits,
    "sqlite options": settings.sqlite_options,
    "testing api": api.testing_reference,
    "worker events": events.of_workers,
    "worker events of queues": events.of_queues,
    "worker options": settings.worker_options,
}

_SECTION: Final = re.compile(r"(<!-- derived: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """The page with all of its sections as the code has them now."""
    return _SECTION.sub(lambda mark: f"{mark[1]}\n{SECTIONS[mark[2]]()}\n\n{mark[3]}", page)


def named(page: str) -> list[str]:
    """The sections that a page asks for."""
    return [name for _, name, _ in _SECTION.findall(page)]
