"""Pages of metrics, read by Prometheus's own client."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ropeway.job.timings import BOUNDS
from ropeway.metrics.families import SERVER, STORE

Samples = dict[tuple[str, ...], float]
"""Values by name and labels, such as `("ropeway_jobs", "letters", "waiting")`."""


def parsed(text: str) -> Samples:
    """The samples of a page, whose form is checked: help, kind, no sample twice, buckets that grow."""
    known = {family.name: family for family in (*STORE, *SERVER)}
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert (family.type, family.documentation) == (known[name].kind, known[name].help)
        buckets: dict[str, list[float]] = {}
        for sample in family.samples:
            key = (sample.name, *sample.labels.values())
            assert key not in samples
            samples[key] = sample.value
            if sample.name.endswith("_bucket"):
                buckets.setdefault(sample.labels["queue"], []).append(sample.value)
        for queue, counts in buckets.items():
            assert counts == sorted(counts)
            assert len(counts) == len(BOUNDS) + 1
            assert counts[-1] == samples[f"{family.name}_count", queue]
    return samples
