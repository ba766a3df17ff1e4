"""Refusing calls on a store handle that was closed or inherited by a fork."""

from __future__ import annotations

import os

from ...errors import StoreClosed


class HandleGuard:
    """The open or closed state of one handle."""

    __slots__ = ("__weakref__", "_pid", "is_open", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_open = True
        self._pid = os.getpid()

    @property
    def is_inherited(self) -> bool:
        """True in a forked child, where the jobs are a copy and the store's lock may be held for ever."""
        return os.getpid() != self._pid

    def check(self) -> None:
        if not self.is_open:
            raise StoreClosed(self.url)
        if self.is_inherited:
            raise StoreClosed(self.url, "this handle was opened before a fork: connect in the child")
