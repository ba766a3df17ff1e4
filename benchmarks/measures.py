"""What is measured, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.system import System

JOBS = "JOBS"
"""Stands for the system's own number of jobs."""
RESULT = "s3://bucket/imports/2031-05-17/rows.parquet"
"""What jobs and phases return, where they return something."""


@dataclass(frozen=True)
class Step:
    """A function of the system, run in a process of its own."""

    function: str
    arguments: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a store is prepared once and kept for all rounds."""

    name: str
    prepared: tuple[Step, ...]


@dataclass(frozen=True)
class Measure:
    """Steps in one place, a fresh one unless told otherwise; the last one's answer counts."""

    name: str
    steps: tuple[Step, ...]
    place: Place | None = None
    rounds: int | None = None
    """Fewer than the run's: for what takes long and varies little."""
    pinned: bool = False
    """Whether another transaction is held open meanwhile."""
    family: str | None = None
    """The only one that it is for."""

    def concerns(self, system: System) -> bool:
        if self.family not in (None, system.family):
            return False
        return (system.backlogs or self.place is None) and (system.family == "postgres" or not self.pinned)


def measures(quick: bool) -> list[Measure]:
    small, middle, large = backlogs(quick)
    adding = {"seconds": 0.5 if quick else 1}
    watching = {"seconds": 1 if quick else 2}
    idling = {"seconds": 3 if quick else 10}
    pacing = {"seconds": 5 if quick else 20}
    ticking = {"seconds": 5 if quick else 10}
    # Ten minutes' worth of jobs at the pace of `latency_paced`, moved as fast as may be.
    passing = {"n": 20_000 if quick else 120_000}

    # The same for all: what the next job costs may depend on how many there are.
    same = 5_000 if quick else 20_000
    line = {"n": same, "seconds": 1 if quick else 2}
    comparing: dict[str, float | str] = {"n": same, "phases": 3, "turns": 1 if quick else 3}
    fill = Step("fill", {"n": JOBS})
    fill_prioritized = Step("fill_prioritized", {"n": JOBS})
    fill_kept = Step("fill_kept", {"n": JOBS})
    process = Step("process", {"n": JOBS, "seconds": 3})
    full = Place("full", (Step("fill", {"n": large}),))

    pages = Place("dashboard", (Step("fill_dashboard", {"n": large}),))

    def beside(name: str, *prepared: Step, then: Step = fill) -> Measure:
        """Processing that leaves behind what was prepared."""
        return Measure(name, (then, process), Place(name, prepared))

    return [
        Measure("add_one", (Step("add_one", adding),)),
        Measure("add_one_sync", (Step("add_one_sync", adding),)),
        Measure("add_one_by_thread", (Step("add_one_by_thread", adding),)),
        Measure("add_one_beside", (Step("fill", {"n": 4 * same}), Step("add_one_beside", adding))),
        Measure("add_bulk", (Step("add_bulk", adding),)),
        Measure("add_concurrent", (Step("add_concurrent", adding),)),
        Measure("add_one_deduped", (Step("add_one_deduped", adding),)),
        Measure("add_bulk_deduped", (Step("add_bulk_deduped", adding),)),
        Measure("process", (Step("fill", {"n": same}), Step("process", line))),
        Measure("process_10", (Step("fill", {"n": same}), Step("process_at", {**line, "concurrency": 10}))),
        Measure("process_typed", (Step("fill", {"n": same}), Step("process_typed", line))),
        Measure("latency", (Step("latency", watching),)),
        Measure("latency_apart", (Step("latency_apart", watching),)),
        Measure(
            "pinned",
            (Step("fill", passing), Step("process", {**passing, "seconds": 120}), Step("latency_paced", pacing)),
            pinned=True,
        ),
        *(
            Measure(name, (Step("run_flows", {"n": widths(quick)[-1], "children": width}),))
            for name, width in zip(FLOWS, (0, *widths(quick)), strict=True)
        ),
        Measure("ticks", (Step("put_schedules", SPREAD), Step("ticks", ticking)), rounds=3),
        Measure("ticks_together", (Step("put_schedules", TOGETHER), Step("ticks", ticking)), rounds=3),
        Measure("pipelines", (Step("compare_pipelines", comparing),), rounds=3),
        Measure("pipelines_results", (Step("compare_pipelines", {**comparing, "result": RESULT}),), rounds=3),
        Measure("steps", (Step("run_steps", {"n": same // 10, "steps": 10, "seconds": 5 if quick else 20}),)),
        Measure("webhooks", (Step("deliver_webhooks", {"n": same // 4, "seconds": 20}),), rounds=3),
        *(Measure(name, (Step(name, {"seconds": 2 if quick else 5}),), family="http") for name in HTTP),
        Measure("dashboard", (Step("dashboard"),), pages, rounds=1),
        Measure("dashboard_idle", (Step("dashboard_idle", {"seconds": 5 if quick else 20}),), pages, rounds=1),
        Measure("idle", (Step("idle", idling),), rounds=1),
        Measure("idle_schedules", (Step("put_schedules", RARE), Step("idle", idling)), rounds=1),
        Measure("bytes_per_job", (Step("bytes_per_job", {"n": large}),), rounds=1),
        beside("waiting_small", Step("fill", {"n": small})),
        beside("waiting_middle", Step("fill", {"n": middle})),
        Measure("waiting_large", (fill, process), full),
        beside("prioritized_small", Step("fill_prioritized", {"n": small}), then=fill_prioritized),
        beside("prioritized_large", Step("fill_prioritized", {"n": large}), then=fill_prioritized),
        beside("delayed_large", Step("fill_delayed", {"n": large}), Step("fill", {"n": small})),
        beside("finished_small", Step("fill_kept", {"n": small}), then=fill_kept),
        beside(
            "finished_large",
            Step("fill_kept", {"n": large}),
            Step("process", {"n": large, "seconds": 300}),
            Step("fill_kept", {"n": large}),
            then=fill_kept,
        ),
        Measure("add_one_full", (Step("add_one", adding),), full),
        Measure("add_bulk_full", (Step("add_bulk", adding),), full),
        Measure("idle_full", (Step("idle_paused", idling),), full, rounds=1),
    ]


SCHEDULES = 10_000
SPREAD = {"n": SCHEDULES, "every": 50, "apart": 5}
"""200 ticks a second, one after the other."""
TOGETHER = {"n": SCHEDULES, "every": 50, "apart": 1_000}
"""200 ticks a second, all at its beginning, as cron has it."""
RARE = {"n": SCHEDULES, "every": 30 * 86_400, "apart": 250_000}
"""No tick for minutes."""
HTTP = ("http_batches", "http_submit", "http_claim", "http_complete", "http_heartbeat", "http_overload")
"""Requests to a server: with 100 jobs each, with one of each kind, and more of them than it can serve."""
FLOWS = ("flows_plain", "flows_small", "flows_middle", "flows_large")
"""Jobs without a parent, and the same number as the children of few, some and many to a parent."""


def widths(quick: bool) -> tuple[int, int, int]:
    """How many children of a parent are few, some and many."""
    return (10, 100, 1_000) if quick else (10, 1_000, 10_000)


def backlogs(quick: bool) -> tuple[int, int, int]:
    """How many waiting jobs are few, some and many."""
    return (1_000, 10_000, 100_000) if quick else (1_000, 100_000, 1_000_000)
