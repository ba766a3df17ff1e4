"""The connection pool of one handle on one event loop: calls wait out short outages, and broken links are replaced."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from psycopg import Error

from ...errors import NotConnected, StoreMissing, StoreReadOnly, StoreUnavailable
from ...store.doubt import said
from ...store.single_flight import SingleFlight
from .connection import FIRST_PAUSE, open_link
from .failures import NO_FUNCTION, READ_ONLY, ROLLED_BACK, STATEMENT_LOST, code_of, raise_typed, typed_error
from .link import Link, NotSent, Row, Statement
from .parameters import Parameter
from .schema import RECORDED_FOR, check_schema, record_use
from .statements import in_schema
from .target import Target

MOST_LINKS: Final = 2
"""A worker has two calls under way at a time."""
MOST_TRIES: Final = 10
LONGEST_PAUSE: Final = 0.5
PATIENCE: Final = 3.0
"""Seconds for which calls wait for a server that worked before, until they raise."""
LATEST: Final = 4.7
"""Seconds for which a call waits for a connection, so that a producer that was cut off knows it within 5."""


class LinkPool:
    """One link, and a second one as soon as two calls are under way."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._links: list[Link] = []
        self._opening = SingleFlight(target.url, self._open)
        self._was_up = False
        self._is_reached = False
        """True once the server has answered a link that is being opened; making the schema may then take long."""
        self._failures = 0
        self._warm_up = Statement(in_schema("SELECT ropeway.warm_up()", target.schema))
        self._is_warm = False
        self._record_use_at = math.inf
        """When to record again that this release's functions are used."""

    async def open(self) -> None:
        await self._link()

    async def warm_up(self) -> None:
        """Opens all links and runs `sql/lib/warm_up.sql` on each, so that a worker's first jobs are not slower."""
        if not self._is_warm:
            self._is_warm = True
            for link in self._links:
                self._warm_up_link(link)
            while len(self._links) < MOST_LINKS:
                await self._opening.result()

    def _warm_up_link(self, link: Link) -> None:
        # Behind a pooler the next statement may meet another session.
        if link.is_up and link.prepares:
            warmed = link.ask(self._warm_up)
            warmed.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def call(
        self, statement: Statement, parameters: Sequence[Parameter] = (), *, is_repeat: bool = False
    ) -> list[Row]:
        """Executes a statement, again if the server rolled it back for a reason that passes.

        A connection that breaks under way raises: whether the statement took effect is unknown. A repeat of a call goes
        to the link that still executes the first try, if there is one, and so finds what that did.
        """
        deadline: float | None = None
        pause, tries = FIRST_PAUSE, 0
        was_installed = False
        await self.keep_functions()
        while True:
            abandoned = [link for link in self._links if link.is_abandoned] if is_repeat else []
            link = abandoned[0] if abandoned else await self._link()
            began = asyncio.get_running_loop().time()
            try:
                return await link.ask(statement, parameters)
            except NotSent:
                continue
            except Error as error:
                code = code_of(error)
                tries += 1
                if not link.is_up:
                    self._abort_idle(began)
                if code in STATEMENT_LOST and tries < MOST_TRIES:
                    link.forget_prepared()
                    continue
                if code == NO_FUNCTION and not was_installed:
                    was_installed = True
                    await self._install()
                    continue
                if code == READ_ONLY:
                    # Another server is the primary now; the next link looks for it.
                    link.abort()
                now = asyncio.get_running_loop().time()
                deadline = now + PATIENCE if deadline is None else deadline
                passes = code == READ_ONLY or code in ROLLED_BACK
                if not passes or tries >= MOST_TRIES or now + pause > deadline:
                    raise typed_error(self._target.url, error) from error
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            pause = min(pause * 2, LONGEST_PAUSE)

    async def keep_functions(self) -> None:
        """Records once a day that this release's functions are used, so that they are not dropped."""
        now = asyncio.get_running_loop().time()
        if now < self._record_use_at:
            return
        self._record_use_at = now + RECORDED_FOR
        with suppress(Error):
            if not await record_use(await self._link(), self._target):
                await self._install()

    async def _install(self) -> None:
        """Installs functions that were dropped, on a separate link: other calls must not join its transaction."""
        link = await open_link(self._target)
        try:
            await check_schema(link, self._target)
        except Error as error:
            raise typed_error(self._target.url, error) from error
        finally:
            link.abort()

    def _abort_idle(self, since: float) -> None:
        """Closes idle links that heard nothing since: what ended one link may have ended them, too."""
        for link in self._links:
            if link.is_free and link.heard_at <= since:
                link.abort()

    async def _link(self) -> Link:
        """A free link, or else the least loaded one; concurrent callers share the opening of a new one."""
        self._links = links = [link for link in self._links if link.is_up]
        for link in links:
            if link.is_free:
                return link
        if not links:
            return await self._opened()
        if len(links) < MOST_LINKS:
            self._opening.begin()
        return min(links, key=lambda link: link.load)

    async def _opened(self) -> Link:
        """Waits for a new link for a limited time; opening it goes on, for later callers on a slow network."""
        limit = asyncio.timeout(LATEST)
        try:
            async with limit:
                return await self._opening.result()
        except TimeoutError as error:
            if not limit.expired():
                raise
            if not self._is_reached:
                what = f"it cannot be reached: no answer within {LATEST:g} s"
                raise NotConnected(self._target.url, what) from error
        return await self._opening.result()

    async def _open(self) -> Link:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (PATIENCE if self._was_up else 0)
        pause = FIRST_PAUSE
        while True:
            self._is_reached = False
            try:
                link = await open_link(self._target, self._failures)
                self._is_reached = True
                if not self._was_up:
                    await self._check(link)
                    self._record_use_at = loop.time() + RECORDED_FOR
                self._links.append(link)
                if self._is_warm:
                    self._warm_up_link(link)
                self._was_up = True
                self._failures = 0
                return link
            except StoreMissing:
                # The server is there, and trying again makes no schema.
                raise
            except (StoreUnavailable, StoreReadOnly) as error:
                if isinstance(error, StoreReadOnly) and not self._was_up:
                    raise
                # It took writes before: a failover is under way.
                self._failures += 1
                left = deadline - loop.time()
                if left <= 0:
                    raise NotConnected(self._target.url, said(error)) from error
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1.0)))  # noqa: S311 - spreads load
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _check(self, link: Link) -> None:
        try:
            await check_schema(link, self._target)
        except BaseException as error:
            link.abort()
            raise_typed(self._target.url, error)
            raise

    async def close(self) -> None:
        await self._opening.close()
        for link in self._links:
            link.abort()
        self._links = []
