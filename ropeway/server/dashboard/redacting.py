"""What is shown of jobs: the application's `redact` decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from ...logger import log

Kind: TypeAlias = Literal["data", "result", "progress", "reason", "trace", "log", "event"]
Redact: TypeAlias = Callable[[Kind, Any], Any]
"""Takes what a value is, and the value; answers what is shown in its place."""


def redacted(redact: Redact | None, kind: Kind, value: Any) -> Any:
    if redact is None or value is None:
        return value
    try:
        return redact(kind, value)
    except Exception:  # noqa: BLE001 - a page that shows the value would be worse than none
        log.exception("redact failed: the value is not shown")
        return "[redact failed: not shown]"
