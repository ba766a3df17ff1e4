"""Commands to one server, over a connection that is made again when it breaks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable
from functools import partial
from typing import Any, Protocol

import hiredis

from ...errors import NotConnected, StoreRefused, StoreUnavailable
from ...store.doubt import said
from ...store.single_flight import SingleFlight
from ...store.tries import CONNECTING, PATIENCE, Tries
from .checks import check
from .failures import PASSING, code_of, typed
from .link import Argument, Hear, Link
from .scripts import Script
from .target import Target


class Opens(Protocol):
    """Opens a link to the server that is in charge now, which has `patience` seconds to accept it."""

    def __call__(self, hear: Hear | None = None, patience: float = CONNECTING) -> Awaitable[Link]: ...


async def open_link(target: Target, hear: Hear | None = None, patience: float = CONNECTING) -> Link:
    """A link that is logged in. Raises what `unreachable` makes of whatever went wrong."""
    loop = asyncio.get_running_loop()
    link = Link(target.timeout)
    patience = min(patience, target.timeout)
    try:
        async with asyncio.timeout(patience):
            if target.path is not None:
                await loop.create_unix_connection(lambda: link, target.path, ssl=target.tls())
            else:
                await loop.create_connection(lambda: link, target.host, target.port, ssl=target.tls())
        # Whoever took the connection has as long as for any call.
        patience = target.timeout
        for command in logins(target):
            await link.ask(*command)
        if hear is not None:
            link.hear(hear)
        return link
    except BaseException as error:
        link.abort()
        raise unreachable(target, error, patience) from error


def unreachable(target: Target, error: BaseException, patience: float) -> BaseException:
    """The error to raise when opening a link failed with `error`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return StoreRefused(target.url, f"{target.address} is not to be trusted: {error.verify_message}")
    if isinstance(error, OSError):
        what = f"no answer within {patience:g} s" if isinstance(error, TimeoutError) else str(error)
        return StoreUnavailable(target.url, f"{target.address} cannot be reached: {what}")
    return typed(target.url, error)


def logins(target: Target) -> list[tuple[Argument, ...]]:
    """The first commands on every connection: AUTH and SELECT."""
    commands: list[tuple[Argument, ...]] = []
    if target.password is not None:
        user = (target.username,) if target.username is not None else ()
        commands.append(("AUTH", *user, target.password))
    if target.database:
        commands.append(("SELECT", str(target.database)))
    return commands


class Commands:
    """Base of connections: sends scripts and commands to the server that holds their key."""

    def __init__(self, target: Target) -> None:
        self.target = target

    async def run(self, script: Script, keys: tuple[str, ...], *arguments: Argument) -> Any:
        """Runs a script, which the server may have forgotten."""
        try:
            return await self.ask(keys[0], "EVALSHA", script.sha, str(len(keys)), *keys, *arguments)
        except hiredis.ReplyError as error:
            if code_of(error) != "NOSCRIPT":
                raise typed(self.target.url, error) from error
        try:
            return await self.ask(keys[0], "EVAL", script.text, str(len(keys)), *keys, *arguments)
        except hiredis.ReplyError as error:
            raise typed(self.target.url, error) from error

    async def execute(self, command: str, key: str, *arguments: Argument) -> Any:
        try:
            return await self.ask(key, command, key, *arguments)
        except hiredis.ReplyError as error:
            raise typed(self.target.url, error) from error

    async def ask(self, key: str, *command: Argument) -> Any:
        """Sends a command to the server of `key`; raises the server's errors as `hiredis.ReplyError`."""
        raise NotImplementedError

    async def open(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class Connection(Commands):
    """One pipelined connection to one server, which all commands of a handle share."""

    def __init__(self, target: Target, opens: Opens | None = None, patience: float | None = None) -> None:
        """`opens` finds the server, if its address can change. `patience` is `PATIENCE` unless it is given."""
        super().__init__(target)
        self._opens: Opens = opens or partial(open_link, target)
        self._patience = PATIENCE if patience is None else patience
        self._link: Link | None = None
        self._opening = SingleFlight(target.url, self._open)
        self._was_up = False

    async def open(self) -> None:
        await self.link()

    async def ask(self, key: str, *command: Argument) -> Any:
        """Repeats a command that was refused for a moment; a broken connection raises, its effect being unknown."""
        link = self._link
        if link is None or not link.is_up:
            link = await self.link()
        try:
            return await link.ask(*command)
        except hiredis.ReplyError as error:
            if code_of(error) not in PASSING:
                raise
            return await self._insist(command, error)
        except OSError as error:
            raise typed(self.target.url, error) from error

    async def _insist(self, command: tuple[Argument, ...], error: hiredis.ReplyError) -> Any:
        for pause in Tries(PATIENCE).pauses():
            await self._look_elsewhere(code_of(error))
            await asyncio.sleep(pause)
            try:
                link = await self.link()
                return await link.ask(*command)
            except hiredis.ReplyError as again:
                if code_of(again) not in PASSING:
                    raise
                error = again
            except OSError as lost:
                raise typed(self.target.url, lost) from lost
        raise typed(self.target.url, error) from error

    async def _look_elsewhere(self, code: str) -> None:
        if code == "READONLY":
            # The primary is another one now: whoever knows it is asked when the next link is made.
            self.drop()

    async def link(self) -> Link:
        """The open link, or a new one; concurrent callers share the opening."""
        if self._link is not None and self._link.is_up:
            return self._link
        return await self._opening.result()

    async def _open(self) -> Link:
        tries = Tries(self._patience if self._was_up else 0)
        waits = tries.pauses()
        while True:
            try:
                link = await self._opens(patience=tries.patience())
                if not self._was_up:
                    await self._check(link)
                self._link, self._was_up = link, True
                return link
            except StoreUnavailable as error:
                pause = next(waits, None)
                if pause is None:
                    raise NotConnected(self.target.url, said(error)) from error
            await asyncio.sleep(pause)

    async def _check(self, link: Link) -> None:
        try:
            await check(link, self.target)
        except BaseException as error:
            link.abort()
            await link.closed.wait()
            raise unreachable(self.target, error, self.target.timeout) from error

    def drop(self) -> None:
        if self._link is not None:
            self._link.abort()

    async def close(self) -> None:
        await self._opening.close()
        if self._link is not None:
            self._link.abort()
            await self._link.closed.wait()
            self._link = None
