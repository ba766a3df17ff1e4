"""Histograms of durations."""

from __future__ import annotations

from ropeway.job.timings import BOUNDS, Histogram, Timings


def test_a_duration_is_counted_in_the_first_bucket_that_holds_it():
    histogram = Histogram()
    for duration in (0, 5, 5.1, 3_600_001):
        histogram.observe(duration)
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[-1]) == (2, 1, 1)
    assert (histogram.number, histogram.total) == (4, 0 + 5 + 5.1 + 3_600_001)


def test_histograms_add_up():
    one, other = Timings(), Timings()
    one.wait.observe(7)
    other.wait.observe(8)
    other.run.observe(100)
    one.add(other)
    assert (one.wait.number, one.wait.total, one.run.number) == (2, 15, 1)


def test_a_quantile_is_the_bound_of_its_bucket():
    histogram = Histogram()
    assert histogram.quantile(0.5) is None
    for duration in [1] * 98 + [40, 10**9]:
        histogram.observe(duration)
    assert [histogram.quantile(share) for share in (0.5, 0.99, 1)] == [5, 50, BOUNDS[-1]]
