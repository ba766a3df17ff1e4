from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidName
from ropeway.job.names import LONGEST_JOB_NAME, job_id, job_name, queue_name

NEVER = [None, 0, 5, True, b"a", [], object()]


@pytest.mark.parametrize("name", ["a", "0", "emails", "a.b-c_d", "A1", "x" * 128, "9.9"])
def test_a_queue_name_is_plain_text(name):
    assert queue_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "-a", "_a", ".a", "a/b", "/", "a:b", "{x}", "a{b}", "a b", " a", "a ", "a\n", "\na", "a\x00"),
        *("é", "🚡", "\u202ea", "x" * 129, "x" * 300, "%00", "queue*", "[a-z]", "a\\b", "a'b", 'a"b', "a;b", "a\r"),
        *NEVER,
    ],
)
def test_any_other_queue_name_is_refused(name):
    with pytest.raises(InvalidName, match="queue name") as caught:
        queue_name(name)

    assert caught.value.given is name
    assert "letters, digits" in caught.value.remedy


@pytest.mark.parametrize("id", ["a", "0", "007", "-1", "__proto__", "order:42", "..", "x" * 255, "1e3"])
def test_an_id_is_plain_text_and_stays_as_it_is(id):
    assert job_id(id) == id


@pytest.mark.parametrize("id", ["", " ", "a b", "a/b", "{a}", "é", "a\n", "a\x00", "x" * 256, "a*", *NEVER])
def test_any_other_id_is_refused(id):
    with pytest.raises(InvalidName, match="job id"):
        job_id(id)


@pytest.mark.parametrize("name", ["send", "Send e-mail!", "os.system", "é", "🚡", "a:b/c{d}*", "x" * LONGEST_JOB_NAME])
def test_a_job_name_is_any_text_in_one_line(name):
    assert job_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "a\n", "a\x00b", "\x1b[31m", "a\x7f", "\x85", "\u2028", "\u2029", "\ud800", "x" * (LONGEST_JOB_NAME + 1)),
        *NEVER,
    ],
)
def test_any_other_job_name_is_refused(name):
    with pytest.raises(InvalidName, match="job name"):
        job_name(name)


@given(st.text(st.characters(), max_size=300))
def test_a_name_that_is_accepted_can_be_stored_and_shown(name):
    for read in (queue_name, job_id, job_name):
        try:
            assert read(name) == name
        except InvalidName:
            continue
        assert name.encode()
        assert len(name.splitlines()) == 1
        assert "\x00" not in name


def test_a_huge_name_makes_no_huge_error():
    with pytest.raises(InvalidName) as caught:
        queue_name("x" * 10_000_000)

    assert len(str(caught.value)) < 1_000


def test_a_subclass_of_text_is_kept_as_text():
    class Text(str):
        __slots__ = ()

    class Colour(StrEnum):
        RED = "red"

    for check in (queue_name, job_id, job_name):
        assert [type(check(given)) for given in (Text("a"), Colour.RED)] == [str, str]
        assert check(Colour.RED) == "red"
