"""The text format."""

from __future__ import annotations

import pytest

from ropeway.job.timings import Histogram
from ropeway.metrics import families
from ropeway.metrics.page import Family, Page

from .parsing import parsed


def test_durations_are_seconds_in_cumulative_buckets():
    page, histogram = Page(), Histogram()
    for milliseconds in (3, 80, 80, 5_000_000):
        histogram.observe(milliseconds)
    page.put_histogram(families.RUN, histogram, queue="a")

    samples = parsed(page.text())

    name = "ropeway_job_run_seconds"
    assert samples[f"{name}_bucket", "a", "0.005"] == 1
    assert samples[f"{name}_bucket", "a", "0.1"] == 3
    assert samples[f"{name}_bucket", "a", "3600"] == 3
    assert samples[f"{name}_bucket", "a", "+Inf"] == samples[f"{name}_count", "a"] == 4
    assert samples[f"{name}_sum", "a"] == pytest.approx(5000.163)


@pytest.mark.parametrize("label", ['a"b', "a\\b", "a\nb", "\\n", "ключ"])
def test_labels_are_read_as_they_were_written(label: str):
    page = Page()
    page.put(families.WORKERS, 2, queue=label)
    assert parsed(page.text()) == {("ropeway_workers", label): 2}


def test_samples_of_a_family_stand_together():
    page, family = Page(), Family("a", "gauge", "Some.")
    page.put(family, 1, queue="x")
    page.put(families.PAUSED, 0, queue="x")
    page.put(family, 2.5, queue="y")
    assert page.text().startswith('# HELP a Some.\n# TYPE a gauge\na{queue="x"} 1\na{queue="y"} 2.5\n# HELP')
