"""Commands on the calling thread, which waits for their answers: for code that has no event loop."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Any, Final, cast

import hiredis

from ...errors import NotConnected, StoreUnavailable
from ...store import forks
from ...store.doubt import said
from ...store.tries import PATIENCE, Tries
from . import connection
from .checks import leaves_disk_to_saves, probe, refuse_without_channels, warn_if_nothing_is_saved
from .failures import PASSING, code_of, typed
from .link import NOT_ENOUGH, Argument, pack_command
from .scripts import Script
from .target import Target

KEPT: Final = 64
"""How many connections stay open while nobody uses them: as many as threads that add all the time."""
_BUFFER: Final = 16 * 1024
_SHORTEST: Final = 0.001
"""Seconds: a timeout of 0 would mean that nothing is waited for."""
_OURS: Final = frozenset({__name__, "socket", "ssl"})


class BlockingLink:
    """A connection for one call at a time. After a call that was broken off, answers no longer match: close it."""

    def __init__(self, connected: socket.socket, timeout: float) -> None:
        self._socket = connected
        self._timeout = timeout
        self._reader = hiredis.Reader(notEnoughData=NOT_ENOUGH)
        # Its stubs say that only bytes can be fed.
        self._feed: Callable[[bytearray, int, int], None] = cast(Any, self._reader).feed
        self._buffer = bytearray(_BUFFER)
        connected.settimeout(timeout)
        self.has_something = _watch(connected)
        """While it is idle there is nothing to hear, except that the connection has ended."""

    def ask(self, *command: Argument) -> Any:
        try:
            deadline = time.monotonic() + self._timeout
            self._socket.sendall(pack_command(command))
            self._receive()
            reply = self._reader.gets()
            if reply is NOT_ENOUGH:
                reply = self._hear_the_rest(deadline)
        except hiredis.ProtocolError as error:
            raise ConnectionError(f"not understood: {error}") from error
        except TimeoutError as error:
            if not is_ours(error) or error.errno is not None:
                raise
            raise TimeoutError(f"no answer within {self._timeout:g} s") from error
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def _hear_the_rest(self, deadline: float) -> Any:
        reply: Any = NOT_ENOUGH
        while reply is NOT_ENOUGH:
            self._socket.settimeout(max(_SHORTEST, deadline - time.monotonic()))
            self._receive()
            reply = self._reader.gets()
        self._socket.settimeout(self._timeout)
        return reply

    def _receive(self) -> None:
        size = self._socket.recv_into(self._buffer)
        if not size:
            raise ConnectionResetError("the server closed the connection")
        self._feed(self._buffer, 0, size)

    def close(self) -> None:
        self._socket.close()

    def leave_open(self) -> None:
        """Leaves the socket to the end of the process, without the warning that Python gives for an open one."""
        self._socket.detach()


class BlockingLinks:
    """Connection pool for threads: each call has a connection to itself.

    There are no locks: a signal handler may ask too, while the thread that it interrupts is at any step.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: list[BlockingLink] = []
        self._was_up = False
        self._is_closed = False
        forks.follow(self)

    def reset_after_fork(self) -> object:
        inherited, self._idle = self._idle, []
        for link in inherited:
            link.leave_open()
        return inherited

    def run(self, script: Script, keys: tuple[str, ...], *arguments: Argument) -> Any:
        """Runs a script, which the server may have forgotten."""
        try:
            return self._insist("EVALSHA", script.sha, str(len(keys)), *keys, *arguments)
        except hiredis.ReplyError as error:
            if code_of(error) != "NOSCRIPT":
                raise typed(self._target.url, error) from error
        return self.execute("EVAL", script.text, str(len(keys)), *keys, *arguments)

    def execute(self, *command: Argument) -> Any:
        try:
            return self._insist(*command)
        except hiredis.ReplyError as error:
            raise typed(self._target.url, error) from error

    def _insist(self, *command: Argument) -> Any:
        """Repeats a command that was refused for a moment; a broken connection raises, its effect being unknown."""
        try:
            return self._ask(command)
        except hiredis.ReplyError as error:
            if code_of(error) not in PASSING:
                raise
            refused = error
        for pause in Tries(PATIENCE).pauses():
            time.sleep(pause)
            try:
                return self._ask(command)
            except hiredis.ReplyError as error:
                if code_of(error) not in PASSING:
                    raise
                refused = error
        raise typed(self._target.url, refused) from refused

    def _ask(self, command: tuple[Argument, ...]) -> Any:
        link = self._take() or self._open()
        is_in_step = False
        try:
            answer = link.ask(*command)
            is_in_step = True
            return answer
        except hiredis.ReplyError as error:
            # The primary may be elsewhere now, even at the same address.
            is_in_step = code_of(error) != "READONLY"
            raise
        except OSError as error:
            if not is_ours(error):
                raise
            raise typed(self._target.url, error) from error
        finally:
            if is_in_step:
                self._give_back(link)
            else:
                link.close()

    def _take(self) -> BlockingLink | None:
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:
                # Another thread took the last one.
                break
            if not link.has_something(0):
                return link
            link.close()
        return None

    def _give_back(self, link: BlockingLink) -> None:
        if len(self._idle) < KEPT:
            self._idle.append(link)
        else:
            link.close()
        # In this order, and `close` in the other: one of the two sees what the other did.
        if self._is_closed:
            self._close_idle()

    def _open(self) -> BlockingLink:
        """Connects; a server that worked before is tried for some seconds."""
        tries = Tries(PATIENCE if self._was_up else 0)
        pauses = tries.pauses()
        while True:
            try:
                link = open_blocking_link(self._target, tries.patience())
                if not self._was_up:
                    self._check(link)
                    self._was_up = True
                return link
            except StoreUnavailable as error:
                pause = next(pauses, None)
                if pause is None:
                    # Whoever asks next need not wait as long; and what comes back may be another server.
                    self._was_up = False
                    raise NotConnected(self._target.url, said(error)) from error
            time.sleep(pause)

    def _check(self, link: BlockingLink) -> None:
        try:
            try:
                link.ask(*probe(self._target))
            except hiredis.ReplyError as error:
                refuse_without_channels(self._target, error)
            if leaves_disk_to_saves(self._target, link.ask("INFO")):
                warn_if_nothing_is_saved(self._target, link.ask("CONFIG", "GET", "save"))
        except hiredis.ReplyError:
            # A user without this right.
            return
        except BaseException as error:
            link.close()
            if not is_ours(error):
                raise
            raise connection.unreachable(self._target, error, self._target.timeout) from error

    def close(self) -> None:
        """Closes idle connections at once, and others when their call ends."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                break


def open_blocking_link(target: Target, patience: float) -> BlockingLink:
    """A link that is logged in. Raises what `open_link` would."""
    link = None
    patience = min(patience, target.timeout)
    try:
        link = BlockingLink(_connect(target, patience), target.timeout)
        # Whoever took the connection has as long as for any call.
        patience = target.timeout
        for command in connection.logins(target):
            link.ask(*command)
        return link
    except BaseException as error:
        if link is not None:
            link.close()
        if not is_ours(error):
            raise
        raise connection.unreachable(target, error, patience) from error


def _connect(target: Target, patience: float) -> socket.socket:
    """Tries one address after the other, all of them in `patience` seconds."""
    tls = target.tls()
    deadline = time.monotonic() + patience
    trouble: OSError | None = None
    for family, address in _addresses(target):
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(max(_SHORTEST, deadline - time.monotonic()))
            made.connect(address)
            if family != getattr(socket, "AF_UNIX", None):
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.settimeout(max(_SHORTEST, deadline - time.monotonic()))
            return made if tls is None else tls.wrap_socket(made, server_hostname=target.host)
        except BaseException as error:
            made.close()
            if not isinstance(error, OSError) or not is_ours(error):
                raise
            trouble = error
    raise trouble or ConnectionError("it has no address")


def _addresses(target: Target) -> list[tuple[int, Any]]:
    if target.path is not None:
        return [(socket.AF_UNIX, target.path)]
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


def _watch(connected: socket.socket) -> Callable[[int], object]:
    """Returns a function that waits up to so many milliseconds for input, and is truthy if there is some."""
    if not hasattr(select, "poll"):
        return lambda wait: select.select([connected], [], [], wait / 1000)[0]
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return poll.poll


def is_ours(error: BaseException) -> bool:
    """True if the connection raised it, and not a signal handler, which may raise a TimeoutError as well."""
    if not isinstance(error, OSError | hiredis.HiredisError):
        return False
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") in _OURS
