"""What a system written in Python shares with the others: answering the runner, clocks, percentiles.

Imported inside the virtual environments of the rivals, so it needs nothing but the standard library.
"""

import asyncio
import inspect
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

PAYLOAD = {"n": 1, "to": "user@example.com"}
BULK = 1_000
"""Jobs in one bulk call."""

POLL = 0.01
"""Seconds between two looks of a system that cannot be woken; its idle cost is measured with the same."""

FEWEST_SAMPLES = 5
PACE = 200
"""Jobs a second, where latency is measured under a load."""

Answer = dict[str, float]


def answer(functions: Mapping[str, Any]) -> None:
    """Runs the function that the command line names, and prints its answer; `null` if there is none."""
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    function = functions.get(name)
    result = function(**arguments) if function else None
    if inspect.iscoroutine(result):
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            result = runner.run(result)
    print(json.dumps(result), flush=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop for systems that have it installed: ours, and all others that run on asyncio."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def repeat(seconds: float, step: Callable[[], object], each: int = 1) -> Answer:
    """Calls `step`, which adds `each` jobs, until the time is over; its first call is not counted."""
    step()
    watch = Stopwatch(seconds)
    while not watch.over:
        step()
        watch.count += each
    return watch.rate()


async def repeat_async(seconds: float, step: Callable[[], Awaitable[object]], each: int = 1) -> Answer:
    await step()
    watch = Stopwatch(seconds)
    while not watch.over:
        await step()
        watch.count += each
    return watch.rate()


async def repeat_at_once(seconds: float, step: Callable[[], Awaitable[object]], tasks: int = 100) -> Answer:
    """Calls `step` from many tasks at once, each awaiting its own."""
    await step()
    watch = Stopwatch(seconds)

    async def one_task() -> None:
        while not watch.over:
            await step()
            watch.count += 1

    await asyncio.gather(*(one_task() for _ in range(tasks)))
    return watch.rate()


async def compare(
    seconds: float,
    plain: Callable[[], Awaitable[object]],
    other: Callable[[], Awaitable[object]],
    each: int,
    prepare: Callable[[], object] = lambda: None,
) -> Answer:
    """Calls two steps in turns, which add `each` jobs: how many times as long the other takes, by medians.

    `prepare` is called before each turn, and not counted.
    """
    prepare()
    await plain()
    await other()
    plains: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    watch = Stopwatch(seconds)
    while not watch.over or len(plains) < FEWEST_SAMPLES:
        prepare()
        for step, samples in ((plain, plains), (other, others)):
            started, busy = time.perf_counter(), time.process_time()
            await step()
            samples.append((time.perf_counter() - started, time.process_time() - busy))
    (plain_time, plain_busy), (other_time, other_busy) = (
        [statistics.median(column) for column in zip(*samples, strict=True)] for samples in (plains, others)
    )
    return {
        "per_second": each / other_time,
        "plain_per_second": each / plain_time,
        "times": other_time / plain_time,
        "cpu_times": other_busy / plain_busy,
    }


class Stopwatch:
    """Counts jobs against the clock, and against the processor time of this process."""

    def __init__(self, seconds: float) -> None:
        self.count = 0
        self._seconds = seconds
        self._busy = time.process_time()
        self._started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    @property
    def over(self) -> bool:
        return self.elapsed >= self._seconds

    @property
    def busy_percent(self) -> float:
        """Processor time of this process since then, in % of a core."""
        return 100 * (time.process_time() - self._busy) / self.elapsed

    def rate(self) -> Answer:
        elapsed, busy = self.elapsed, time.process_time() - self._busy
        per_job = 1e6 * busy / self.count if self.count else 0.0
        return {"per_second": self.count / elapsed, "cpu_us": per_job, "jobs": self.count}


def parts(n: int, added: float, ended: float) -> Answer:
    """Rates of n jobs that were added after so many seconds, and had ended after so many."""
    return {"per_second": n / ended, "add_per_second": n / added, "run_per_second": n / (ended - added)}


class Handled(Stopwatch):
    """Counts jobs as they are settled, from any thread, until there are enough or the time is over."""

    def __init__(self, enough: int, seconds: float) -> None:
        super().__init__(seconds)
        self._enough = enough
        self._lock = threading.Lock()
        self._reached = threading.Event()

    def more(self, number: int = 1) -> None:
        with self._lock:
            self.count += number
        if self.count >= self._enough:
            self._reached.set()

    @property
    def over(self) -> bool:
        return self._reached.is_set() or super().over

    def wait(self) -> Answer:
        self._reached.wait(self._seconds)
        return self.rate()


class Started:
    """Counts handlers that began, and tells when there were enough; its clock starts with the first of them."""

    def __init__(self, enough: int) -> None:
        self.enough = asyncio.Event()
        self.first = asyncio.Event()
        self._left = enough

    def one(self) -> None:
        self.first.set()
        self._left -= 1
        if self._left == 0:
            self.enough.set()


async def settled(
    n: int,
    seconds: float,
    started: Started,
    working: AbstractAsyncContextManager[object],
    unsettled: Callable[[], Awaitable[int]],
) -> Answer:
    """Works until `n` jobs are settled or the time is over; the store is asked how many are not."""
    before = await unsettled()
    async with working:
        await started.first.wait()
        watch = Stopwatch(seconds)
        await asyncio.wait([asyncio.create_task(started.enough.wait())], timeout=seconds)
        while True:
            watch.count = before - await unsettled()
            if watch.count >= n or watch.over:
                return watch.rate()
            await asyncio.sleep(0.002)


def latencies(seconds: float, add: Callable[[int], object], sample: Callable[[], float]) -> Answer:
    """Adds one job after the other to an idle queue.

    `add` stores the moment that it is given; `sample` waits for the milliseconds that the handler found between
    that moment and its own start.
    """
    found: list[float] = []
    watch = Stopwatch(seconds)
    while not watch.over or len(found) < FEWEST_SAMPLES:
        time.sleep(pause())
        add(time.monotonic_ns())
        found.append(sample())
    return percentiles(found)


async def latencies_async(
    seconds: float, add: Callable[[int], Awaitable[object]], sample: Callable[[], Awaitable[float]]
) -> Answer:
    found: list[float] = []
    watch = Stopwatch(seconds)
    while not watch.over or len(found) < FEWEST_SAMPLES:
        await asyncio.sleep(pause())
        await add(time.monotonic_ns())
        found.append(await sample())
    return percentiles(found)


async def paced_async(
    seconds: float, add: Callable[[int], Awaitable[object]], sample: Callable[[], Awaitable[float]]
) -> Answer:
    """Adds at `PACE`, whether or not the jobs before have started."""
    count = int(seconds * PACE)

    async def collect() -> list[float]:
        return [await sample() for _ in range(count)]

    collecting = asyncio.create_task(collect())
    started = time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number / PACE - time.perf_counter()))
        await add(time.monotonic_ns())
    return percentiles(await collecting)


