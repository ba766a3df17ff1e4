"""The view in a terminal: redrawn at every interval and key, and when the size changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Final

from rich.console import Console
from rich.live import Live

from .drawing import View, draw
from .gathering import Gatherer
from .glyphs import glyphs_for
from .keys import Keyboard
from .picture import Picture
from .pictures import pictures
from .signals import RESIZE, SUSPEND, ending, on_signals, until

HANGUP: Final = 129


class LiveScreen:
    """Uses the terminal's alternate screen, and restores the main one, however it ends."""

    def __init__(self, console: Console, gatherer: Gatherer, interval: float) -> None:
        self._console = console
        self._gatherer = gatherer
        self._interval = interval
        self._keyboard = Keyboard(sys.stdin.fileno())
        self._view = View(interval=interval, keys=self._keyboard.is_there)
        self._glyphs = glyphs_for(console.encoding)
        self._picture: Picture | None = None
        self._shown: Picture | None = None
        self._taken = contextlib.ExitStack()
        self._live: Live | None = None
        self._end: asyncio.Future[int] | None = None

    async def run(self) -> int:
        """Runs until q, Ctrl-C or another signal; returns the exit code."""
        try:
            with ending() as self._end, on_signals((RESIZE, self._draw), (SUSPEND, self._suspend)):
                try:
                    return await until(self._end, asyncio.create_task(self._follow()))
                finally:
                    self._give_back()
        except OSError:
            # The terminal was closed.
            return HANGUP

    async def _follow(self) -> None:
        async for picture in pictures(self._gatherer, self._interval):
            self._picture = picture
            if self._live is None:
                # Only once the store has answered: until then an error is a line on the main screen.
                self._take()
            if not self._view.paused:
                self._shown = picture
            self._draw()

    def _take(self) -> None:
        with contextlib.ExitStack() as taking:
            taking.enter_context(self._keyboard.unbuffered())
            taking.enter_context(self._keyboard.heard_by(self._press))
            self._live = taking.enter_context(
                Live(
                    console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
                )
            )
            self._taken = taking.pop_all()

    def _give_back(self) -> None:
        self._live = None
        self._taken.close()

    def _suspend(self) -> None:
        """Handles Ctrl-Z: restores the terminal for the shell, and takes it again after `fg`."""
        was_taken = self._live is not None
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if was_taken:
            self._take()
            self._draw()

    def _draw(self) -> None:
        if self._live is not None and self._shown is not None:
            width, height = self._console.size
            self._live.update(draw(self._shown, self._view, width, height, self._glyphs), refresh=True)

    def _press(self, key: str) -> None:
        match key:
            case "q":
                if self._end is not None and not self._end.done():
                    self._end.set_result(0)
                return
            case "p" | " ":
                self._view = self._view._replace(paused=not self._view.paused)
                if not self._view.paused:
                    self._shown = self._picture
            case "up" | "down":
                self._view = self._view._replace(selected=self._neighbour(1 if key == "down" else -1))
            case "a" | "escape":
                self._view = self._view._replace(selected=None)
        self._draw()

    def _neighbour(self, step: int) -> str | None:
        """The queue above or below the selected one; "all" comes between the last and the first."""
        names: list[str | None] = [None, *(queue.name for queue in self._picture.queues)] if self._picture else [None]
        place = names.index(self._view.selected) if self._view.selected in names else 0
        return names[(place + step) % len(names)]
