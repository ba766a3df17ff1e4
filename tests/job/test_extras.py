"""Rarely used fields of a job."""

from __future__ import annotations

import msgspec

from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras, Origin
from ropeway.job.instants import LAST_INSTANT
from ropeway.testing.factories import DAY, NOW, QUEUE


def test_a_job_without_a_limit_never_expires():
    assert Extras(dead_letter="graves").deadline(NOW) is None


def test_a_duration_counts_from_the_add():
    assert Extras(start_within=DAY).deadline(NOW) == NOW + DAY


def test_an_instant_is_taken_as_it_is():
    assert Extras(start_by=NOW).deadline(NOW + DAY) == NOW


def test_no_deadline_is_after_the_end_of_the_calendar():
    assert Extras(start_within=DAY).deadline(LAST_INSTANT) == LAST_INSTANT


def test_what_is_not_set_is_not_stored():
    assert msgspec.json.encode(Extras()) == b"{}"
    assert msgspec.json.encode(Extras(dedupe=DedupeRule("k"))) == b'{"dedupe":{"key":"k"}}'


def test_it_is_read_as_it_was_written():
    full = Extras(1, 2, "graves", DedupeRule("k", "throttle", 5), "nightly", Origin(QUEUE, "a", "no luck", 3, NOW))

    assert msgspec.json.decode(msgspec.json.encode(full), type=Extras) == full
