"""`ropeway metrics`."""

from __future__ import annotations

from ropeway.testing.factories import QUEUE
from tests.metrics.parsing import parsed

from .conftest import Arrange, Ropeway


def test_metrics_are_printed_as_prometheus_reads_them(ropeway: Ropeway, arrange: Arrange):
    arrange.job("failed")
    arrange.job()

    ran = ropeway("metrics")

    samples = parsed(ran.out)
    assert ran.code == 0
    assert samples["ropeway_jobs_added_total", QUEUE] == 2
    assert samples["ropeway_jobs", QUEUE, "failed"] == 1
    assert parsed(ropeway("metrics").out).keys() == samples.keys()


def test_a_store_that_is_not_there_has_no_queues_and_is_not_made(ropeway: Ropeway):
    ran = ropeway("metrics")
    assert ran.code == 0
    assert "ropeway_build_info" in ran.out
    assert "ropeway_jobs" not in ran.out
