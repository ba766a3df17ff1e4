import pytest

from ropeway.job.failure import REASON_LIMIT, TRACE_LIMIT, Failure, failure_of


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Mute(Exception):
    def __str__(self):
        raise SystemExit


class Endless(Exception):
    def __str__(self):
        return str(self)


class Boring(Exception):
    def __str__(self):
        return 5  # noqa: PLE0307 - that is what is wrong with it


class Evasive(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)


class Trapped(Exception):
    @property
    def failure(self):
        raise ValueError("not even this")


def throw(error):
    raise error


def raised(error):
    try:
        throw(error)
    except BaseException as caught:  # noqa: BLE001 - any of them
        return caught


def test_the_reason_names_the_kind_and_the_text():
    failure = failure_of(raised(ValueError("no luck")))

    assert failure.reason == "ValueError: no luck"
    assert failure.trace.endswith("ValueError: no luck\n")
    assert "in throw" in failure.trace


def test_an_error_without_text_is_named_by_its_kind():
    assert failure_of(ValueError()).reason == "ValueError"


@pytest.mark.parametrize("kind", [Silent, Mute, Endless, Boring, Evasive, Trapped])
def test_an_error_that_cannot_show_itself_is_named_by_its_kind(kind):
    failure = failure_of(raised(kind()))

    assert failure.reason.startswith(kind.__qualname__)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()])
def test_every_way_out_of_a_handler_has_a_reason(error):
    assert failure_of(raised(error)).reason.startswith(type(error).__name__)


def test_causes_in_a_circle_end():
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first

    trace = failure_of(raised(first)).trace

    assert "first" in trace
    assert "second" in trace


def test_a_cause_that_cannot_show_itself_costs_nothing():
    error = ValueError("outside")
    error.__cause__ = Silent()

    failure = failure_of(raised(error))

    assert failure.reason == "ValueError: outside"
    assert failure.trace


def test_a_long_chain_of_causes_is_cut():
    error: Exception = ValueError("0")
    for n in range(2_000):
        outer = ValueError(str(n))
        outer.__cause__ = error
        error = outer

    failure = failure_of(raised(error))

    assert failure.reason == "ValueError: 1999"
    assert len(failure.trace.encode()) <= TRACE_LIMIT


def test_endless_recursion_leaves_a_short_trace():
    def again():
        return again()

    try:
        again()
    except RecursionError as error:
        failure = failure_of(error)

    assert failure.reason.startswith("RecursionError")
    assert 0 < len(failure.trace.encode()) <= TRACE_LIMIT


def test_a_group_shows_what_is_in_it():
    group = ExceptionGroup("both", [ValueError("one"), KeyError("two")])

    trace = failure_of(raised(group)).trace

    assert "one" in trace
    assert "two" in trace


@pytest.mark.parametrize("letter", ["x", "é", "🚡"])
def test_a_huge_message_is_cut_and_keeps_its_kind(letter):
    failure = failure_of(raised(ValueError(letter * 10_000_000)))

    assert len(failure.reason.encode()) <= REASON_LIMIT
    assert len(failure.trace.encode()) <= TRACE_LIMIT
    assert failure.reason.startswith("ValueError: ")


@pytest.mark.parametrize("text", ["a\x00b", "half \ud800 a pair", "\udcff"])
def test_text_that_no_store_can_keep_is_escaped(text):
    failure = failure_of(raised(ValueError(text)))

    for kept in (failure.reason, failure.trace):
        assert "\x00" not in kept
        assert kept.encode().decode() == kept


def test_an_error_that_tells_its_failure_is_believed():
    error = ValueError("here")
    error.failure = Failure("there", "its trace")  # type: ignore[attr-defined]

    assert failure_of(error) == Failure("there", "its trace")


def test_an_attribute_that_only_has_the_name_is_not():
    error = ValueError("here")
    error.failure = "something else"  # type: ignore[attr-defined]

    assert failure_of(error).reason == "ValueError: here"
