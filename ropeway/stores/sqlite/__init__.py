"""Jobs in one SQLite file, shared by every process on the machine."""

from . import (  # noqa: F401 - these modules have the functions that execute commands, and put them into a table
    adding,
    children,
    claiming,
    deduping,
    finding,
    operating,
    queries,
    queues,
    records,
    retrying,
    schedules,
    settling,
    streams,
    ticking,
    updating,
)
from .forking import follow_forks
from .store import SQLiteStore

__all__ = ["SQLiteStore"]

follow_forks()
