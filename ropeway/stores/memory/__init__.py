"""Jobs in the memory of this process: the fastest store, and one that forgets everything at its end."""

from .store import MemoryStore

__all__ = ["MemoryStore"]
