"""What Ropeway has to reach, as data; figures are medians of one run, and ratios are taken between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.results import Results
from benchmarks.system import System

BEST_RIVAL = "best rival"
BEST_DURABLE_RIVAL = "best durable rival"


@dataclass(frozen=True)
class Figure:
    system: str
    measure: str
    key: str = "per_second"


@dataclass(frozen=True)
class Goal:
    """A figure, or its ratio `over` another, or the difference when another is taken off (`less`)."""

    text: str
    figure: Figure
    over: Figure | None = None
    less: Figure | None = None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    value: float | None
    """None if a figure is missing."""
    figures: tuple[tuple[Figure, float | None], ...]

    @property
    def reached(self) -> bool | None:
        if self.value is None:
            return None
        low, high = self.goal.at_least, self.goal.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)


def ours(measure: str, key: str = "per_second") -> Figure:
    return Figure("ropeway", measure, key)


def bare(measure: str) -> Figure:
    return Figure("bare_apsw", measure)


FLAT = 1.5

SQLITE = (
    Goal("processing: 5 times the best rival", ours("process"), over=Figure(BEST_RIVAL, "process"), at_least=5),
    Goal("processing: a quarter of the bare loop", ours("process"), over=bare("process"), at_least=1 / 4),
    Goal(
        "typed tasks: at most a tenth more processor time",
        ours("process_typed", "cpu_us"),
        over=ours("process", "cpu_us"),
        at_most=1.1,
    ),
    Goal(
        "adding one at a time: ahead of every durable rival",
        ours("add_one"),
        over=Figure(BEST_DURABLE_RIVAL, "add_one"),
        at_least=1,
    ),
    Goal("adding by the sync twin: at most 1.5 times", ours("add_one"), over=ours("add_one_sync"), at_most=1.5),
    Goal("adding in bulk: a third of bare inserts", ours("add_bulk"), over=bare("add_bulk"), at_least=1 / 3),
    Goal("latency p50 in one process: under 1 ms", ours("latency", "p50_ms"), at_most=1),
    Goal("latency p50 between two processes: under 2 ms", ours("latency_apart", "p50_ms"), at_most=2),
    Goal("cost flat: some waiting", ours("waiting_small"), over=ours("waiting_middle"), at_most=FLAT),
    Goal("cost flat: many waiting", ours("waiting_small"), over=ours("waiting_large"), at_most=FLAT),
    Goal(
        "cost flat: many waiting, with priorities",
        ours("prioritized_small"),
        over=ours("prioritized_large"),
        at_most=FLAT,
    ),
    Goal(
        "cost flat: many waiting, and as many finished",
        ours("finished_small"),
        over=ours("finished_large"),
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

GOALS = {"sqlite": SQLITE}


def judge(goals: Iterable[Goal], systems: Sequence[System], results: Results) -> list[Verdict]:
    return [_judge(goal, systems, results) for goal in goals]


def _judge(goal: Goal, systems: Sequence[System], results: Results) -> Verdict:
    figures = [figure for figure in (goal.figure, goal.over, goal.less) if figure is not None]
    found = tuple(_find(figure, systems, results) for figure in figures)
    values = [value for _, value in found if value is not None]
    if len(values) < len(figures):
        return Verdict(goal, None, found)
    value = values[0]
    if goal.over:
        value /= values[1]
    elif goal.less:
        value -= values[1]
    return Verdict(goal, value, found)


def _find(figure: Figure, systems: Sequence[System], results: Results) -> tuple[Figure, float | None]:
    """The figure's median; for the best rival also which one that is."""
    if figure.system not in (BEST_RIVAL, BEST_DURABLE_RIVAL):
        return figure, results.median(figure.system, figure.measure, figure.key)
    rivals = [
        (value, system.name)
        for system in systems
        if system.role == "rival"
        and (system.durable or figure.system == BEST_RIVAL)
        and (value := results.median(system.name, figure.measure, figure.key)) is not None
    ]
    if not rivals:
        return figure, None
    value, name = max(rivals)
    return Figure(name, figure.measure, figure.key), value
