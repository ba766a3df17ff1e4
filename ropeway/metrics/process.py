"""Numbers of this process, under the names that Prometheus's own clients give them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from . import families
from .page import Page

STARTED: Final = time.time()
"""When this was imported: a server does so as it starts."""
_FOLDER: Final = Path("/proc/self")


def put_process(page: Page) -> None:
    """Writes what this system tells: memory and files on Linux alone."""
    page.put(families.STARTED, STARTED)
    page.put(families.PROCESSOR, time.process_time())
    if _FOLDER.exists():
        pages = int((_FOLDER / "statm").read_text().split()[1])
        page.put(families.MEMORY, pages * os.sysconf("SC_PAGE_SIZE"))
        page.put(families.FILES, sum(1 for _ in (_FOLDER / "fd").iterdir()))
