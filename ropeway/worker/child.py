"""The program of a handler process. Its arguments are a socket's file descriptor and the handler's source."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import resource
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import reduce
from queue import SimpleQueue
from typing import Any, ClassVar, NoReturn, TypeVar, overload

import msgspec
from msgspec.structs import replace

from ..client.flows import FlowRequest
from ..client.loading import LOADED_AS
from ..client.new_jobs import Call
from ..client.running import RunIn, RunningJob
from ..client.tasks import TaskFunction
from ..errors import JobFinished, Postponed, RopewayError, SignalTimeout
from ..job.codec import Json, decode, encode
from ..job.durations import Duration, milliseconds, milliseconds_left
from ..job.failure import failure_of
from ..job.flows import ChildState, Policy, policy_or_none
from ..job.instants import due_instant_of
from ..job.marks import Mark
from ..job.outcomes import may_retry
from ..job.phases import overall, result_of_phase, results_of_phases
from ..job.record import JobRecord
from .attempt_marks import AttemptMarks
from .blocking_steps import StepsInPlace
from .described_flows import describe
from .failures import PayloadRefused
from .gathered import checked_calls
from .handler_calls import HandlerCalls
from .process_protocol import (
    AddChildren,
    Ended,
    FromProcess,
    Gather,
    MayTryAgain,
    PhaseProgress,
    PhaseStart,
    ReadFamily,
    Reply,
    Request,
    Sleep,
    Start,
    Update,
    Waited,
    WaitFor,
    encode_line,
    read_order,
)
from .raised import failed_steps, late_signals, meaning_of
from .step_results import read_results
from .trying import NOT_TRIED_AGAIN
from .typed import call_task, dump_result

T = TypeVar("T")


class Link:
    """The connection to the worker. If it closes, the worker is gone, and this process kills itself."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._pid = os.getpid()
        self._asking = threading.Lock()
        self._saying = threading.Lock()
        self.starts: SimpleQueue[Start] = SimpleQueue()
        self.answers: SimpleQueue[Reply] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_copy(self) -> bool:
        """True in a process that a handler forked: it has no thread that reads replies, and the worker ignores it."""
        return os.getpid() != self._pid

    def say(self, message: FromProcess) -> None:
        # A thread started by the handler may still be sending when the handler has ended.
        with self._saying:
            self._socket.sendall(encode_line(message))

    def ask(self, request: Request) -> Json:
        if self.is_copy:
            raise RopewayError("a process that a handler forked cannot use its job")
        # One at a time: a reply does not name its request.
        with self._asking:
            self.say(request)
            reply = self.answers.get()
        if reply.error is not None:
            raise reply.error.error()
        return None if reply.answer is None else decode(reply.answer)

    def _listen(self) -> None:
        # A worker that was killed before it had read a request leaves a reset instead of an end.
        with suppress(OSError), self._socket.makefile("rb") as orders:
            for order in orders:
                message = read_order(order)
                if isinstance(message, Start):
                    self.starts.put(message)
                else:
                    self.answers.put(message)
        # Including processes that the handler started, which are in this process's group.
        os.killpg(0, signal.SIGKILL)


