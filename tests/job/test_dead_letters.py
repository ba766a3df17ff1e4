"""Dead letters: copies of jobs that failed for good."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ropeway.errors import InvalidOption
from ropeway.job.dead_letters import check_dead_letter, dead_letter_id, dead_letter_of
from ropeway.job.extras import Extras, Origin
from ropeway.job.names import LONGEST_ID
from ropeway.job.record import JobRecord
from ropeway.testing.factories import NOW, QUEUE

FAILED = JobRecord(
    QUEUE, "a", "send", '{"to":"you"}', '{"attempts":3}', "failed", 5, 1, NOW, attempts_made=3, reason="no luck"
)


def test_a_letter_has_the_job_and_where_it_comes_from():
    letter = dead_letter_of(FAILED, "graves", NOW + 5)

    assert (letter.queue, letter.name, letter.data, letter.options) == (
        "graves",
        "send",
        '{"to":"you"}',
        '{"attempts":3}',
    )
    assert letter.extras == Extras(origin=Origin(QUEUE, "a", "no luck", 3, NOW + 5, priority=5))


def test_a_letter_has_no_dead_letter_and_no_key():
    job = replace(FAILED, extras=Extras(dead_letter="graves", start_within=5))

    assert dead_letter_of(job, "graves", NOW).extras == Extras(origin=Origin(QUEUE, "a", "no luck", 3, NOW, priority=5))


def test_a_job_that_fails_again_has_another_letter():
    assert dead_letter_id(QUEUE, "a", NOW) != dead_letter_id(QUEUE, "a", NOW + 1)
    assert dead_letter_of(FAILED, "graves", NOW).id == dead_letter_of(FAILED, "graves", NOW).id


def test_its_own_queue_is_refused():
    with pytest.raises(InvalidOption, match="own queue"):
        check_dead_letter(QUEUE, QUEUE, "a")


def test_an_id_that_leaves_no_room_for_that_of_the_letter_is_refused():
    room = LONGEST_ID - len(dead_letter_id(QUEUE, "", 10**14))
    check_dead_letter("graves", QUEUE, "x" * room)

    with pytest.raises(InvalidOption, match=r"too long .* by 1 characters"):
        check_dead_letter("graves", QUEUE, "x" * (room + 1))
