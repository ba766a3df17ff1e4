"""The metrics of a page for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from ropeway.metrics.families import SERVER, STORE
from ropeway.metrics.page import Family

from .tables import code, table


def of_stores() -> str:
    return _listed(STORE)


def of_servers() -> str:
    return _listed(SERVER)


def _listed(families: Iterable[Family]) -> str:
    return table(["metric", "kind", "meaning"], [[code(each.name), each.kind, each.help] for each in families])
