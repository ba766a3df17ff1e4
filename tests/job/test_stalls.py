from itertools import product

import pytest

from ropeway.job.stalls import GIVEN_UP, judge_stall, process_of, stall_reason


@pytest.mark.parametrize(
    ("stalls", "most", "given_up"), [(0, 0, True), (0, 1, False), (1, 1, True), (1, 2, False), (2, 2, True)]
)
def test_a_job_may_stall_so_often(stalls, most, given_up):
    verdict = _judged(stalled_count=stalls, max_stalled_count=most)

    assert verdict == ("too often" if given_up else "waits")


def test_a_queue_may_give_up_at_once():
    assert _judged(max_stalled_count=9, on_stalled="fail") == "at once"


@pytest.mark.parametrize(("made", "attempts", "counts"), list(product([0, 1], [1, 2, 3], [False, True])))
def test_a_stall_may_use_the_last_attempt(made, attempts, counts):
    verdict = _judged(attempts_made=made, attempts=attempts, counts_as_attempt=counts, max_stalled_count=9)

    assert verdict == ("last attempt" if counts and made + 1 >= attempts else "waits")


@pytest.mark.parametrize("rules", [{"max_stalled_count": 1}, {"max_stalled_count": 9, "counts_as_attempt": True}])
def test_a_job_that_stalled_before_is_spared_unless_it_ran_alone(rules):
    assert _judged(stalled_count=1, is_alone=False, **rules) == "spared"
    assert _judged(stalled_count=1, is_alone=True, **rules) in GIVEN_UP


def test_a_job_that_may_not_stall_at_all_is_not_spared():
    assert _judged(is_alone=False, max_stalled_count=0) == "too often"
    assert _judged(stalled_count=1, is_alone=False, on_stalled="fail") == "at once"


def test_the_reason_names_the_worker_and_its_last_renewal():
    assert stall_reason("too often", "w1", 1_700_000_000_123) == (
        "stalled more than allowable limit: worker w1 last renewed its lock at 2023-11-14T22:13:20.123Z"
    )
    assert stall_reason("waits", "w1", 1_700_000_000_123).startswith("stalled: worker w1")
    assert "unknown" in stall_reason("waits", None, None)


def test_the_reason_says_how_the_process_ended():
    ends = {"host:7": "was killed by SIGKILL"}

    assert stall_reason("too often", "host:7:abc", 1_700_000_000_123, ends) == (
        "stalled more than allowable limit: worker host:7:abc was killed by SIGKILL "
        "and last renewed its lock at 2023-11-14T22:13:20.123Z"
    )
    assert "SIGKILL" not in stall_reason("too often", "host:8:abc", None, ends)


def test_a_worker_without_a_process_has_none():
    assert (process_of("host:7:abc"), process_of("alone")) == ("host:7", "")


def _judged(**given):
    defaults = {
        "stalled_count": 0,
        "attempts_made": 0,
        "attempts": 1,
        "is_alone": True,
        "max_stalled_count": 1,
        "on_stalled": "requeue",
        "counts_as_attempt": False,
    }
    return judge_stall(**{**defaults, **given})
