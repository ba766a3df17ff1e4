"""Jobs in one SQLite file, shared by every process on the machine."""

from .store import SQLiteStore

__all__ = ["SQLiteStore"]
