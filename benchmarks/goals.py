"""What Ropeway has to reach, as data."""

from collections.abc import Callable
from functools import partial

from benchmarks.verdicts import BEST_DURABLE_RIVAL, BEST_PYTHON_RIVAL, BEST_RIVAL, Figure, Goal

ours = partial(Figure, "ropeway")
ours_in_memory = partial(Figure, "ropeway_memory")
ours_on_redis = partial(Figure, "ropeway_redis")
ours_on_postgres = partial(Figure, "ropeway_postgres")
bare = partial(Figure, "bare_apsw")
bullmq = partial(Figure, "bullmq")

FLAT = 1.5


def flat(ours: Callable[..., Figure]) -> tuple[Goal, ...]:
    """That what a job costs does not depend on how many others there are."""
    beside = (
        ("some waiting", "waiting_small", "waiting_middle"),
        ("many waiting", "waiting_small", "waiting_large"),
        ("many waiting, and as many finished", "finished_small", "finished_large"),
    )
    return tuple(
        Goal(f"cost flat: {text}", ours(small), over=ours(large), at_most=FLAT) for text, small, large in beside
    )


def flows(ours: Callable[..., Figure]) -> tuple[Goal, ...]:
    """That a child costs at most two plain jobs, however many siblings it has."""
    widths = (("few", "flows_small"), ("some", "flows_middle"), ("many", "flows_large"))
    # Adding has goals of its own: over the whole life of a job, running would hide what it costs.
    steps = (("adding and running", "per_second"), ("adding", "add_per_second"))
    return (
        *(
            Goal(
                f"{step} a child of {width}: at most two plain jobs",
                ours("flows_plain", key),
                over=ours(name, key),
                at_most=2,
            )
            for step, key in steps
            for width, name in widths
        ),
        Goal("cost flat: a child of many", ours("flows_small"), over=ours("flows_large"), at_most=FLAT),
    )


def schedules_and_keys(ours: Callable[..., Figure]) -> tuple[Goal, ...]:
    """That dedupe keys cost little, and that 10,000 schedules of a queue fire on time and cost nothing meanwhile."""
    ticks = (("spread over the second", "ticks"), ("at its beginning", "ticks_together"))
    return (
        Goal("adding one with a dedupe key: at most 1.5 times", ours("add_one_deduped", "times"), at_most=1.5),
        Goal("adding in bulk with keys: at most 1.5 times", ours("add_bulk_deduped", "times"), at_most=1.5),
        *(
            Goal(f"200 ticks a second, {text}: p99 under 50 ms", ours(measure, "p99_ms"), at_most=50)
            for text, measure in ticks
        ),
        Goal("idle worker, 10,000 schedules: under 1 % of a core", ours("idle_schedules", "cpu_percent"), at_most=1),
    )


def pipelines(ours: Callable[..., Figure]) -> tuple[Goal, ...]:
    return (
        Goal("a pipeline of three phases: at most three plain jobs", ours("pipelines", "times"), at_most=3),
        Goal("the same, all with results", ours("pipelines_results", "times"), at_most=3),
    )


def steps(ours: Callable[..., Figure], dbos: str) -> Goal:
    return Goal("steps: 5 times DBOS", ours("steps"), over=Figure(dbos, "steps"), at_least=5)


def dashboards(ours: Callable[..., Figure]) -> tuple[Goal, ...]:
    return (
        Goal("dashboard over many jobs: every page within 100 ms", ours("dashboard", "slowest"), at_most=100),
        Goal("ten idle viewers: under a tenth of a core", ours("dashboard_idle", "cpu_percent"), at_most=10),
    )


def webhooks(ours: Callable[..., Figure]) -> Goal:
    return Goal("webhooks to a local receiver: 1,000 a second", ours("webhooks"), at_least=1_000)


