"""The text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from ..job.timings import BOUNDS, Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Kind: TypeAlias = Literal["counter", "gauge", "histogram"]


class Family(NamedTuple):
    """A metric: its samples differ in their labels alone."""

    name: str
    kind: Kind
    help: str


class Page:
    """Collects samples, and writes them family by family, as the format wants them."""

    def __init__(self) -> None:
        self._lines: dict[Family, list[str]] = {}

    def put(self, family: Family, value: float, **labels: str) -> None:
        self._put(family, family.name, value, labels)

    def put_histogram(self, family: Family, histogram: Histogram, **labels: str) -> None:
        """Writes durations in seconds. Buckets are cumulative here, and not in a `Histogram`."""
        seen = 0
        for bound, count in zip([*(_number(bound / 1000) for bound in BOUNDS), "+Inf"], histogram.counts, strict=True):
            seen += count
            self._put(family, f"{family.name}_bucket", seen, {**labels, "le": bound})
        self._put(family, f"{family.name}_sum", histogram.total / 1000, labels)
        self._put(family, f"{family.name}_count", seen, labels)

    def text(self) -> str:
        parts = []
        for family, lines in self._lines.items():
            parts += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}", *lines]
        return "\n".join([*parts, ""])

    def _put(self, family: Family, name: str, value: float, labels: dict[str, str]) -> None:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        line = f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"
        self._lines.setdefault(family, []).append(line)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(value).removesuffix(".0")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
