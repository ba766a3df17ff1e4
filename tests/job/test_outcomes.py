import pytest

from ropeway.errors import InvalidOption, InvalidPayload, NoHandler, Unrecoverable
from ropeway.job.options import StoredOptions
from ropeway.job.outcomes import attempts_remain, may_retry


def test_an_error_may_be_retried():
    assert may_retry(ValueError(), None, None)


@pytest.mark.parametrize("error", [Unrecoverable("no"), InvalidPayload("data", "$", "is bad"), NoHandler("x", [])])
def test_some_errors_are_final_whatever_anybody_says(error):
    assert not may_retry(error, None, None)
    assert not may_retry(error, None, lambda error, job: "retry")


@pytest.mark.parametrize(
    ("answer", "expected"), [(None, True), ("retry", True), (True, True), ("fatal", False), (False, False)]
)
def test_a_classifier_decides(answer, expected):
    assert may_retry(ValueError(), None, lambda error, job: answer) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"), [("fatal", "retry", False), ("retry", "fatal", True), (None, "fatal", False)]
)
def test_of_several_classifiers_the_first_that_has_an_answer_decides(first, second, expected):
    assert may_retry(ValueError(), None, lambda error, job: first, None, lambda error, job: second) is expected


def test_a_classifier_sees_the_error_and_the_job():
    seen = []
    error, job = ValueError(), object()

    may_retry(error, job, lambda *given: seen.append(given))

    assert seen == [(error, job)]


@pytest.mark.parametrize("answer", ["maybe", 5, [], "RETRY"])
def test_another_answer_is_refused(answer):
    with pytest.raises(InvalidOption, match="classify"):
        may_retry(ValueError(), None, lambda error, job: answer)


@pytest.mark.parametrize(
    ("attempts", "made", "remain"), [(1, 0, False), (2, 0, True), (2, 1, False), (3, 1, True), (1, 5, False)]
)
def test_attempts_count_the_first_one(attempts, made, remain):
    assert attempts_remain(StoredOptions(attempts=attempts), made) is remain
