"""The options of a job: what each does to what is stored, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ropeway import Backoff, InvalidInput, Keep, Queue, connect
from ropeway.errors import InvalidDuration, InvalidName, InvalidOption
from ropeway.job.options import StoredOptions
from ropeway.job.retention import FOREVER, NOT_AT_ALL, Retention
from ropeway.store.contract import Store
from ropeway.testing.arrange import read

from .fixtures import MakeQueue


async def stored(queue: Queue, **options: Any) -> StoredOptions:
    job = await queue.add("send", **options)
    return (await read(queue.store, job.id)).read_options()


KEPT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"attempts": 1, "backoff": None, "timeout": None}),
    ({"attempts": 5}, {"attempts": 5}),
    ({"attempts": 1_000_000}, {"attempts": 1_000_000}),
    ({"backoff": 2}, {"backoff": Backoff.fixed(2)}),
    ({"backoff": "5 minutes"}, {"backoff": Backoff.fixed(300)}),
    (
        {"backoff": Backoff.exponential(1, max_delay=60, jitter=0.5)},
        {"backoff": Backoff("exponential", 1_000, 60_000, 0.5)},
    ),
    ({"backoff": Backoff.custom("mine")}, {"backoff": Backoff("custom", name="mine")}),
    ({"backoff": None}, {"backoff": None}),
    ({"timeout": 1.5}, {"timeout": 1_500}),
    ({"timeout": timedelta(minutes=1)}, {"timeout": 60_000}),
    ({"timeout": None}, {"timeout": None}),
    ({"remove_on_complete": True}, {"keep_completed": NOT_AT_ALL}),
    ({"remove_on_complete": False}, {"keep_completed": FOREVER}),
    ({"remove_on_complete": 100}, {"keep_completed": Retention(count=100)}),
    ({"remove_on_fail": Keep(age="1h", count=5)}, {"keep_failed": Retention(3_600_000, 5)}),
    ({"max_starts": 3}, {"max_starts": 3}),
    ({"keep_logs": 0}, {"keep_logs": 0}),
    ({"stack_traces": 2}, {"stack_traces": 2}),
    ({"version": 3}, {"version": 3}),
]


async def test_every_option_is_stored_as_it_was_meant(queue: Queue):
    for options, expected in KEPT:
        kept = await stored(queue, **options)
        assert {field: getattr(kept, field) for field in expected} == expected


@pytest.mark.parametrize("delay", [60, 60.0, timedelta(minutes=1), "1 minute", "60s", "PT1M", "in 1 minute"])
async def test_a_delay_counts_from_the_stores_own_now(queue: Queue, store: Store, delay: Any):
    before = await store.clock()
    job = await read(store, (await queue.add("send", delay=delay)).id)
    assert job.state == "delayed"
    assert job.due_at is not None
    assert before + 60_000 <= job.due_at <= await store.clock() + 60_000


async def test_a_delay_may_be_an_instant(queue: Queue, store: Store):
    due = datetime(2200, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    snapshot = await (await queue.add("send", delay=due)).refresh()
    assert (snapshot.state, snapshot.due_at) == ("delayed", due)
    assert snapshot.due_at is not None
    assert snapshot.due_at.tzinfo is UTC


@pytest.mark.parametrize(
    "delay",
    [0, -0.0, timedelta(0), "0 s", datetime(2001, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
)
async def test_a_delay_that_is_over_is_none(queue: Queue, delay: Any):
    assert await (await queue.add("send", delay=delay)).state() == "waiting"


async def test_the_end_of_the_calendar_is_an_instant_like_any_other(queue: Queue):
    snapshot = await (await queue.add("send", delay=datetime.max.replace(tzinfo=UTC))).refresh()
    assert snapshot.due_at is not None
    assert snapshot.due_at.year == 9999


async def test_lower_priorities_and_lifo_go_first(queue: Queue):
    for name, options in {
        "last": {"priority": 2**21},
        "default": {},
        "newest": {"lifo": True},
        "first": {"priority": -(2**21)},
    }.items():
        await queue.add(name, **options)  # type: ignore[arg-type]
    assert [job.name for job in (await queue.find("waiting")).jobs] == ["first", "newest", "default", "last"]


BAD_OPTIONS: list[tuple[dict[str, Any], type[InvalidInput], str]] = [
    ({"atempts": 3}, InvalidOption, "did you mean 'attempts'"),
    ({"dealy": 3}, InvalidOption, "did you mean 'delay'"),
    ({"removeOnComplete": True}, InvalidOption, "did you mean 'remove_on_complete'"),
    ({"jobId": "a"}, InvalidOption, "did you mean 'id'"),
    ({"_defer_by": 3}, InvalidOption, "did you mean 'delay'"),
    ({"at_front": True}, InvalidOption, "did you mean 'lifo'"),
    ({"result_ttl": 3}, InvalidOption, "did you mean 'remove_on_complete'"),
    ({"zzz": 1}, InvalidOption, "there are id, delay, priority"),
    ({"id": ""}, InvalidName, "job id"),
    ({"id": "a b"}, InvalidName, "job id"),
    ({"id": "a/b"}, InvalidName, "job id"),
    ({"id": "é"}, InvalidName, "job id"),
    ({"id": "a\n"}, InvalidName, "job id"),
    ({"id": "x" * 256}, InvalidName, "job id"),
    ({"id": 5}, InvalidName, "job id"),
    ({"delay": float("nan")}, InvalidDuration, "finite"),
    ({"delay": float("inf")}, InvalidDuration, "finite"),
    ({"delay": True}, InvalidDuration, "not a duration"),
    ({"delay": "soon"}, InvalidDuration, "5 minutes"),
    ({"delay": ""}, InvalidDuration, "not a duration"),
    ({"delay": "101 years"}, InvalidDuration, "not a duration"),
    ({"delay": 1e12}, InvalidDuration, "100 years"),
    ({"delay": datetime(2200, 1, 1)}, InvalidDuration, "time zone"),  # noqa: DTZ001 - that is the mistake
    ({"priority": 2**21 + 1}, InvalidOption, "use -2097152 to 2097152"),
    ({"priority": -(2**21) - 1}, InvalidOption, "use -2097152 to 2097152"),
    ({"priority": 1.0}, InvalidOption, "whole number"),
    ({"priority": "1"}, InvalidOption, "whole number"),
    ({"priority": True}, InvalidOption, "whole number"),
    ({"priority": None}, InvalidOption, "whole number"),
    ({"lifo": 1}, InvalidOption, "True or False"),
    ({"lifo": None}, InvalidOption, "True or False"),
    ({"attempts": 0}, InvalidOption, "use 1 to"),
    ({"attempts": -1}, InvalidOption, "use 1 to"),
    ({"attempts": 10**7}, InvalidOption, "use 1 to"),
    ({"attempts": 2.5}, InvalidOption, "whole number"),
    ({"backoff": lambda *_: 1}, InvalidOption, "Backoff.custom"),
    ({"backoff": "exponential"}, InvalidOption, "use a duration, or Backoff.exponential"),
    ({"backoff": [1]}, InvalidOption, "use a duration, or Backoff.exponential"),
    ({"timeout": 0}, InvalidOption, "leave it out"),
    ({"timeout": -1}, InvalidDuration, "option 'timeout': -1 is negative"),
    ({"delay": -5}, InvalidDuration, "option 'delay': -5 is negative"),
    ({"delay": -0.001}, InvalidDuration, "option 'delay': -0.001 is negative"),
    ({"delay": timedelta(-1)}, InvalidDuration, "is negative"),
    ({"delay": "-5 s"}, InvalidDuration, "not a duration"),
    ({"delay": "1 h 1 h"}, InvalidDuration, "not a duration"),
    ({"delay": "١ h"}, InvalidDuration, "not a duration"),
    ({"backoff": -1}, InvalidDuration, "option 'backoff': -1 is negative"),
    ({"backoff": "-1 s"}, InvalidOption, "use a duration, or Backoff.exponential"),
    ({"remove_on_complete": Keep(age=-1)}, InvalidDuration, "option 'remove_on_complete': -1 is negative"),
    ({"remove_on_fail": Keep(age=timedelta(-1))}, InvalidDuration, "is negative"),
    ({"timeout": float("nan")}, InvalidDuration, "finite"),
    ({"timeout": "never"}, InvalidDuration, "not a duration"),
    ({"remove_on_complete": -1}, InvalidOption, "Keep"),
    ({"remove_on_complete": "yes"}, InvalidOption, "Keep"),
    ({"remove_on_complete": None}, InvalidOption, "Keep"),
    ({"remove_on_complete": Keep(count=-1)}, InvalidOption, "use 0 to"),
    ({"remove_on_fail": Keep(age="x")}, InvalidDuration, "not a duration"),
    ({"max_starts": 0}, InvalidOption, "use 1 to"),
    ({"keep_logs": -1}, InvalidOption, "use 0 to"),
    ({"keep_logs": 100_001}, InvalidOption, "use 0 to"),
    ({"stack_traces": "10"}, InvalidOption, "whole number"),
]


async def test_every_bad_option_is_refused_with_a_remedy_and_nothing_is_stored(queue: Queue):
    for options, kind, remedy in BAD_OPTIONS:
        with pytest.raises(kind) as refused:
            await queue.add("send", **options)
        assert remedy in str(refused.value), options
        assert isinstance(refused.value, ValueError)
    assert not any((await queue.counts()).values())
    assert (await queue.store.events(queue.name)).entries == []


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Backoff.fixed(float("nan")),
        lambda: Backoff.fixed("x"),
        lambda: Backoff.fixed(-1),
        lambda: Backoff.linear(timedelta(-1)),
        lambda: Backoff.exponential(1, max_delay=-1),
        lambda: Backoff("sometimes"),  # type: ignore[arg-type]
        lambda: Backoff("fixed", -1),
        lambda: Backoff.custom("\ud800"),
        lambda: Backoff.exponential(1, jitter=2),
        lambda: Backoff.linear(1, jitter=float("nan")),
        lambda: Backoff.custom(""),
    ],
)
def test_a_backoff_is_checked_where_it_is_made(bad: Any):
    with pytest.raises(InvalidInput):
        bad()


async def test_a_queues_defaults_hold_for_its_jobs_unless_a_job_says_otherwise(make_queue: MakeQueue):
    queue = make_queue(attempts=3, backoff=2, priority=-1, remove_on_complete=True)
    assert await stored(queue) == StoredOptions(3, Backoff.fixed(2), keep_completed=NOT_AT_ALL)
    assert (await stored(queue, attempts=1, backoff=None)).attempts == 1
    [many] = await queue.add_many([("send", 1, {"timeout": 5})])
    kept = (await read(queue.store, many.id)).read_options()
    assert (kept.attempts, kept.timeout) == (3, 5_000)
    assert (await many.refresh()).priority == -1


@pytest.mark.parametrize("defaults", [{"id": "a"}, {"delay": 5}])
def test_what_is_for_a_single_job_cannot_be_a_default(defaults: dict[str, Any]):
    with pytest.raises(InvalidOption, match="single job"):
        Queue("letters", "memory://", **defaults)


def test_bad_defaults_are_refused_when_the_queue_is_made():
    with pytest.raises(InvalidOption, match="did you mean 'attempts'"):
        Queue("letters", "memory://", atempts=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="use 1 to"):
        Queue("letters", "memory://", attempts=0)


@pytest.mark.parametrize(
    "name", ["", "..", ".a", "-a", "a/b", "a:b", "{x}", "a b", "a\n", "\x00", "é", "🚡", "q*", "a" * 129, None, 5]
)
def test_a_queue_name_that_could_mean_something_to_a_store_is_refused(name: Any):
    with pytest.raises(InvalidName, match="queue name"):
        Queue(name, "memory://")


@pytest.mark.parametrize("name", ["a", "0", "a.b_c-D", "a" * 128])
def test_a_queue_name_of_letters_digits_and_a_few_signs_is_fine(name: str):
    assert Queue(name, "memory://").name == name


@pytest.mark.parametrize("size_limit", [1, 0, -1, 16 * 1024 * 1024 + 1, 1.5, "1000", True, None])
def test_a_size_limit_beyond_reason_is_refused(size_limit: Any):
    with pytest.raises(InvalidOption, match="size_limit"):
        Queue("letters", "memory://", size_limit=size_limit)


def test_a_url_and_a_store_cannot_both_be_given():
    with pytest.raises(InvalidOption, match="one of them"):
        Queue("letters", "memory://", store=connect("memory://"))


@pytest.mark.parametrize("url", ["nonsense", "mongodb://here", "://", 5])
def test_a_url_of_no_known_store_says_which_are_known(url: Any):
    with pytest.raises(InvalidOption, match="sqlite://"):
        Queue("letters", url)


def test_text_is_no_store():
    with pytest.raises(InvalidOption, match=r"connect\(url\)"):
        Queue("letters", store="memory://")  # type: ignore[arg-type]
