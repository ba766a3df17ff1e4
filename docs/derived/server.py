"""Routes, roles and limits of the server."""

from __future__ import annotations

from ropeway.server.limits import DEFAULTS, Limits
from ropeway.server.roles import RIGHTS, ROLES
from ropeway.server.table import ROUTES

from .source import attribute_texts
from .tables import code, table


def routes() -> str:
    """The table of routes, by chapter."""
    chapters = dict.fromkeys(route.tag for route in ROUTES)
    return "\n\n".join(f"**{tag.capitalize()}**\n\n{_chapter(tag)}" for tag in chapters)


def _chapter(tag: str) -> str:
    rows = [
        (code(route.method), code(route.path), route.summary.rstrip("."), " or ".join(route.right) or "–")
        for route in ROUTES
        if route.tag == tag
    ]
    return table(("", "path", "what it does", "right"), rows)


def roles() -> str:
    rows = [(code(role), *("yes" if right in rights else "" for right in RIGHTS)) for role, rights in ROLES.items()]
    return table(("role", *RIGHTS), rows)


def limits() -> str:
    docs = attribute_texts(Limits)
    rows = [(code(name), code(_shown(getattr(DEFAULTS, name))), docs[name]) for name in Limits.__struct_fields__]
    return table(("limit", "default", ""), rows)


def _shown(value: object) -> str:
    return f"{value:,g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
