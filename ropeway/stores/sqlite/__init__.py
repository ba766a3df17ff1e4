"""Jobs in one SQLite file, shared by every process on the machine."""

from .forking import follow_forks
from .store import SQLiteStore

__all__ = ["SQLiteStore"]

follow_forks()
