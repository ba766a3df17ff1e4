"""The process pool for handlers that may crash, hang or compute: a process can be killed without harming the worker."""

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

import msgspec
from msgspec.structs import replace

from ..client.tasks import AnyTask
from ..errors import InvalidOption, InvalidTask, Postponed, RopewayError, SignalTimeout, WorkerCrashed
from ..job.codec import Json, decode
from ..job.instants import moment_of
from ..showing import shown
from .described_flows import rebuild
from .failures import HandlerFailed, HandlerFailedForGood, PayloadRefused, SignalTimeoutInProcess
from .job import Job
from .phase_context import PhaseContext
from .process_protocol import (
    LINE_LIMIT,
    AddChildren,
    Ended,
    Gather,
    MayTryAgain,
    PhaseProgress,
    ReadFamily,
    Refusal,
    Reply,
    Request,
    Sleep,
    Start,
    Update,
    Waited,
    WaitFor,
    encode_line,
    read_report,
)
from .shortage import Shortage

LINGER: Final = 1.0
"""Seconds for which messages of a dead process are still read."""
_encode = msgspec.json.Encoder().encode
SHORTAGES: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Source(NamedTuple):
    """Where a process imports a handler from. It comes from the worker's code, never from a job."""

    module: str
    path: str
    """The script to run instead, if the function is defined in the main program; else empty."""
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
    """As `source_of`. The process imports the task, not the function: the module must hold it under its name."""
    source = source_of(task.function)
    found: Any = sys.modules[task.function.__module__]
    for name in source.qualname.split("."):
        found = getattr(found, name, None)
    if found is not task:
        where = f"{task.function.__module__}.{source.qualname}"
        raise InvalidTask(task.name, f'run_in="process" looks for it as {where}: use @queue.task there')
    return source


class _Life(asyncio.SubprocessProtocol):
    """asyncio's protocol object for one process: its exit, and how to kill it."""

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
            # It was started, but asyncio could not watch it: nothing else would kill it or wait for it.
            self.kill()
            self._transport.close()
            transport.get_extra_info("subprocess").wait()

    def process_exited(self) -> None:
        self._transport.close()
        self._over.set()

    def kill(self) -> None:
        """Kills its whole process group."""
        # A process of another user in the group cannot be killed.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        await self._over.wait()
        return self.returncode or 0


class HandlerProcess:
    """One process that runs the jobs of one handler, one after another."""

    def __init__(self, process: _Life) -> None:
        self._process = process
        self.jobs = 0
        """Number of jobs that it has run."""
        self.memory = 0
        """Most bytes that it has used, as of its last job."""

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
                    # Ctrl-C in a terminal must reach only the worker, which then stops its handlers.
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        except BaseException as error:
            process.is_unwanted = True
            ours.close()
            if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
                # Some asyncio versions watch each process by a thread: treated as a shortage of processes.
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

    async def run(self, job: Job, context: PhaseContext | None = None) -> Any:
        try:
            return await self._run(job, context)
        except ConnectionError as broken:
            raise WorkerCrashed(f"the handler's process ended: {await self._cause()}") from broken

    async def _run(self, job: Job, context: PhaseContext | None) -> Any:
        start = Start(job.record, job.queue.size_limit)
        if context is not None:
            # With the marks that the attempt has written since it was claimed.
            record = replace(job.record, marks=job.run.marks.marks)
            start = replace(start, record=record, phase=context.description)
        self._writer.write(encode_line(start))
        while True:
            said = await self._reader.readline()
            if not said.endswith(b"\n"):
                raise WorkerCrashed(f"the handler's process ended: {await self._cause()}")
            match read_report(said):
                case Ended() as ended:
                    if ended.token == job.token:
                        self.jobs, self.memory = self.jobs + 1, ended.memory
                        return _result(ended, job)
                case request:
                    self._writer.write(encode_line(await _reply(job, request, context)))

    async def end(self) -> None:
        """Kills it and the processes it started; returns when none is left."""
        if self.is_alive:
            # The pid of a process that has ended may belong to another by now.
            self._process.kill()
        await self._process.wait()
        # Not `await`: other code may have cancelled it, with all tasks of the loop.
        await asyncio.wait([self._watching])
        self._writer.close()

    async def _watch(self) -> None:
        """Closes the connection of a process that died: a process forked by its handler would keep it open."""
        await self._process.wait()
        # The group id is valid while the group has members. If it is empty, the number could be reused, but only after
        # all other numbers, which takes far longer than reaching this line.
        self._process.kill()
        if not self._reader.at_eof():
            # For a process that left the group. By then all messages sent before have been read.
            asyncio.get_running_loop().call_later(LINGER, self._writer.transport.abort)

    async def _cause(self) -> str:
        code = await self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Processes:
    """A pool that grows to as many processes as handlers run at once; idle ones are reused.

    A process is replaced after `max_jobs`, or when it has used more than `max_memory` bytes.
    """

    def __init__(self, max_jobs: int | None = None, max_memory: int | None = None) -> None:
        self._max_jobs = max_jobs or sys.maxsize
        self._max_memory = max_memory or sys.maxsize
        self._idle: dict[Source, list[HandlerProcess]] = {}
        self._shortage = Shortage()

    async def run(self, source: Source, job: Job, context: PhaseContext | None = None) -> Any:
        process = await self._engage(source)
        reusable = False
        try:
            result = await process.run(job, context)
            reusable = True
            return result
        except (HandlerFailed, Postponed):
            reusable = True
            raise
        finally:
            if reusable and process.jobs < self._max_jobs and process.memory <= self._max_memory:
                self._idle.setdefault(source, []).append(process)
            else:
                # Used up; or cancelled, timed out or dead: its state is unknown, so no other job may use it.
                await asyncio.shield(process.end())
            self._shortage.came_free()

    async def _engage(self, source: Source) -> HandlerProcess:
        """An idle or new process. If the system starts no more, it ends an idle one of another handler, or waits."""
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


