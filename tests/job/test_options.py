import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ropeway.errors import InvalidDuration, InvalidInput, InvalidName, InvalidOption
from ropeway.job.backoff import Backoff
from ropeway.job.dedupe import DedupeRule
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.options import JobOptions, Placement, StoredOptions, read_options, stored_options
from ropeway.job.retention import FOREVER, KEEP_COMPLETED, KEEP_FAILED, NOT_AT_ALL, Keep, Retention

NO_NUMBER: list[object] = [None, True, "3", 1.5, [], math.nan]


def stored(**options):
    return stored_options(read_options(options)[1])


def placed(**options):
    return read_options(options)[0]


def test_no_options_are_the_defaults():
    assert read_options({}) == (Placement(), "{}")
    assert stored() == StoredOptions()


def test_the_defaults_are_those_of_the_design():
    options = StoredOptions()

    assert (options.attempts, options.backoff, options.timeout) == (1, None, None)
    # Which of the defaults holds is for the worker to say.
    assert (options.keep_completed, options.keep_failed) == (None, None)
    assert Retention(age=24 * 3_600_000, count=10_000) == KEEP_COMPLETED
    assert Retention(age=7 * 24 * 3_600_000) == KEEP_FAILED
    assert (options.keep_logs, options.stack_traces, options.max_starts) == (1_000, 10, None)


def test_every_option_is_read():
    options = {
        "id": "a",
        "delay": 5,
        "priority": -3,
        "lifo": True,
        "attempts": 4,
        "backoff": Backoff.exponential(1, jitter=0.5),
        "timeout": "1m",
        "remove_on_complete": True,
        "remove_on_fail": Keep(age="1h", count=5),
        "tags": ["urgent", "tenant:7"],
        "max_starts": 9,
        "keep_logs": 0,
        "stack_traces": 3,
        "expires": "1h",
        "dead_letter": "graves",
        "dedupe": "user:7",
        "webhook": "https://example.com/",
        "version": 3,
    }

    assert options.keys() == JobOptions.__annotations__.keys()
    placement, text = read_options(options)
    assert placement == Placement(
        "a",
        5_000,
        None,
        -3,
        True,
        ("urgent", "tenant:7"),
        3_600_000,
        None,
        "graves",
        DedupeRule("user:7"),
        "https://example.com/",
    )
    assert stored_options(text) == StoredOptions(
        4,
        Backoff.exponential(1, jitter=0.5),
        60_000,
        NOT_AT_ALL,
        Retention(3_600_000, 5),
        9,
        0,
        3,
        delay=5_000,
        version=3,
    )


def test_where_a_job_stands_is_not_stored_with_it():
    assert read_options({"id": "a", "priority": 1, "lifo": True})[1] == "{}"


def test_equal_options_are_one_value():
    assert stored(attempts=3) is stored(attempts=3)


@pytest.mark.parametrize(
    ("option", "near"), [("attempt", "attempts"), ("prio", "priority"), ("removeOnComplete", "remove_on_complete")]
)
def test_a_misspelt_option_is_told_what_it_may_mean(option, near):
    with pytest.raises(InvalidOption, match=f"did you mean '{near}'") as caught:
        read_options({option: 1})

    assert caught.value.option == option


def test_an_option_that_looks_like_data_is_sent_to_the_data():
    with pytest.raises(InvalidOption, match="goes into data") as caught:
        read_options({"to": "you@example.com"}, beside_data=True)

    assert "attempts, backoff" in str(caught.value)


def test_where_no_data_is_given_none_is_spoken_of():
    with pytest.raises(InvalidOption) as caught:
        read_options({"to": "you@example.com"})

    assert "data" not in str(caught.value)


class TestDelay:
    @pytest.mark.parametrize("delay", [None, 0, timedelta(0)])
    def test_none_means_now(self, delay):
        assert placed(delay=delay) == Placement()

    def test_it_may_be_an_instant_of_any_zone(self):
        moment = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))

        assert placed(delay=moment).due_at == int(moment.timestamp() * 1000)

    @pytest.mark.parametrize(
        ("year", "due_at"), [(9999, 253_370_764_800_000), (1, 0), (1969, 0), (2039, 2_177_452_800_000)]
    )
    def test_the_ends_of_time_are_instants_too(self, year, due_at):
        assert placed(delay=datetime(year, 1, 1, tzinfo=UTC)).due_at == due_at

    def test_the_end_of_the_last_day_is_the_last_instant(self):
        moment = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

        assert placed(delay=moment).due_at == LAST_INSTANT

    def test_an_instant_without_a_zone_is_refused(self):
        with pytest.raises(InvalidDuration, match="no time zone"):
            read_options({"delay": datetime(2030, 1, 1)})  # noqa: DTZ001 - that is what is refused

    @pytest.mark.parametrize(
        "delay",
        [
            *(math.nan, math.inf, 2**53, pytest.param(10**400, id="10**400"), "soon", True, [], "101 years"),
            *(-5, timedelta(days=-1)),
        ],
    )
    def test_any_other_is_refused(self, delay):
        with pytest.raises(InvalidDuration):
            read_options({"delay": delay})