SQLITE = (
    Goal("processing: 5 times the best rival", ours("process"), over=Figure(BEST_RIVAL, "process"), at_least=5),
    Goal("processing: a quarter of the bare loop", ours("process"), over=bare("process"), at_least=1 / 4),
    Goal(
        "typed tasks: at most a tenth more processor time",
        ours("process_typed", "cpu_us"),
        over=ours("process", "cpu_us"),
        at_most=1.1,
    ),
    # The rivals' calls block. Programs that may not block call them in a thread.
    Goal(
        "adding one at a time, sync: ahead of every durable rival",
        ours("add_one_sync"),
        over=Figure(BEST_DURABLE_RIVAL, "add_one"),
        at_least=1,
    ),
    Goal(
        "adding one at a time, awaited: ahead of every durable rival",
        ours("add_one"),
        over=Figure(BEST_DURABLE_RIVAL, "add_one_by_thread"),
        at_least=1,
    ),
    Goal("adding by the sync twin: at most 1.5 times", ours("add_one"), over=ours("add_one_sync"), at_most=1.5),
    Goal("adding in bulk: a third of bare inserts", ours("add_bulk"), over=bare("add_bulk"), at_least=1 / 3),
    Goal("latency p50 in one process: under 1 ms", ours("latency", "p50_ms"), at_most=1),
    Goal("latency p50 between two processes: under 2 ms", ours("latency_apart", "p50_ms"), at_most=2),
    *flat(ours),
    *flows(ours),
    *schedules_and_keys(ours),
    *pipelines(ours),
    webhooks(ours),
    *dashboards(ours),
    steps(ours, "dbos"),
    Goal(
        "cost flat: many waiting, with priorities",
        ours("prioritized_small"),
        over=ours("prioritized_large"),
        at_most=FLAT,
    ),
    Goal("cost flat: adding one beside many waiting", ours("add_one"), over=ours("add_one_full"), at_most=FLAT),
    Goal("cost flat: adding in bulk beside many", ours("add_bulk"), over=ours("add_bulk_full"), at_most=FLAT),
    Goal("idle worker: under 60 MB", ours("idle", "rss_mb"), at_most=60),
    Goal(
        "many waiting jobs: at most 20 MB more",
        ours("idle_full", "rss_mb"),
        less=ours("idle", "rss_mb"),
        at_most=20,
    ),
    Goal("idle worker: under 0.5 % of a core", ours("idle", "cpu_percent"), at_most=0.5),
)

REDIS = (
    Goal("processing: 3 times BullMQ on Node", ours_on_redis("process"), over=bullmq("process"), at_least=3),
    Goal("processing: 4 times, as aimed at", ours_on_redis("process"), over=bullmq("process"), at_least=4),
    Goal(
        "processing: 10 times the best rival in Python",
        ours_on_redis("process"),
        over=Figure(BEST_PYTHON_RIVAL, "process"),
        at_least=10,
    ),
    Goal("processing at 10: ahead of BullMQ at 100", ours_on_redis("process_10"), over=bullmq("process"), at_least=1),
    Goal(
        "adding one at a time: ahead of every rival",
        ours_on_redis("add_one"),
        over=Figure(BEST_RIVAL, "add_one"),
        at_least=1,
    ),
    Goal(
        "adding one at a time, sync: ahead of every rival",
        ours_on_redis("add_one_sync"),
        over=Figure(BEST_RIVAL, "add_one"),
        at_least=1,
    ),
    Goal(
        "adding by the sync twin: at most 1.5 times",
        ours_on_redis("add_one"),
        over=ours_on_redis("add_one_sync"),
        at_most=1.5,
    ),
    Goal(
        "adding in bulk: 3 times the best rival",
        ours_on_redis("add_bulk"),
        over=Figure(BEST_RIVAL, "add_bulk"),
        at_least=3,
    ),
    Goal(
        "adding 100 at once: half of adding in bulk",
        ours_on_redis("add_concurrent"),
        over=ours_on_redis("add_bulk"),
        at_least=1 / 2,
    ),
    *(
        Goal(
            f"latency {text}: ahead of every rival",
            ours_on_redis("latency", key),
            over=Figure(BEST_RIVAL, "latency", key),
            at_most=1,
        )
        for text, key in (("p50", "p50_ms"), ("p99", "p99_ms"))
    ),
    Goal(
        "memory of a waiting job: at most BullMQ's",
        ours_on_redis("bytes_per_job", "bytes"),
        over=bullmq("bytes_per_job", "bytes"),
        at_most=1,
    ),
    *flat(ours_on_redis),
    *flows(ours_on_redis),
    *schedules_and_keys(ours_on_redis),
    *pipelines(ours_on_redis),
    webhooks(ours_on_redis),
    *dashboards(ours_on_redis),
    *(
        Goal(
            f"{step} flows of 10 children: 3 times BullMQ on Node",
            ours_on_redis("flows_small", key),
            over=bullmq("flows_small", key),
            at_least=3,
        )
        for step, key in (("adding", "add_per_second"), ("running", "run_per_second"))
    ),
    Goal(
        "cost flat: many waiting, with priorities",
        ours_on_redis("prioritized_small"),
        over=ours_on_redis("prioritized_large"),
        at_most=FLAT,
    ),
    Goal(
        "cost flat: many delayed",
        ours_on_redis("waiting_small"),
        over=ours_on_redis("delayed_large"),
        at_most=FLAT,
    ),
)

