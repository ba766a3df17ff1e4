"""Whether goals were reached: figures are medians of one run, and ratios are taken between them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.results import Results
from benchmarks.system import System

BEST_RIVAL = "best rival"
BEST_DURABLE_RIVAL = "best durable rival"
BEST_PYTHON_RIVAL = "best rival in Python"

RIVALS: dict[str, Callable[[System], bool]] = {
    BEST_RIVAL: lambda _: True,
    BEST_DURABLE_RIVAL: lambda system: system.durable,
    BEST_PYTHON_RIVAL: lambda system: system.path.suffix == ".py",
}
"""What stands in place of a system's name in a figure, and which rivals it is chosen from."""


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


def judge(goals: Iterable[Goal], systems: Sequence[System], results: Results) -> list[Verdict]:
    return [_judge(goal, systems, results) for goal in goals]


def _judge(goal: Goal, systems: Sequence[System], results: Results) -> Verdict:
    figures = [figure for figure in (goal.figure, goal.over, goal.less) if figure is not None]
    # Where ours is to be at most another's, the best of the others is the least.
    best = max if goal.at_most is None else min
    found = tuple(_find(figure, systems, results, best) for figure in figures)
    values = [value for _, value in found if value is not None]
    if len(values) < len(figures):
        return Verdict(goal, None, found)
    value = values[0]
    if goal.over:
        value /= values[1]
    elif goal.less:
        value -= values[1]
    return Verdict(goal, value, found)


def _find(
    figure: Figure, systems: Sequence[System], results: Results, best: Callable[..., tuple[float, str]]
) -> tuple[Figure, float | None]:
    """The figure's median; for the best rival also which one that is."""
    if figure.system not in RIVALS:
        return figure, results.median(figure.system, figure.measure, figure.key)
    rivals = [
        (value, system.name)
        for system in systems
        if system.role == "rival"
        and RIVALS[figure.system](system)
        and (value := results.median(system.name, figure.measure, figure.key)) is not None
    ]
    if not rivals:
        return figure, None
    value, name = best(rivals)
    return Figure(name, figure.measure, figure.key), value
