"""Pictures to draw, full or empty."""

from __future__ import annotations

from typing import Any

from ropeway.cli.live.picture import (
    Failure,
    HappenedEvent,
    Latency,
    NextRun,
    Picture,
    QueuePicture,
    Rates,
    RunningJob,
    WorkerPicture,
)
from ropeway.job.states import STATES

NOW = 1_800_000_000_000
UUID = "0190b3f2-5c5e-7a2b-9d4e-1f2a3b4c5d6e"


def queue(name: str = "emails", counts: dict[str, int] | None = None, **parts: Any) -> QueuePicture:
    full: Any = {**dict.fromkeys(STATES, 0), **({"waiting": 12, "active": 3} if counts is None else counts)}
    return QueuePicture(name, full, **{"rates": Rates(4.5, 4.0, 0.5), "throughput": (1.0, 4.0, 2.0), **parts})


def running_job(name: str = "send_email", **parts: Any) -> RunningJob:
    given: dict[str, Any] = {
        "queue": "emails",
        "id": UUID,
        "worker": "web-1",
        "seconds": 2.5,
        "attempt": 1,
        "attempts": 1,
    }
    return RunningJob(name=name, **{**given, **parts})


def event(name: str = "completed", **parts: Any) -> HappenedEvent:
    return HappenedEvent(**{"at": NOW, "queue": "emails", "event": name, "count": 1, "names": ("send_email",), **parts})


def failure(reason: str = "ValueError: no address", **parts: Any) -> Failure:
    given = {"at": NOW, "queue": "emails", "id": UUID, "name": "send_email", "attempts": 3}
    return Failure(reason=reason, **{**given, **parts})


def next_run(schedule: str = "nightly", seconds: float = 90, **parts: Any) -> NextRun:
    given: dict[str, Any] = {"at": NOW, "queue": "emails", "name": "report"}
    return NextRun(schedule=schedule, seconds=seconds, **{**given, **parts})


def worker(name: str = "web-1", **parts: Any) -> WorkerPicture:
    given: dict[str, Any] = {
        "host": "web",
        "pid": 7,
        "queues": ("emails",),
        "running": 3,
        "concurrency": 10,
        "seconds": 90,
    }
    return WorkerPicture(name=name, **{**given, **parts})


def picture(**parts: Any) -> Picture:
    given: dict[str, Any] = {
        "queues": (queue(latency=Latency(0.012, 0.25, 40), oldest_waiting=3.4), queue("images"), queue("orders")),
        "running": (running_job("resize_image", progress=40, queue="images"), running_job()),
        "workers": (worker(),),
        "events": (event("added", count=1_000), event()),
        "failures": (failure(),),
        "next_runs": (next_run(), next_run("weekly", 86_400 * 3, queue="images")),
    }
    return Picture(NOW, "sqlite:///ropeway.db", **{**given, **parts})