POSTGRES = (
    Goal(
        "processing: ahead of graphile-worker in batches",
        ours_on_postgres("process"),
        over=Figure("graphile_worker_batch", "process"),
        at_least=1,
    ),
    Goal(
        "processing: 1.5 times pgqueuer",
        ours_on_postgres("process"),
        over=Figure("pgqueuer", "process"),
        at_least=1.5,
    ),
    Goal(
        "adding one at a time: ahead of every rival",
        ours_on_postgres("add_one"),
        over=Figure(BEST_RIVAL, "add_one"),
        at_least=1,
    ),
    Goal(
        "adding in bulk: ahead of every rival",
        ours_on_postgres("add_bulk"),
        over=Figure(BEST_RIVAL, "add_bulk"),
        at_least=1,
    ),
    Goal(
        "latency p50: ahead of every rival",
        ours_on_postgres("latency", "p50_ms"),
        over=Figure(BEST_RIVAL, "latency", "p50_ms"),
        at_most=1,
    ),
    *flat(ours_on_postgres),
    *flows(ours_on_postgres),
    *schedules_and_keys(ours_on_postgres),
    *pipelines(ours_on_postgres),
    webhooks(ours_on_postgres),
    *dashboards(ours_on_postgres),
    steps(ours_on_postgres, "dbos_postgres"),
    Goal("while a transaction stays open: p99 under 50 ms", ours_on_postgres("pinned", "p99_ms"), at_most=50),
)

ours_over_http = partial(Figure, "ropeway_http")
_SINGLE = {"submit": "http_submit", "claim": "http_claim", "complete": "http_complete", "heartbeat": "http_heartbeat"}

HTTP = (
    Goal("submitted, claimed and completed in hundreds: 5,000 jobs/s", ours_over_http("http_batches"), at_least=5_000),
    *(Goal(f"{kind}: 500 requests/s", ours_over_http(measure), at_least=500) for kind, measure in _SINGLE.items()),
    *(
        Goal(f"{kind} at 500/s: p99 under 50 ms", ours_over_http(measure, "p99_ms"), at_most=50)
        for kind, measure in _SINGLE.items()
    ),
    Goal("too many callers: 80 % of the most", ours_over_http("http_overload", "goodput_percent"), at_least=80),
    Goal("too many callers: only refused by 429 and 503", ours_over_http("http_overload", "unexpected"), at_most=0),
    Goal("too many callers: no completion refused", ours_over_http("http_overload", "refused_completions"), at_most=0),
    Goal("too many callers: nothing acknowledged is lost", ours_over_http("http_overload", "lost"), at_most=0),
)

GOALS = {"memory": pipelines(ours_in_memory), "sqlite": SQLITE, "redis": REDIS, "postgres": POSTGRES, "http": HTTP}
