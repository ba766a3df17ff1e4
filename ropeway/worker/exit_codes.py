"""The exit code of a worker process that was ended because its event loop was blocked."""

from __future__ import annotations

from typing import Final

BLOCKED_LOOP: Final = 7
