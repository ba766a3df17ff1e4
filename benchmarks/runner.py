"""Runs every measure on every system, in turns, so that a noisy minute falls on all of them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environment import ROOT, command
from benchmarks.measures import JOBS, Measure, Step
from benchmarks.protocol import Answer
from benchmarks.report import number
from benchmarks.results import Results
from benchmarks.servers import Servers
from benchmarks.system import System

STEP_PATIENCE = 180.0
"""Seconds that a step may take beyond those it was told to take: one that hangs must not eat the run."""


class StepFailed(Exception):
    """A system's program ended badly, answered nothing, or did not end."""

    def __init__(self, system: System, step: Step, output: str) -> None:
        self.output = output
        super().__init__(f"{system.name} failed at {step.function}:\n{output.strip()}")


@dataclass
class Runner:
    systems: list[System]
    quick: bool
    data: Path
    """The folder that stores are made in."""
    results: Results = field(default_factory=Results)

    def run(self, measures: Sequence[Measure], rounds: int) -> None:
        self._commands = {system.name: command(system) for system in self.systems}
        self._skipped: set[tuple[str, str]] = set()
        self._prepared: set[Path] = set()
        with Servers(self.data) as self._servers:
            for turn in range(1, rounds + 1):
                for measure in measures:
                    if turn <= (measure.rounds or rounds):
                        self._round(measure, f"round {turn}/{rounds}")

    def _round(self, measure: Measure, title: str) -> None:
        for system in self.systems:
            if (system.name, measure.name) in self._skipped or not measure.concerns(system):
                continue
            words = f"{title}  {measure.name:18} {system.name:21}"
            try:
                answer = self._measure(system, measure)
            except StepFailed as failure:
                self.results.fail(system.name, measure.name, str(failure))
                print(f"{words} failed: {str(failure).splitlines()[-1]}", file=sys.stderr)
                answer = None
            if answer is None:
                self._skipped.add((system.name, measure.name))
            else:
                self.results.add(system.name, measure.name, answer)
                figures = ", ".join(f"{key} {number(value)}" for key, value in answer.items())
                print(f"{words} {figures}", file=sys.stderr)

    def _measure(self, system: System, measure: Measure) -> Answer | None:
        """The answer to the last step, or None if the system cannot do one of them."""
        place = self.data / f"{system.name}-{measure.place.name if measure.place else 'fresh'}"
        if place not in self._prepared:
            self._servers.forget(system.family, place)
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for step in measure.place.prepared if measure.place else ():
                if self._step(system, step, place) is None:
                    return None
        if measure.place:
            self._prepared.add(place)
        with self._servers.pinned(system.family, place) if measure.pinned else nullcontext():
            answer = None
            for step in measure.steps:
                answer = self._step(system, step, place)
                if answer is None:
                    break
            return answer

    def _step(self, system: System, step: Step, place: Path) -> Answer | None:
        """The system's answer and the peak of its memory, or None if it cannot do this."""
        jobs = system.jobs // 4 if self.quick else system.jobs
        arguments = {key: jobs if value == JOBS else value for key, value in step.arguments.items()}
        address = self._servers.address(system.family, place)
        words = [*self._commands[system.name], step.function, json.dumps({"place": address, **arguments})]
        os.sync()  # What the step before wrote is not this one's burden.
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=errors, start_new_session=True)
            limit = STEP_PATIENCE + float(arguments.get("seconds", 0))
            timer = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
            started = time.monotonic()
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            lines = output.read().splitlines()
            if process.returncode != 0 or not lines:
                hung = f"\nended after {limit:.0f} s" if time.monotonic() - started >= limit else ""
                raise StepFailed(system, step, errors.read().strip() + hung)
        answer: Answer | None = json.loads(lines[-1])
        return None if answer is None else {**answer, "peak_mb": usage.ru_maxrss / 1024}
