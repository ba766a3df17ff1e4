"""The life of a job, spelled out a second time: a change of the table must be meant."""

from itertools import product

import pytest

from ropeway.job.events import EVENT_NAMES, NOTICES
from ropeway.job.moves import MOVES, is_legal
from ropeway.job.outcomes import SettlingMove
from ropeway.job.rules import METRICS_OF
from ropeway.job.states import ALIASES, FINAL, OPEN, STATES, state_named

NOTHING = (None,)
WAITING, CHILDREN, DELAYED, ACTIVE = "waiting", "waiting-children", "delayed", "active"
COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"

LIFE = {
    "add": (NOTHING, (WAITING, DELAYED, CHILDREN)),
    "promote": ((DELAYED,), (WAITING,)),
    "release": ((CHILDREN,), (WAITING, DELAYED)),
    "claim": ((WAITING,), (ACTIVE,)),
    "complete": ((ACTIVE,), (COMPLETED,)),
    "retry": ((ACTIVE,), (DELAYED, WAITING)),
    "fail": ((ACTIVE,), (FAILED,)),
    "postpone": ((ACTIVE,), (DELAYED, WAITING, CHILDREN)),
    "hand back": ((ACTIVE,), (WAITING,)),
    "stall": ((ACTIVE,), (WAITING,)),
    "give up": ((ACTIVE,), (FAILED,)),
    "fail by child": ((CHILDREN,), (FAILED,)),
    "expire": ((WAITING, CHILDREN, DELAYED), (FAILED,)),
    "cancel": ((WAITING, CHILDREN, DELAYED, ACTIVE), (CANCELLED,)),
    "retry by hand": ((FAILED, COMPLETED, CANCELLED), (WAITING, CHILDREN)),
    "remove": ((WAITING, CHILDREN, DELAYED, ACTIVE, COMPLETED, FAILED, CANCELLED), NOTHING),
}


def test_there_are_seven_states_and_three_are_final():
    assert set(STATES) == {WAITING, CHILDREN, DELAYED, ACTIVE, COMPLETED, FAILED, CANCELLED}
    assert set(FINAL) == {COMPLETED, FAILED, CANCELLED}
    assert set(OPEN) == set(STATES) - set(FINAL)


def test_the_table_has_these_moves():
    assert list(MOVES) == list(LIFE)
    assert all(name == move.name for name, move in MOVES.items())


@pytest.mark.parametrize("move", [*LIFE, *NOTICES, "", "nonsense"])
def test_a_step_is_legal_if_the_life_of_a_job_has_it(move):
    sources, targets = LIFE.get(move, ((), ()))
    for source, target in product((None, *STATES), repeat=2):
        assert is_legal(move, source, target) == (source in sources and target in targets)


def test_a_worker_s_moves_are_fenced_and_no_others():
    fenced = {name for name, move in MOVES.items() if move.fenced}

    assert fenced == {"complete", "retry", "fail", "postpone", "hand back"}
    assert fenced == set(SettlingMove.__args__)  # type: ignore[attr-defined]


def test_a_finished_job_only_waits_again_or_goes():
    for name, (sources, _) in LIFE.items():
        if name not in ("retry by hand", "remove"):
            assert not set(sources) & set(FINAL)


def test_a_job_that_will_be_retried_is_never_failed():
    assert FAILED not in MOVES["retry"].targets
    assert MOVES["retry"].events("delayed") == ("retrying", "delayed")


@pytest.mark.parametrize(
    ("move", "to", "events"),
    [
        ("add", WAITING, ("added", "waiting")),
        ("claim", ACTIVE, ("active",)),
        ("complete", COMPLETED, ("completed",)),
        ("stall", WAITING, ("stalled", "waiting")),
        ("give up", FAILED, ("stalled", "failed")),
        ("cancel", CANCELLED, ("cancelled",)),
        ("remove", None, ("removed",)),
    ],
)
def test_a_move_announces_the_state_it_enters(move, to, events):
    assert MOVES[move].events(to) == events


def test_every_event_of_a_move_has_a_name_that_is_known():
    for move in MOVES.values():
        for target in move.targets or (None,):
            assert set(move.events(target)) <= set(EVENT_NAMES)
    assert len(EVENT_NAMES) == len(set(EVENT_NAMES))


def test_no_notice_has_the_name_of_a_move():
    assert not set(NOTICES) & set(MOVES)


def test_what_is_counted_is_a_move():
    assert set(METRICS_OF) <= set(MOVES)


@pytest.mark.parametrize(("word", "state"), [*((state, state) for state in STATES), *ALIASES.items()])
def test_a_state_has_the_words_of_other_worlds(word, state):
    assert state_named(word) == state


@pytest.mark.parametrize("word", ["", "stalled", "WAITING", None, [], 5])
def test_another_word_is_no_state(word):
    with pytest.raises(ValueError, match="the states are waiting"):
        state_named(word)