async def _reply(job: Job, request: Request, context: PhaseContext | None) -> Reply:
    if request.token != job.token:
        return Reply(Refusal("RopewayError", "the job has ended, and is no longer held by this process"))
    answer: Any
    try:
        match request:
            case Update():
                await _update(job, request)
                return Reply()
            case PhaseProgress(percent=percent):
                assert context is not None, "only phases report it"
                await context.progress(percent)
                return Reply()
            case MayTryAgain(what=what, failure=failure, pause=pause):
                answer = await job.run.try_again(what, HandlerFailed(failure), pause)
            case Sleep() | WaitFor() | Gather():
                answer = await _durable(job, request)
            case ReadFamily():
                answer = await _family(job, request)
            case AddChildren():
                flows = rebuild(request.flows, job.queue)
                answer = [
                    child.id for child in await job.add_children(flows, on_child_failure=request.on_child_failure)
                ]
    except RopewayError as error:
        return Reply(Refusal.of(error))
    return Reply(answer=_encode(answer).decode())


async def _update(job: Job, update: Update) -> None:
    if update.progress is not None:
        await job.progress(decode(update.progress))
    if update.log is not None:
        await job.log(update.log)
    if update.data is not None:
        await job.update_data(decode(update.data))
    if update.marks:
        await job.run.write_marks(*update.marks)


async def _durable(job: Job, request: Sleep | WaitFor | Gather) -> Any:
    """A call of `Durable`, for the process: it leaves its handler by itself if the job is postponed."""
    try:
        match request:
            case Sleep(duration=duration, name=name, due_at=due_at):
                await job.sleep(duration / 1000 if due_at is None else moment_of(due_at), name=name)
                return None
            case WaitFor(name=name, timeout=timeout):
                waited = await job.wait_for(name, timeout=None if timeout is None else timeout / 1000)
                return msgspec.to_builtins(Waited(waited))
            case Gather(flows=flows):
                return await job.gather(*rebuild(flows, job.queue))
    except SignalTimeout as late:
        return msgspec.to_builtins(Waited(is_late=True, others=late.others))
    except Postponed as postponed:
        if isinstance(request, WaitFor):
            return msgspec.to_builtins(Waited(postponed=postponed.delay, awaits=postponed.awaits))
        return postponed.delay if isinstance(request, Sleep) else None


async def _family(job: Job, request: ReadFamily) -> Json:
    match request.about:
        case "results":
            return await job.children_results()
        case "failures":
            return dict(await job.children_failures())
        case "counts":
            return dict(await job.children_counts())
        case "awaited":
            return (await job.run.read("children", lambda: job.queue.children(job.id, limit=1))).awaited


def _result(ended: Ended, job: Job) -> Any:
    if ended.postponed is not None:
        raise Postponed(ended.postponed, awaits_children=ended.awaits_children, awaits=ended.awaits)
    if ended.failure is not None:
        if ended.is_signal_timeout:
            raise SignalTimeoutInProcess(ended.failure, ended.late_signals, job.queue.name, job.id)
        kind = PayloadRefused if ended.refused else HandlerFailedForGood if ended.fatal else HandlerFailed
        raise kind(ended.failure, ended.late_signals, ended.failed_steps)
    return None if ended.result is None else decode(ended.result)
