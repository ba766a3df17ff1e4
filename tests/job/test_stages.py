"""Retention of a queue in stages: which rules hold, and until when."""

from __future__ import annotations

from ropeway.job.names import LONGEST_ID
from ropeway.job.options import stored_options
from ropeway.job.retention import FOREVER, KEEP_COMPLETED, KEEP_FAILED, NOT_AT_ALL, Retention
from ropeway.job.stages import BY_QUEUE, CALLBACK_OPTIONS, Stages, callback_id
from ropeway.testing.factories import DAY, MINUTE, NOW


def test_a_queue_that_deletes_replaces_the_defaults_and_nothing_else():
    deletes, marks = Stages(delete_after=DAY), Stages(stale_after=DAY)

    assert [deletes.keep(keep) for keep in (KEEP_COMPLETED, KEEP_FAILED)] == [BY_QUEUE, BY_QUEUE]
    for keep in (FOREVER, NOT_AT_ALL, Retention(age=MINUTE)):
        assert deletes.keep(keep) == keep
    assert marks.keep(KEEP_COMPLETED) == KEEP_COMPLETED


def test_no_job_is_deleted_before_it_is_stale():
    assert Stages(None, DAY).deleted_before(NOW) == NOW - DAY
    assert Stages(MINUTE, DAY, NOW - 2 * DAY).deleted_before(NOW) == NOW - 2 * DAY
    assert Stages(MINUTE, DAY, NOW - MINUTE).deleted_before(NOW) == NOW - DAY
    assert Stages(MINUTE).deleted_before(NOW) is None


def test_a_callback_of_a_job_with_a_long_id_has_the_end_of_it():
    id = "x" * (LONGEST_ID - 3) + "end"

    callback = callback_id("deleted", NOW, id)

    assert len(callback) <= LONGEST_ID
    assert callback.endswith("xend")


def test_callbacks_are_tried_for_about_a_day():
    options = stored_options(CALLBACK_OPTIONS)
    assert options.backoff is not None

    longest = sum(options.backoff.after(n, 0) for n in range(1, options.attempts))

    assert DAY * 3 // 4 <= longest <= DAY * 5 // 4
