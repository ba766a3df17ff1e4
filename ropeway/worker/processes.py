"""Processes for handlers that crash, hang or compute: each can be killed without hurting the worker."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

from ..client.tasks import AnyTask
from ..errors import InvalidOption, InvalidTask, Postponed, RopewayError, WorkerCrashed
from ..job.codec import decode
from ..showing import shown
from .failures import HandlerFailed, HandlerFailedForGood, PayloadRefused
from .job import Job
from .shortage import Shortage
from .wire import LINE_LIMIT, Ended, Start, Told, Update, line, read_report

LINGER: Final = 1.0
"""Seconds for which a dead process is still listened to."""
SHORTAGES: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Source(NamedTuple):
    """Where a process finds a handler. It comes from the worker's code, never from a job."""

    module: str
    path: str
    """The script to run instead, when the module is the program itself; else empty."""
    qualname: str


def source_of(function: Callable[..., Any]) -> Source:
    qualname = getattr(function, "__qualname__", "<")
    if "<" in qualname:
        raise InvalidOption("run_in", f'"process" needs a function at the top of a module, not {shown(function)}')
    if function.__module__ != "__main__":
        return Source(function.__module__, "", qualname)
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return Source(main.__spec__.name, "", qualname)
    path = getattr(main, "__file__", None)
    if path is None:
        raise InvalidOption("run_in", f'"process" needs {qualname!r} in a file, not in an interactive session')
    return Source("", os.path.abspath(path), qualname)  # noqa: PTH100 - plain text for a command line


def source_of_task(task: AnyTask) -> Source:
    """A process finds the task, not the function: it must stand where the function was written, under its name."""
    source = source_of(task.function)
    found: Any = sys.modules[task.function.__module__]
    for name in source.qualname.split("."):
        found = getattr(found, name, None)
    if found is not task:
        where = f"{task.function.__module__}.{source.qualname}"
        raise InvalidTask(task.name, f'run_in="process" looks for it as {where}: use @queue.task there')
    return source


class _Life(asyncio.SubprocessProtocol):
    """A process from its start to its end."""

    def __init__(self) -> None:
        self.is_unwanted = False
        self._over = asyncio.Event()

    _transport: asyncio.SubprocessTransport

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if self.is_unwanted:
            # It was started, but asyncio had no means to watch it: nobody else would kill it, or wait for it.
            self.kill()
            self._transport.close()
            transport.get_extra_info("subprocess").wait()

    def process_exited(self) -> None:
        self._transport.close()
        self._over.set()

    def kill(self) -> None:
        """Its whole group: it leads one of its own."""
        # Of another user's process that is left in the group nothing more can be asked.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        await self._over.wait()
        return self.returncode or 0


class HandlerProcess:
    """One process that runs one job after the other, all of one handler."""

    def __init__(self, process: _Life) -> None:
        self._process = process

    @classmethod
    async def start(cls, source: Source) -> HandlerProcess:
        ours, theirs = socket.socketpair()
        process = _Life()
        try:
            with theirs:
                await asyncio.get_running_loop().subprocess_exec(
                    lambda: process,
                    sys.executable,
                    "-c",
                    "from ropeway.worker.child import main; main()",
                    str(theirs.fileno()),
                    *source,
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=None,
                    stderr=None,
                    # Ctrl-C in a terminal is for the worker, which then decides about its handlers.
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        except BaseException as error:
            process.is_unwanted = True
            ours.close()
            if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
                # Where asyncio watches each process by a thread. What is short is the same.
                raise OSError(errno.EAGAIN, str(error)) from error
            raise
        handler = cls(process)
        handler._reader, handler._writer = await asyncio.open_connection(sock=ours, limit=LINE_LIMIT)
        handler._watching = asyncio.create_task(handler._watch())
        return handler

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _watching: asyncio.Task[None]

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def run(self, job: Job) -> Any:
        try:
            return await self._run(job)
        except ConnectionError as broken:
            raise WorkerCrashed(f"the handler's process ended: {await self._cause()}") from broken

    async def _run(self, job: Job) -> Any:
        self._writer.write(line(Start(job.record, job.queue.size_limit)))
        while True:
            said = await self._reader.readline()
            if not said.endswith(b"\n"):
                raise WorkerCrashed(f"the handler's process ended: {await self._cause()}")
            match read_report(said):
                case Update() as update:
                    self._writer.write(line(await _update(job, update)))
                case Ended() as ended if ended.token == job.token:
                    return _result(ended)

    async def end(self) -> None:
        """Kills it, whatever it does, and what it has started; nothing of it is left when this returns."""
        if self.is_alive:
            # Of one that ended before, the number may be another's by now.
            self._process.kill()
        await self._process.wait()
        # Not awaited itself: somebody may have cancelled it, with all tasks of the loop.
        await asyncio.wait([self._watching])
        self._writer.close()

    async def _watch(self) -> None:
        """The line to a process that died stays open as long as a process lives that its handler forked."""
        await self._process.wait()
        # The number is the group's while it has members. That of an empty group may be another's, but is given anew
        # only after all other numbers: that takes far longer than to get here.
        self._process.kill()
        if not self._reader.at_eof():
            # For one that left the group. By then all that was said before has been read.
            asyncio.get_running_loop().call_later(LINGER, self._writer.transport.abort)

    async def _cause(self) -> str:
        code = await self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Processes:
    """As many processes as handlers run at once; an idle one is used again."""

    def __init__(self) -> None:
        self._idle: dict[Source, list[HandlerProcess]] = {}
        self._shortage = Shortage()

    async def run(self, source: Source, job: Job) -> Any:
        process = await self._engage(source)
        reusable = False
        try:
            result = await process.run(job)
            reusable = True
            return result
        except (HandlerFailed, Postponed):
            reusable = True
            raise
        finally:
            if reusable:
                self._idle.setdefault(source, []).append(process)
            else:
                # Cancelled, timed out or dead: whatever state it is in, no other job shall see it.
                await asyncio.shield(process.end())
            self._shortage.came_free()

    async def _engage(self, source: Source) -> HandlerProcess:
        """An idle one, or a new one; where the system starts no more of them, the first that comes free.

        An idle one of another handler makes room.
        """
        while True:
            while idle := self._idle.get(source):
                process = idle.pop()
                if process.is_alive:
                    return process
                await asyncio.shield(process.end())
            try:
                process = await HandlerProcess.start(source)
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                if self._idle.get(source):
                    continue
                if others := next(filter(None, self._idle.values()), None):
                    await asyncio.shield(others.pop().end())
                else:
                    await self._shortage.wait(error, "a process")
            else:
                self._shortage.is_over()
                return process

    async def close(self) -> None:
        ending = [asyncio.create_task(process.end()) for idle in self._idle.values() for process in idle]
        self._idle.clear()
        if ending:
            await asyncio.wait(ending)


async def _update(job: Job, update: Update) -> Told:
    if update.token != job.token:
        return Told("the job has ended here, and is held no longer")
    try:
        if update.progress is not None:
            await job.progress(decode(update.progress))
        if update.log is not None:
            await job.log(update.log)
        if update.data is not None:
            await job.update_data(decode(update.data))
    except RopewayError as error:
        return Told(str(error))
    return Told()


def _result(ended: Ended) -> Any:
    if ended.postponed is not None:
        raise Postponed(ended.postponed)
    if ended.failure is not None:
        kind = PayloadRefused if ended.refused else HandlerFailedForGood if ended.fatal else HandlerFailed
        raise kind(ended.failure)
    return None if ended.result is None else decode(ended.result)
