"""Jobs in the store behind a `ropeway serve`, over HTTP."""

from .store import RemoteStore

__all__ = ["RemoteStore"]
