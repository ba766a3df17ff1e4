"""Calls to the server, over links that are made anew when they break."""

from __future__ import annotations

import asyncio
import math
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
from psycopg import AsyncConnection, Error, OperationalError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ...errors import NotConnected, StoreMissing, StoreReadOnly, StoreUnavailable
from ...store.doubt import said
from ...store.single_flight import SingleFlight
from .checks import check_server
from .failures import FORGOTTEN, NO_FUNCTION, READ_ONLY, UNDONE, code_of, tell, typed
from .link import Link, NotSent, Row, Statement
from .parameters import Parameter
from .schema import NOTED_FOR, check_schema, note_use
from .statements import in_schema
from .target import Target

MOST_LINKS: Final = 2
"""A worker has two trips under way at a time."""
MOST_TRIES: Final = 10
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
PATIENCE: Final = 3.0
"""Seconds in which a server that worked before may come back before anybody hears of it."""
CONNECTING: Final = 2
"""Seconds in which a server that is there takes a connection, unless the network is slow."""
LATEST: Final = 4.7
"""Seconds after which a call that waits for a connection hears of it: a producer's that was cut off, within 5."""
_USUAL: Final[dict[str, str | int]] = {
    "application_name": "ropeway",
    "client_encoding": "utf8",
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def conninfo_of(target: Target, failures: int = 0) -> str:
    """Who failed some times in a row gets more time: the network may be a slow one."""
    given = {name for name, value in conninfo_to_dict(target.conninfo).items() if value is not None}
    ours = {
        **_USUAL,
        "connect_timeout": max(CONNECTING, min(2 ** min(failures, 8), math.ceil(target.timeout))),
        # Whom nothing reaches any more is gone, also while one of the caller's own statements is under way.
        "tcp_user_timeout": math.ceil(target.timeout * 1000),
    }
    return make_conninfo(target.conninfo, **{name: value for name, value in ours.items() if name not in given})


async def open_link(target: Target, failures: int = 0) -> Link:
    """A link to a server that was looked at. Raises what `failures.typed` makes of whatever went wrong."""
    link: Link | None = None
    try:
        async with asyncio.timeout(target.timeout):
            connection = await AsyncConnection.connect(conninfo_of(target, failures), autocommit=True)
        # Whoever took the connection has as long as for any call.
        link = Link(connection, target.timeout)
        await check_server(link, target)
        return link
    except BaseException as error:
        if link is not None:
            link.abort()
        tell_unreachable(target, error)
        tell(target.url, error)
        raise


def tell_unreachable(target: Target, error: BaseException) -> None:
    """Raises `NotConnected` for an error of connecting, unless the server itself refused us."""
    if isinstance(error, TimeoutError) or (isinstance(error, OperationalError) and code_of(error) is None):
        what = f"no answer within {target.timeout:g} s" if isinstance(error, TimeoutError) else _said(error)
        raise NotConnected(target.url, f"it cannot be reached: {what}") from error


def _said(error: OperationalError) -> str:
    """What went wrong. Of a shortage of files libpq says nothing, but it can be tried."""
    what = " ".join(str(error).split())
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as shortage:
        return f"{what} ({shortage.strerror}; close some, or raise the limit: ulimit -n)"
    return what


async def migrate(target: Target) -> None:
    """Brings the schema to this version, whatever the URL says about it."""
    link = await open_link(target)
    try:
        await check_schema(link, msgspec.structs.replace(target, migrates=True, creates=True))
    except Error as error:
        raise typed(target.url, error) from error
    finally:
        link.abort()


class Lanes:
    """The links of one handle on one loop: one, and a second as soon as two calls are under way."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._links: list[Link] = []
        self._opening = SingleFlight(target.url, self._open)
        self._was_up = False
        self._is_reached = False
        """Whether the server has answered: what is left to do may take long, as to make the schema."""
        self._failures = 0
        self._rehearse = Statement(in_schema("SELECT ropeway.rehearse()", target.schema))
        self._rehearses = False
        self._note_at = math.inf
        """When to note again that this release's functions are used."""

    async def open(self) -> None:
        await self._link()

    async def make_ready(self) -> None:
        """Opens all links, and lets each rehearse: the first jobs of a worker then take no longer than others."""
        if not self._rehearses:
            self._rehearses = True
            for link in self._links:
                self._let_rehearse(link)
            while len(self._links) < MOST_LINKS:
                await self._opening.result()

    def _let_rehearse(self, link: Link) -> None:
        # Behind a pooler the next statement may meet another session.
        if link.is_up and link.prepares:
            rehearsed = link.ask(self._rehearse)
            rehearsed.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def call(
        self, statement: Statement, parameters: Sequence[Parameter] = (), *, is_repeat: bool = False
    ) -> list[Row]:
        """Waits out what passes soon; a connection that breaks under way raises, because nobody knows what it did.

        A repeat comes behind what was abandoned, and finds what that did.
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
                    self._give_up_unheard(began)
                if code in FORGOTTEN and tries < MOST_TRIES:
                    link.forget_prepared()
                    continue
                if code == NO_FUNCTION and not was_installed:
                    was_installed = True
                    await self._install()
                    continue
                if code == READ_ONLY:
                    # The primary is another one now, which is looked for when the next link is made.
                    link.abort()
                now = asyncio.get_running_loop().time()
                deadline = now + PATIENCE if deadline is None else deadline
                passes = code == READ_ONLY or code in UNDONE
                if not passes or tries >= MOST_TRIES or now + pause > deadline:
                    raise typed(self._target.url, error) from error
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            pause = min(pause * 2, LONGEST_PAUSE)

    async def keep_functions(self) -> None:
        """Notes once a day that this release's functions are used, so that nobody drops them."""
        now = asyncio.get_running_loop().time()
        if now < self._note_at:
            return
        self._note_at = now + NOTED_FOR
        with suppress(Error):
            if not await note_use(await self._link(), self._target):
                await self._install()

    async def _install(self) -> None:
        """Installs functions that were dropped meanwhile, on a link that no other call shares its transaction with."""
        link = await open_link(self._target)
        try:
            await check_schema(link, self._target)
        except Error as error:
            raise typed(self._target.url, error) from error
        finally:
            link.abort()

    def _give_up_unheard(self, since: float) -> None:
        """What ended one link may have ended those that rest, too: nobody shall wait for an answer to see it."""
        for link in self._links:
            if link.is_free and link.heard_at <= since:
                link.abort()

    async def _link(self) -> Link:
        """One that is free, or else the one that will be soonest; callers at the same time share the making of one."""
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
        """Waits for one, for a limited time: a slow network may bring it later, for whoever asks then."""
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
                    self._note_at = loop.time() + NOTED_FOR
                self._links.append(link)
                if self._rehearses:
                    self._let_rehearse(link)
                self._was_up = True
                self._failures = 0
                return link
            except StoreMissing:
                # The server is there, and trying again makes no schema.
                raise
            except (StoreUnavailable, StoreReadOnly) as error:
                if isinstance(error, StoreReadOnly) and not self._was_up:
                    raise
                # One that took writes before will do it again, or another will: a failover is under way.
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
            tell(self._target.url, error)
            raise

    async def close(self) -> None:
        await self._opening.close()
        for link in self._links:
            link.abort()
        self._links = []
