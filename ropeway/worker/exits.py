"""The exit code of a worker's process that ended although its event loop was blocked."""

from __future__ import annotations

from typing import Final

BLOCKED_LOOP: Final = 7