def pause() -> float:
    """Seconds in which a queue becomes idle; random, to keep no step with anybody's polling."""
    return random.uniform(0.005, 0.02)


def since(moment: int) -> float:
    """Milliseconds since `time.monotonic_ns()` was `moment`, in this process or another on the machine."""
    return (time.monotonic_ns() - moment) / 1e6


def percentiles(samples: Sequence[float]) -> Answer:
    """The first sample is left out: it found threads and connections still starting."""
    cuts = statistics.quantiles(samples[1:], n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


@contextmanager
def beside(function: str, **arguments: Any) -> Iterator[Callable[[], float]]:
    """Runs a function of this system in a process of its own, which ends with the block.

    It `tell`s a line when it is ready, and a number whenever it has one; the block gets a function that waits for
    the next number.
    """
    main = sys.modules["__main__"].__spec__
    assert main is not None, "started with python -m"
    command = [sys.executable, "-m", main.name, function, json.dumps(arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout
        try:
            lines.readline()
            yield lambda: float(lines.readline())
        finally:
            process.kill()


def tell(line: object) -> None:
    """Sends a line to the process that started this one by `beside`."""
    print(line, flush=True)


def idle_cost(seconds: float) -> Answer:
    """What this process takes while its worker has nothing to do; call it when the worker is running."""
    time.sleep(1)
    before, started = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    busy = time.process_time() - before
    return {"cpu_percent": 100 * busy / (time.perf_counter() - started), "rss_mb": memory()}


def memory() -> float:
    """Resident megabytes now; the peak where the system tells no more."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