class ProcessJob(StepsInPlace, RunningJob):
    """The job as a handler in a process receives it; its calls block until they are answered.

    It has no `cancelled`: a process that must stop is killed.
    """

    run_in: ClassVar[RunIn] = "process"

    def __init__(self, start: Start, link: Link) -> None:
        self._link = link
        self._size_limit = start.size_limit
        self.record = start.record
        self.id = start.record.id
        self.name = start.record.name
        self.token = start.record.token or ""
        self.ended = False
        self.attempt = start.record.attempts_made + 1
        self.data: Json = start.record.read_data()
        self._calls = HandlerCalls()
        self._marks = AttemptMarks(start.record)
        if start.phase is not None:
            self._marks.begin_phase(start.phase.name)

    @property
    def _steps(self) -> AttemptMarks:
        return self._marks

    def _refuse_after_giving_back(self) -> None:
        self._calls.refuse_after_giving_back()

    @property
    def _result_limit(self) -> int:
        return self._size_limit

    def _write_step(self, mark: Mark) -> None:
        # The worker checks their bounds: it knows the marks of sleeps and waits too.
        self._ask(Update(self.token, marks=(mark,)))
        self._marks.values[mark.name] = mark.value

    def _try_again(self, what: str, error: Exception, pause: float | None) -> bool:
        if pause is None or isinstance(error, NOT_TRIED_AGAIN) or not may_retry(error, self):
            return False
        return bool(self._ask(MayTryAgain(self.token, what, failure_of(error), pause)))

    def sleep(self, delay: Duration | datetime, *, name: str | None = None) -> None:
        """Gives the slot back for a time, or until an instant; the handler begins again afterwards."""
        self._refuse_after_giving_back()
        if isinstance(delay, datetime):
            request = Sleep(self.token, 0, name, due_instant_of(delay, "delay"))
        else:
            request = Sleep(self.token, milliseconds_left(delay, "delay"), name)
        postponed = self._ask(request)
        if postponed is not None:
            self._give_back(Postponed(postponed))

    def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, and answers its data; gives the slot back meanwhile."""
        self._refuse_after_giving_back()
        limit = None if timeout is None else milliseconds_left(timeout, "timeout")
        waited = msgspec.convert(self._ask(WaitFor(self.token, name, limit)), Waited)
        if waited.is_late:
            raise SignalTimeout(self.record.queue, self.id, name, waited.others)
        if waited.postponed is not None:
            self._give_back(Postponed(waited.postponed, awaits=waited.awaits))
        return waited.data

    @overload
    def gather(self, *calls: Call[T]) -> list[T]: ...
    @overload
    def gather(self, *calls: FlowRequest) -> list[Any]: ...
    def gather(self, *calls: Any) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order."""
        self._refuse_after_giving_back()
        results = self._ask(Gather(self.token, describe(checked_calls(calls), self._size_limit)))
        if results is None:
            self._give_back(Postponed(0, awaits_children=True))
        return read_results(calls, results)

    def report_phase(self, percent: float) -> None:
        """`ctx.progress` of a phase in this process."""
        self._ask(PhaseProgress(self.token, percent))

    def progress(self, value: Json) -> None:
        self._ask(Update(self.token, progress=encode(value, "progress", self._size_limit)))

    def log(self, text: object) -> None:
        self._ask(Update(self.token, log=str(text)))

    def update_data(self, data: Json) -> None:
        self._ask(Update(self.token, data=encode(data, "data", self._size_limit)))
        self.data = data

    def children_results(self) -> dict[str, Json]:
        """The results of its completed children, by their ids."""
        results: dict[str, Json] = self._ask(ReadFamily(self.token, "results"))
        return results

    def children_failures(self) -> dict[str, str]:
        """The reasons of its failed and cancelled children, by their ids."""
        failures: dict[str, str] = self._ask(ReadFamily(self.token, "failures"))
        return failures

    def children_counts(self) -> dict[ChildState, int]:
        """How many of its children are pending, completed, failed and cancelled."""
        counts: dict[ChildState, int] = self._ask(ReadFamily(self.token, "counts"))
        return counts

    def add_children(self, flows: Iterable[FlowRequest], *, on_child_failure: Policy | None = None) -> list[str]:
        """Adds jobs that this one can wait for: all of them, or none if one of their ids exists. Returns their ids."""
        policy = policy_or_none("on_child_failure", on_child_failure)
        ids: list[str] = self._ask(AddChildren(self.token, describe(flows, self._size_limit), policy))
        return ids

    def wait_for_children(self) -> None:
        """Returns if all children have ended; otherwise leaves the handler, which begins again then."""
        self._refuse_after_giving_back()
        if self._ask(ReadFamily(self.token, "awaited")):
            self._give_back(Postponed(0, awaits_children=True))

    def postpone(self, delay: Duration = 0) -> NoReturn:
        raise Postponed(milliseconds(delay, "delay"))

    def _give_back(self, postponed: Postponed) -> NoReturn:
        self._calls.give_back(postponed)

    def _ask(self, request: Request) -> Any:
        if self.ended:
            raise JobFinished(self.record.queue, self.id)
        return self._link.ask(request)


