from itertools import product

import pytest

from ropeway.job.rules import is_given_up, is_repeat, stall_reason


@pytest.mark.parametrize(
    ("move", "states"),
    [
        ("complete", {"completed"}),
        ("fail", {"failed"}),
        ("retry", {"delayed", "waiting"}),
        ("postpone", {"delayed", "waiting", "waiting-children"}),
        ("hand back", {"waiting"}),
    ],
)
def test_a_repeat_has_the_token_and_finds_what_it_did(move, states):
    for state in ("waiting", "waiting-children", "delayed", "active", "completed", "failed", "cancelled"):
        assert is_repeat(move, state, same_token=True) is (state in states)
        assert not is_repeat(move, state, same_token=False)


@pytest.mark.parametrize(
    ("stalls", "most", "given_up"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True)]
)
def test_a_job_may_stall_so_often(stalls, most, given_up):
    assert _given_up(stalled_count=stalls, max_stalled_count=most) is given_up


def test_a_queue_may_give_up_at_once():
    assert _given_up(stalled_count=1, max_stalled_count=9, on_stalled="fail")


@pytest.mark.parametrize(("made", "attempts", "counts"), list(product([1, 2], [1, 2, 3], [False, True])))
def test_a_stall_may_use_the_last_attempt(made, attempts, counts):
    given_up = _given_up(attempts_made=made, attempts=attempts, counts_as_attempt=counts, max_stalled_count=9)

    assert given_up is (counts and made >= attempts)


def test_the_reason_names_the_worker_and_its_last_renewal():
    assert stall_reason("w1", 1_700_000_000_123, given_up=True) == (
        "stalled more than allowable limit: worker w1 last renewed its lock at 2023-11-14T22:13:20.123Z"
    )
    assert stall_reason("w1", 1_700_000_000_123, given_up=False).startswith("stalled: worker w1")
    assert "unknown" in stall_reason(None, None, given_up=False)


def _given_up(**given):
    defaults = {
        "stalled_count": 1,
        "attempts_made": 0,
        "attempts": 1,
        "max_stalled_count": 1,
        "on_stalled": "requeue",
        "counts_as_attempt": False,
    }
    return is_given_up(**{**defaults, **given})