class TestNumbers:
    @pytest.mark.parametrize(
        ("option", "least", "most"),
        [
            ("priority", -(2**21), 2**21),
            ("attempts", 1, 1_000_000),
            ("max_starts", 1, 1_000_000),
            ("keep_logs", 0, 100_000),
            ("stack_traces", 0, 1_000),
        ],
    )
    def test_a_number_has_its_range(self, option, least, most):
        for number in (least, most):
            assert read_options({option: number})
        for number in (least - 1, most + 1, 10**400):
            with pytest.raises(InvalidOption, match=f"use {least} to {most}"):
                read_options({option: number})

    @pytest.mark.parametrize("option", ["priority", "attempts", "max_starts", "keep_logs", "stack_traces"])
    @pytest.mark.parametrize("given", NO_NUMBER)
    def test_what_is_no_whole_number_is_refused(self, option, given):
        with pytest.raises(InvalidOption, match="use a whole number") as caught:
            read_options({option: given})

        assert caught.value.option == option


class TestBackoff:
    def test_a_duration_is_a_fixed_backoff(self):
        assert stored(backoff="5s").backoff == Backoff.fixed(5)

    def test_none_is_none(self):
        assert stored(backoff=None).backoff is None

    def test_a_function_is_sent_to_the_worker(self):
        with pytest.raises(InvalidOption, match=r"Backoff\.custom"):
            read_options({"backoff": lambda attempt, error, job: 5})

    @pytest.mark.parametrize("backoff", ["soon", "exponential", [], {"type": "fixed"}, True])
    def test_any_other_is_refused(self, backoff):
        with pytest.raises(InvalidInput, match=r"use a duration, or Backoff\.exponential"):
            read_options({"backoff": backoff})


class TestTimeout:
    def test_none_is_none(self):
        assert stored(timeout=None).timeout is None

    @pytest.mark.parametrize("timeout", [0, 0.0001, timedelta(0)])
    def test_no_time_at_all_is_refused(self, timeout):
        with pytest.raises(InvalidOption, match="leave it out"):
            read_options({"timeout": timeout})


class TestRetention:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (True, NOT_AT_ALL),
            (False, FOREVER),
            (0, Retention(count=0)),
            (1, Retention(count=1)),
            (100, Retention(count=100)),
            (Keep(age=60), Retention(age=60_000)),
            (Keep(count=3), Retention(count=3)),
            (Keep(), FOREVER),
            (Keep(age="1d", count=3), Retention(86_400_000, 3)),
        ],
    )
    def test_it_is_read(self, given, expected):
        options = stored(remove_on_complete=given, remove_on_fail=given)

        assert options.keep_completed == options.keep_failed == expected

    @pytest.mark.parametrize("given", [-1, 1.5, "1h", None, [], timedelta(hours=1), {"age": 5}])
    def test_any_other_is_refused_with_what_is_allowed(self, given):
        with pytest.raises(InvalidOption, match=r"use True, False, a count, or Keep"):
            read_options({"remove_on_complete": given})

    @pytest.mark.parametrize("given", [Keep(count=-1), Keep(count=True), Keep(count=1.5)])  # type: ignore[arg-type]
    def test_a_count_is_a_number(self, given):
        with pytest.raises(InvalidOption):
            read_options({"remove_on_fail": given})

    @pytest.mark.parametrize("given", [2**63, Keep(count=2**63)])
    def test_a_count_is_one_that_every_store_can_hold(self, given):
        with pytest.raises(InvalidOption, match=f"use 0 to {2**53}"):
            read_options({"remove_on_complete": given})

    def test_an_age_is_a_duration(self):
        with pytest.raises(InvalidDuration):
            read_options({"remove_on_fail": Keep(age="soon")})

    def test_it_says_what_goes_at_once_and_until_when_the_rest_stays(self):
        assert NOT_AT_ALL.removes_at_once
        assert Retention(age=0).removes_at_once
        assert not FOREVER.removes_at_once
        assert not Retention(age=1, count=1).removes_at_once
        assert Retention(age=5).until(10) == 15
        assert FOREVER.until(10) is None
        assert Retention(count=5).until(10) == LAST_INSTANT
        assert Retention(age=LAST_INSTANT).until(10) == LAST_INSTANT


class TestOthers:
    @pytest.mark.parametrize("given", [0, 1, None, "yes"])
    def test_lifo_is_yes_or_no(self, given):
        with pytest.raises(InvalidOption, match="use True or False"):
            read_options({"lifo": given})

    def test_no_id_is_no_id(self):
        assert placed(id=None).id is None

    @pytest.mark.parametrize("id", [0, "", "a b", "x" * 256])
    def test_an_id_is_plain_text(self, id):
        with pytest.raises(InvalidName):
            read_options({"id": id})


@pytest.mark.parametrize(
    "options", [{"delay": "5 parsecs"}, {"timeout": "soon"}, {"remove_on_complete": Keep(age="a while")}]
)
def test_a_bad_duration_names_its_option(options):
    [option] = options
    with pytest.raises(InvalidDuration, match=f"option '{option}': .* is not a duration"):
        read_options(options)


def test_a_subclass_of_a_number_is_kept_as_a_number():
    class Number(int):
        pass

    place, stored = read_options({"priority": Number(3), "attempts": Number(4)})

    assert (type(place.priority), place.priority, stored) == (int, 3, '{"attempts":4}')
