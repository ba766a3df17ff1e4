"""What the figures were taken on."""

import os
import platform
import re
import time
from pathlib import Path
from typing import Any


def describe(folder: Path) -> dict[str, Any]:
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "fsync_ms": round(_fsync(folder), 3),
    }


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except FileNotFoundError:
        found = None
    return found.group(1) if found else platform.processor()


def _fsync(folder: Path, times: int = 200) -> float:
    """Milliseconds that the disk takes to keep a page: the floor under every durable commit."""
    path = folder / "fsync-probe"
    with path.open("wb") as file:
        started = time.perf_counter()
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        elapsed = time.perf_counter() - started
    path.unlink()
    return 1000 * elapsed / times
