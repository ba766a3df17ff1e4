import pytest

from ropeway.job.rules import is_repeat


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
