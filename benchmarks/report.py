"""What a run shows at its end."""

from collections.abc import Iterable, Sequence

from benchmarks.measures import backlogs, widths
from benchmarks.results import Results
from benchmarks.system import System
from benchmarks.verdicts import Verdict

MISSING = "–"

Row = tuple[str, str, str]
"""A title, and the measure and key it shows."""


def rows(quick: bool) -> list[Row]:
    small, middle, large = (f"{number:,}" for number in backlogs(quick))
    sizes = [*zip(("small", "middle", "large"), widths(quick), strict=True)]
    most = f"{widths(quick)[-1]:,}"
    return [
        ("add one at a time, jobs/s", "add_one", "per_second"),
        ("  by the sync twin", "add_one_sync", "per_second"),
        ("  from a coroutine, by a thread", "add_one_by_thread", "per_second"),
        ("  beside a busy worker process", "add_one_beside", "per_second"),
        ("add in bulk, jobs/s", "add_bulk", "per_second"),
        ("add from 100 tasks at once, jobs/s", "add_concurrent", "per_second"),
        ("add one with a dedupe key, times as long", "add_one_deduped", "times"),
        ("add in bulk with dedupe keys, times as long", "add_bulk_deduped", "times"),
        ("process, jobs/s", "process", "per_second"),
        ("process at concurrency 10, jobs/s", "process_10", "per_second"),
        ("processor time per job, µs", "process", "cpu_us"),
        ("  of a typed task", "process_typed", "cpu_us"),
        ("peak memory while processing, MB", "process", "peak_mb"),
        ("latency in one process, p50 ms", "latency", "p50_ms"),
        ("latency in one process, p99 ms", "latency", "p99_ms"),
        ("latency between two, p50 ms", "latency_apart", "p50_ms"),
        ("latency between two, p99 ms", "latency_apart", "p99_ms"),
        ("latency at 200 jobs/s, a transaction open, p50 ms", "pinned", "p50_ms"),
        ("latency at 200 jobs/s, a transaction open, p99 ms", "pinned", "p99_ms"),
        *(
            (f"  {title}, {what}", measure, key)
            for title, measure in (
                (f"{most} jobs without parents", "flows_plain"),
                *((f"{most} children, {width:,} to a parent", f"flows_{size}") for size, width in sizes),
            )
            for what, key in (("added, jobs/s", "add_per_second"), ("run to the end, jobs/s", "run_per_second"))
        ),
        *(
            (f"200 ticks/s of 10,000 schedules, {when}, {title}", measure, key)
            for when, measure in (("spread", "ticks"), ("at once", "ticks_together"))
            for title, key in (("p50 ms late", "p50_ms"), ("p99 ms late", "p99_ms"), ("% of a core", "cpu_percent"))
        ),
        *(
            (f"{title}{with_results}, {what}", measure, key)
            for measure, with_results in (("pipelines", ""), ("pipelines_results", " with results"))
            for title, what, key in (
                ("plain jobs", "run to the end, jobs/s", "plain_per_second"),
                ("  pipelines of three phases", "jobs/s", "per_second"),
                ("  a pipeline", "in plain jobs", "times"),
            )
        ),
        ("steps of handlers with ten, steps/s", "steps", "per_second"),
        ("webhooks to a local receiver, deliveries/s", "webhooks", "per_second"),
        ("submitted, claimed and completed 100 a request, jobs/s", "http_batches", "per_second"),
        *(
            (f"{title}, {what}", measure, key)
            for title, measure in (
                ("submit one", "http_submit"),
                ("claim one", "http_claim"),
                ("complete one", "http_complete"),
                ("heartbeat", "http_heartbeat"),
            )
            for what, key in (
                ("requests/s", "per_second"),
                ("p50 ms at 500/s", "p50_ms"),
                ("p99 ms at 500/s", "p99_ms"),
            )
        ),
        ("the most from up to 150 connections, submits/s", "http_overload", "peak_per_second"),
        ("  from 750, carried out", "http_overload", "per_second"),
        ("  refused", "http_overload", "refused_per_second"),
        ("  acknowledged and lost, jobs", "http_overload", "lost"),
        (f"dashboard over {large} jobs, slowest page, median ms", "dashboard", "slowest"),
        ("  overview", "dashboard", "/overview"),
        ("  one queue", "dashboard", "/queues/{queue}"),
        ("  jobs", "dashboard", "/jobs"),
        ("  jobs, 4,000 further", "dashboard", "/jobs 4,000 further"),
        ("  jobs by text that none has", "dashboard", "/jobs by text"),
        ("  one job", "dashboard", "/queues/{queue}/jobs/{id}"),
        ("  failures", "dashboard", "/failures"),
        ("  ten viewers, % of a core", "dashboard_idle", "cpu_percent"),
        ("idle worker, % of a core", "idle", "cpu_percent"),
        ("  with 10,000 schedules", "idle_schedules", "cpu_percent"),
        ("idle worker, MB", "idle", "rss_mb"),
        (f"  beside {large} waiting, MB", "idle_full", "rss_mb"),
        ("bytes in the server for a waiting job", "bytes_per_job", "bytes"),
        (f"process beside {small} waiting, jobs/s", "waiting_small", "per_second"),
        (f"  beside {middle} waiting", "waiting_middle", "per_second"),
        (f"  beside {large} waiting", "waiting_large", "per_second"),
        (f"  beside {small} with priorities", "prioritized_small", "per_second"),
        (f"  beside {large} with priorities", "prioritized_large", "per_second"),
        (f"  beside {small} and {large} delayed", "delayed_large", "per_second"),
        (f"  beside {small}, all finished ones kept", "finished_small", "per_second"),
        (f"  beside {large} and as many finished", "finished_large", "per_second"),
        (f"add one beside {large} waiting, jobs/s", "add_one_full", "per_second"),
        (f"add in bulk beside {large} waiting", "add_bulk_full", "per_second"),
    ]


def table(systems: Sequence[System], results: Results, quick: bool) -> str:
    """One family's medians, each with its ratio to the first, which is ours if it was measured."""
    lines = [["", *(system.title for system in systems)]]
    for title, measure, key in rows(quick):
        cells = [_cell(system, systems[0], results, measure, key) for system in systems]
        if any(cell != MISSING for cell in cells):
            lines.append([title, *cells])
    return align(lines)


def _cell(system: System, first: System, results: Results, measure: str, key: str) -> str:
    if measure in results.failures.get(system.name, {}):
        return "failed"
    value = results.median(system.name, measure, key)
    base = results.median(first.name, measure, key)
    if system is first or value is None or not base:
        return number(value)
    return f"{number(value)} {value / base:6.2f}×"


def number(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def notes(systems: Iterable[System]) -> str:
    return "\n".join(f"{system.title}: {system.note}" for system in systems if system.note)


def verdicts(judged: Iterable[Verdict]) -> str:
    lines = [["goal", "", "figure", "wanted", "from"]]
    for verdict in judged:
        goal = verdict.goal
        mark = {True: "pass", False: "FAIL", None: MISSING}[verdict.reached]
        wanted = f"≤ {goal.at_most:.4g}" if goal.at_least is None else f"≥ {goal.at_least:.4g}"
        figures = (f"{figure.system} {figure.measure} {number(value)}" for figure, value in verdict.figures)
        lines.append([goal.text, mark, number(verdict.value), wanted, ", ".join(figures)])
    return align(lines, left=(0, 1, 4))


def align(lines: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