class ProcessPhaseContext:
    """The context of a phase in a process: `progress` blocks until it is stored."""

    def __init__(self, job: ProcessJob, phase: PhaseStart) -> None:
        self._job = job
        self._phase = phase
        self.last_progress = phase.last_progress
        self.overall = overall(phase.number, 0, phase.total)

    @property
    def name(self) -> str:
        return self._phase.name

    def progress(self, percent: float) -> None:
        self._job.report_phase(percent)
        self.last_progress = percent
        self.overall = overall(self._phase.number, percent, self._phase.total)

    def phase_result(self, name: str) -> Json:
        return result_of_phase(self._phase.results, name, self.name)

    def phase_results(self) -> dict[str, Json]:
        return results_of_phases(self._phase.results)


def attempt(handler: Callable[..., Any], start: Start, link: Link) -> Ended:
    token = start.record.token or ""
    job: ProcessJob | None = None
    try:
        job = ProcessJob(start, link)
        result = handler(job) if start.phase is None else handler(job, ProcessPhaseContext(job, start.phase))
        job._calls.refuse_end()  # noqa: SLF001 - a part of this module
        return Ended(token, None if result is None else encode(result, "result", start.size_limit))
    except BaseException as error:  # noqa: BLE001 - SystemExit too fails the job, not the process
        return _ended_by(meaning_of(error), start.record)
    finally:
        if job is not None:
            job.ended = True


def _ended_by(error: BaseException, record: JobRecord) -> Ended:
    token = record.token or ""
    if isinstance(error, Postponed):
        return Ended(token, postponed=error.delay, awaits_children=error.awaits_children, awaits=error.awaits)
    late = late_signals(error, record.id)
    return Ended(
        token,
        failure=failure_of(error),
        fatal=not may_retry(error, None),
        refused=isinstance(error, PayloadRefused),
        late_signals=late,
        failed_steps=failed_steps(error, record.id),
        is_signal_timeout=isinstance(error, SignalTimeout) and error.name in late,
    )


def peak_memory() -> int:
    """Most bytes that this process has used so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def load(module: str, path: str, qualname: str) -> Callable[[ProcessJob], Any]:
    """Imports the handler, and wraps it so that its results are JSON."""
    function: Any
    if path:
        # Under another name, so that code under `if __name__ == "__main__"` is not run again.
        names = runpy.run_path(path, run_name=LOADED_AS)
        first, *rest = qualname.split(".")
        function = reduce(getattr, rest, names[first])
    else:
        function = reduce(getattr, qualname.split("."), importlib.import_module(module))
    if isinstance(function, TaskFunction):
        return _awaited(call_task(function.signature), dump_result(function.signature.result))
    return _awaited(getattr(function, "function", function), None)


def _awaited(function: Callable[[ProcessJob], Any], dump: Callable[[Any], Json] | None) -> Callable[[ProcessJob], Any]:
    def handler(*args: Any) -> Any:
        result = function(*args)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return result if dump is None else dump(result)

    return handler


def main() -> None:
    fd, *source = sys.argv[1:]
    # Before the handler's module is imported: if the worker is gone by then, this process must end.
    link = Link(int(fd))
    handler: Callable[[ProcessJob], Any] | None = None
    while True:
        start = link.starts.get()
        try:
            handler = handler or load(*source)
        except BaseException as error:  # noqa: BLE001 - whatever a module raises, the job fails with it
            ended = Ended(start.record.token or "", failure=failure_of(error))
        else:
            ended = attempt(handler, start, link)
        if link.is_copy:
            os._exit(0)
        link.say(replace(ended, memory=peak_memory()))
