"""The answers of all rounds, and what they come to."""

import statistics
from dataclasses import dataclass, field

from benchmarks.protocol import Answer


@dataclass
class Results:
    answers: dict[str, dict[str, list[Answer]]] = field(default_factory=dict)
    """By system and measure, one answer per round."""
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, system: str, measure: str, answer: Answer) -> None:
        self.answers.setdefault(system, {}).setdefault(measure, []).append(answer)

    def fail(self, system: str, measure: str, reason: str) -> None:
        self.failures.setdefault(system, {})[measure] = reason

    def median(self, system: str, measure: str, key: str) -> float | None:
        """None if it was not measured, or failed in any round."""
        if measure in self.failures.get(system, {}):
            return None
        answers = self.answers.get(system, {}).get(measure, [])
        return statistics.median(answer[key] for answer in answers) if answers else None
