import pytest

from ropeway.job.events import Entry, Event, expand, expand_backwards, split_id, trim_entry


def names(entry):
    return [event.name for event in expand("q", "7", entry)]


def test_an_entry_of_many_jobs_is_an_event_for_each():
    entry = Entry("complete", 5, "completed", [("a", {"result": 1}), ("b", None)])

    assert list(expand("q", "7", entry)) == [
        Event("7/0", "q", "completed", "a", 5, {"result": 1}),
        Event("7/1", "q", "completed", "b", 5, {}),
    ]


def test_a_move_may_be_several_events():
    entry = Entry("add", 5, "delayed", [("a", {"name": "send"}), ("b", {"name": "print"})])

    assert [(event.id, event.name, event.job_id) for event in expand("q", "7", entry)] == [
        ("7/0", "added", "a"),
        ("7/1", "delayed", "a"),
        ("7/2", "added", "b"),
        ("7/3", "delayed", "b"),
    ]


def test_what_is_common_is_in_every_event_and_what_is_particular_wins():
    entry = Entry("claim", 5, "active", [("a", None), ("b", {"worker": "w2"})], {"worker": "w1"})

    assert [event.data for event in expand("q", "7", entry)] == [{"worker": "w1"}, {"worker": "w2"}]


def test_what_concerns_the_queue_has_no_job():
    [event] = expand("q", "7", Entry("paused", 5, detail={"name": "send"}))

    assert event == Event("7/0", "q", "paused", None, 5, {"name": "send"})


def test_a_notice_has_its_own_name():
    assert names(Entry("lock-lost", 5, None, [("a", {"move": "complete"})])) == ["lock-lost"]


def test_exhausted_attempts_are_an_event_beside_the_failure():
    assert names(Entry("fail", 5, "failed", [("a", {"exhausted": True}), ("b", {})])) == [
        "failed",
        "retries-exhausted",
        "failed",
    ]


def test_a_removed_job_enters_no_state():
    assert names(Entry("remove", 5, None, [("a", {"prev": "waiting"})])) == ["removed"]


def test_ids_are_the_same_each_time():
    entry = Entry("give up", 5, "failed", [("a", None), ("b", None)])

    assert list(expand("q", "7", entry)) == list(expand("q", "7", entry))


@pytest.mark.parametrize("entry_id", ["7", "1700000000000-0", "79522e50-2"])
def test_the_id_of_an_event_leads_back_to_its_entry(entry_id):
    entry = Entry("add", 5, "waiting", [("a", None), ("b", None)])

    assert [split_id(event.id) for event in expand("q", entry_id, entry)] == [(entry_id, n) for n in range(4)]


def test_the_id_of_an_entry_means_all_of_it():
    entry_id, number = split_id("1700000000000-0")

    assert entry_id == "1700000000000-0"
    assert number > 10**9


def test_of_an_entry_in_excess_the_newest_jobs_stay_whole():
    entry = Entry("retry", 5, "waiting", [("a", None), ("b", None), ("c", None)])

    def stays(gone: int, *, is_newest: bool = False) -> list[str]:
        left = trim_entry(entry, 16, gone, is_newest=is_newest)
        return [id for id, _ in left.jobs] if left else []

    assert [stays(gone) for gone in range(10, 16)] == [
        ["a", "b", "c"],
        ["b", "c"],
        ["b", "c"],
        ["c"],
        ["c"],
        [],
    ]
    assert stays(15, is_newest=True) == ["c"]


def test_an_entry_that_is_trimmed_again_knows_all_that_is_gone():
    entry = Entry("fail", 5, "failed", [("a", {"exhausted": True}), ("b", {}), ("c", {})])
    ids = [event.id for event in expand("q", "7", entry)]

    once = trim_entry(entry, 3, 1, is_newest=False)
    assert once is not None
    twice = trim_entry(once, 3, 2, is_newest=False)
    assert twice is not None

    assert [event.id for event in expand("q", "7", once)] == ids[2:]
    assert [event.id for event in expand("q", "7", twice)] == ids[3:]


@pytest.mark.parametrize(
    "entry",
    [
        Entry("add", 5, "delayed", [("a", {"name": "send"}), ("b", {"name": "print"})]),
        Entry("fail", 5, "failed", [("a", {"exhausted": True}), ("b", None), ("c", {"exhausted": True})], trimmed=3),
        Entry("fail", 5, "failed", [("a", None), ("b", None)], {"exhausted": True}),
        Entry("paused", 5, detail={"name": "send"}),
    ],
)
def test_backwards_it_is_the_same(entry):
    assert [*expand_backwards("q", "7", entry)] == [*expand("q", "7", entry)][::-1]
