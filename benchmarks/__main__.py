"""Measures the systems, prints tables and goals, and writes everything as JSON."""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import machine, report, system
from benchmarks.goals import GOALS
from benchmarks.measures import Measure, measures
from benchmarks.runner import Runner
from benchmarks.system import System
from benchmarks.verdicts import judge

HERE = Path(__file__).parent


def main() -> None:
    arguments = parse()
    systems, chosen = choose(arguments.only, system.find(), measures(arguments.quick))
    started = time.monotonic()
    arguments.data.mkdir(parents=True, exist_ok=True)
    facts = machine.describe(arguments.data)
    with tempfile.TemporaryDirectory(dir=arguments.data) as data:
        runner = Runner(systems, arguments.quick, Path(data))
        runner.run(chosen, arguments.rounds or (1 if arguments.quick else 5))
    facts["minutes"] = round((time.monotonic() - started) / 60, 1)

    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    measured = {measure.name for measure in chosen}
    families = {
        family: show(family, [each for each in systems if each.family == family], measured, runner)
        for family in dict.fromkeys(each.family for each in systems)
    }
    results = {"answers": runner.results.answers, "failures": runner.results.failures}
    written = {"machine": facts, "quick": arguments.quick, "families": families, **results}
    arguments.json.write_text(json.dumps(written, indent=1))
    print(f"\nwritten to {arguments.json}")


def show(family: str, members: list[System], measured: set[str], runner: Runner) -> dict[str, Any]:
    goals = [goal for goal in GOALS.get(family, ()) if goal.figure.measure in measured]
    judged = judge(goals, members, runner.results)
    print(f"\n{family}: medians, and their ratio to {members[0].title}\n")
    print(report.table(members, runner.results, runner.quick), report.notes(members), sep="\n\n")
    for member in members:
        for measure, reason in runner.results.failures.get(member.name, {}).items():
            print(f"\n{measure}: {reason.splitlines()[0]} {reason.splitlines()[-1]}")
    print("\n" + report.verdicts(judged))
    return {
        "systems": [{**asdict(member), "path": member.path.name} for member in members],
        "goals": [{**asdict(verdict), "reached": verdict.reached} for verdict in judged],
    }


def choose(only: list[str], systems: list[System], known_measures: list[Measure]) -> tuple[list[System], list[Measure]]:
    """Names of systems choose among systems, names of measures among measures; none of a kind means all."""
    known = sorted({each.name for each in systems} | {each.name for each in known_measures})
    if unknown := sorted(set(only).difference(known)):
        raise SystemExit(f"nothing is named {', '.join(unknown)}; there are {', '.join(known)}")
    return (
        [each for each in systems if each.name in only] or systems,
        [each for each in known_measures if each.name in only] or known_measures,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAMES",
        help="systems or measures, by name, with commas between them",
    )
    parser.add_argument("--quick", action="store_true", help="a rough look: one round, smaller numbers")
    parser.add_argument("--rounds", type=int, help="how often each is repeated: 5, or 1 with --quick")
    # Not a temporary folder: it may be in memory, where a sync to the disk costs nothing.
    parser.add_argument("--data", type=Path, default=HERE / ".data", metavar="FOLDER", help="where stores are made")
    parser.add_argument("--json", type=Path, default=HERE / "results.json", metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
