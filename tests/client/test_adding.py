"""What `add` and `add_many` promise."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ropeway import Call, DuplicateJob, InvalidInput, JobHandle, PayloadTooLarge, Queue
from ropeway.errors import InvalidName, InvalidOption, InvalidPayload
from ropeway.job.states import State
from ropeway.store.contract import Store
from ropeway.testing.arrange import ARRANGED, job_in, read

from .fixtures import MakeQueue


async def snapshot(job: JobHandle) -> Any:
    return await job.refresh()


async def is_empty(queue: Queue) -> bool:
    return not any((await queue.counts()).values()) and not (await queue.find()).jobs


@pytest.mark.every_store
async def test_an_added_job_waits_with_its_name_and_data(queue: Queue):
    job = await queue.add("send", {"to": ["you", None, 1.5, "é"]})
    assert job.created
    stored = await snapshot(job)
    assert (stored.name, stored.data, stored.state) == ("send", {"to": ["you", None, 1.5, "é"]}, "waiting")
    assert (stored.attempts, stored.attempts_made, stored.attempts_started) == (1, 0, 0)


async def test_data_may_be_left_out(queue: Queue):
    assert (await snapshot(await queue.add("send"))).data is None


async def test_ids_are_made_in_the_order_of_adding(queue: Queue):
    ids = [(await queue.add("send")).id for _ in range(20)]
    assert ids == sorted(set(ids))


@pytest.mark.every_store
async def test_a_second_add_of_an_id_finds_the_first_job(queue: Queue):
    first = await queue.add("send", {"to": "you"}, id="order-1")
    second = await queue.add("send", {"to": "you"}, id="order-1")
    assert (first.id, first.created) == ("order-1", True)
    assert (second.id, second.created) == ("order-1", False)
    assert (await queue.counts())["waiting"] == 1


@pytest.mark.parametrize("state", ARRANGED)
async def test_an_id_is_found_in_every_state_and_never_runs_again(queue: Queue, store: Store, state: State):
    there = await job_in(state, store, now=await store.clock(), name="send", data='{"to":"you"}')
    found = await queue.add("send", {"to": "you"}, id=there.id)
    assert not found.created
    assert await read(store, there.id) == there


async def test_an_id_is_free_again_once_its_job_was_removed(queue: Queue):
    job = await queue.add("send", 1, id="a")
    await job.remove()
    assert (await queue.add("send", 2, id="a")).created


@pytest.mark.every_store
@pytest.mark.parametrize(("name", "data"), [("send", {"to": "me"}), ("post", {"to": "you"})])
async def test_an_id_with_another_name_or_other_data_is_refused(queue: Queue, name: str, data: Any):
    job = await queue.add("send", {"to": "you"}, id="order-1")
    with pytest.raises(DuplicateJob, match="order-1") as refused:
        await queue.add(name, data, id="order-1")
    assert (refused.value.queue, refused.value.job_id) == (queue.name, "order-1")
    assert (await snapshot(job)).data == {"to": "you"}


@pytest.mark.every_store
async def test_fifty_producers_of_one_id_make_one_job(queue: Queue):
    jobs = await asyncio.gather(*(queue.add("send", {"n": 1}, id="one") for _ in range(50)))
    assert sum(job.created for job in jobs) == 1
    assert (await queue.counts())["waiting"] == 1


@pytest.mark.parametrize("id", ["0", "__proto__", "a:b", "123", "-", "x" * 255])
async def test_ids_are_text_and_never_read_as_anything_else(queue: Queue, id: str):
    assert (await queue.add("send", id=id)).id == id
    found = await queue.get(id)
    assert found is not None
    assert found.id == id


async def test_options_that_are_none_are_none_given(queue: Queue):
    job = await queue.add("send", id=None, delay=None, backoff=None, timeout=None)  # as in id=maybe
    assert (len(job.id), await job.state()) == (36, "waiting")


async def test_many_jobs_of_every_form_are_stored_in_their_order(queue: Queue):
    jobs = await queue.add_many(
        [
            "a",
            ("b", {"n": 1}),
            ("c", [2], {"id": "third", "attempts": 3}),
            json.loads('["d", 4]'),
            Call("e", 5, {"attempts": 2}),
        ]
    )
    assert [job.name for job in jobs] == ["a", "b", "c", "d", "e"]
    assert [job.data for job in jobs] == [None, {"n": 1}, [2], 4, 5]
    assert all(job.created for job in jobs)
    waiting = (await queue.find("waiting")).jobs
    assert [job.id for job in waiting] == [job.id for job in jobs]
    assert [job.snapshot.attempts for job in waiting] == [1, 1, 3, 1, 2]


async def test_many_may_come_from_a_generator(queue: Queue):
    assert len(await queue.add_many(("send", n) for n in range(2_500))) == 2_500
    assert (await queue.counts())["waiting"] == 2_500


async def test_adding_none_at_all_is_fine(queue: Queue):
    assert await queue.add_many([]) == []


@pytest.mark.every_store
async def test_many_say_which_were_created_and_which_were_found(queue: Queue):
    await queue.add("send", 1, id="a")
    jobs = await queue.add_many([("send", 1, {"id": "a"}), ("send", 2, {"id": "b"}), ("send", 2, {"id": "b"})])
    assert [job.created for job in jobs] == [False, True, False]
    assert (await queue.counts())["waiting"] == 2


@pytest.mark.every_store
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_taken_id_stores_nothing_of_many(queue: Queue, place: int):
    await queue.add("send", "first", id="taken")
    items: list[Any] = [("send", n) for n in range(2)]
    items.insert(place, ("send", "second", {"id": "taken"}))
    with pytest.raises(DuplicateJob, match="taken"):
        await queue.add_many(items)
    assert (await queue.counts())["waiting"] == 1


async def test_an_id_given_twice_for_different_jobs_stores_nothing_of_many(queue: Queue):
    with pytest.raises(DuplicateJob) as refused:
        await queue.add_many([("send", 1, {"id": "a"}), ("send", 2, {"id": "a"})])
    assert "more than once" in " ".join(refused.value.__notes__)
    assert await is_empty(queue)


BAD_ITEMS: dict[str, Any] = {
    "no name": (),
    "a number": 5,
    "none": None,
    "a mapping": {"name": "send"},
    "too long": ("send", 1, {}, 4),
    "options that are no mapping": ("send", 1, None),
    "a name that is no text": (5, 1),
    "an empty name": ("", 1),
    "an unknown option": ("send", 1, {"atempts": 2}),
    "an option out of range": ("send", 1, {"priority": 2**22}),
    "data that is not JSON": ("send", {1, 2}),
    "a bad call": Call("send", object()),
}


@pytest.mark.parametrize("bad", BAD_ITEMS.values(), ids=BAD_ITEMS)
async def test_one_bad_item_stores_nothing_of_many_and_is_named(queue: Queue, bad: Any):
    with pytest.raises(InvalidInput) as refused:
        await queue.add_many([("send", 1), ("send", 2), bad, ("send", 3)])
    told = str(refused.value) + " ".join(getattr(refused.value, "__notes__", []))
    assert "item 2" in told
    assert await is_empty(queue)


async def test_a_mapping_is_not_taken_for_the_names_in_it(queue: Queue):
    mapping: Any = {"send": 1}
    with pytest.raises(InvalidInput, match=r"mapping\.items\(\)"):
        await queue.add_many(mapping)
    assert await is_empty(queue)


@pytest.mark.parametrize("nothing", [None, 5])
async def test_what_holds_no_jobs_is_not_taken_for_many(queue: Queue, nothing: Any):
    with pytest.raises(InvalidInput, match="give a list"):
        await queue.add_many(nothing)


@pytest.mark.parametrize("one", ["send", Call("send")])
async def test_one_job_is_not_taken_for_many(queue: Queue, one: Any):
    with pytest.raises(InvalidInput, match="put it in a list"):
        await queue.add_many(one)
    assert await is_empty(queue)


async def test_an_empty_name_at_the_limit_is_kept_and_beyond_it_refused(queue: Queue):
    job = await queue.add("n" * 255)
    assert (await snapshot(job)).name == "n" * 255
    await job.remove()
    with pytest.raises(InvalidName):
        await queue.add("n" * 256)
    assert await is_empty(queue)


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00b", "\x7f", "\u2028", "\ud800", None, 5, b"send", ["send"]])
async def test_a_name_that_is_no_clean_text_is_refused(queue: Queue, name: Any):
    with pytest.raises(InvalidName, match="job name"):
        await queue.add(name)
    assert await is_empty(queue)


@pytest.mark.parametrize("name", ["send email", "é", "日本", "os.system", "<script>", "'; DROP TABLE job; --", "*"])
async def test_any_other_text_is_a_name(queue: Queue, name: str):
    assert (await snapshot(await queue.add(name))).name == name


async def test_data_may_take_exactly_the_limit_and_not_a_byte_more(make_queue: MakeQueue):
    queue = make_queue(size_limit=100)
    await queue.add("send", "x" * 98)
    await queue.add("send", "é" * 49)
    with pytest.raises(PayloadTooLarge) as refused:
        await queue.add("send", "x" * 99)
    assert (refused.value.size, refused.value.limit) == (101, 100)
    with pytest.raises(PayloadTooLarge):
        await queue.add("send", "é" * 49 + "x")
    assert (await queue.counts())["waiting"] == 2


async def test_a_mebibyte_is_the_limit_unless_another_is_given(queue: Queue):
    largest = "x" * (1024 * 1024 - 2)
    job = await queue.add("send", largest)
    assert (await snapshot(job)).data == largest
    with pytest.raises(PayloadTooLarge):
        await queue.add("send", largest + "x")


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"rows": [1, {"when": {1, 2}}]}, "$.rows[1].when"),
        ([[object()]], "$[0][0]"),
        ({"a": float("nan")}, "$.a"),
        ([float("inf")], "$[0]"),
        ({1: "a"}, "$"),
        (b"bytes", "$"),
        ("\ud800", "$"),
        ({"n": 10**1000}, "$.n"),
    ],
)
async def test_data_that_is_not_json_is_refused_with_its_place(queue: Queue, data: Any, path: str):
    with pytest.raises(InvalidPayload) as refused:
        await queue.add("send", data)
    assert refused.value.path == path
    assert isinstance(refused.value, TypeError)
    assert await is_empty(queue)


async def test_a_circle_in_data_is_refused(queue: Queue):
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidPayload, match="deep"):
        await queue.add("send", circle)
    assert await is_empty(queue)


@pytest.mark.parametrize(
    "data", [2**63, 2**64 + 1, -0.0, 0.1 + 0.2, "a\x00b", {"": 1}, {"é": 1, "e\u0301": 2}, 10**999]
)
async def test_data_comes_back_exactly(queue: Queue, data: Any):
    job = await queue.add("send", data)
    assert repr((await snapshot(job)).data) == repr(data)


async def test_changing_what_was_given_does_not_change_what_was_stored(queue: Queue):
    data = {"n": 1}
    job = await queue.add("send", data)
    data["n"] = 2
    assert (await snapshot(job)).data == {"n": 1}


async def test_options_can_not_be_mistaken_for_data(queue: Queue):
    with pytest.raises(InvalidOption, match="goes into data"):
        await queue.add("send", to="you")  # type: ignore[call-arg]
    assert await is_empty(queue)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"delay": 5, "priority": 1}, "use add(name, data, delay=..., priority=...)"),
        ("high", "use add(name, data, delay=...)"),
    ],
)
async def test_options_in_a_dict_are_refused_with_how_to_write_them(queue: Queue, given: Any, remedy: str):
    with pytest.raises(InvalidInput) as refused:
        await queue.add("send", {"to": "you"}, given)
    assert str(refused.value).endswith(remedy)
    assert (await queue.counts())["waiting"] == 0


def test_options_in_a_dict_are_refused_of_sync_queues_too():
    with pytest.raises(InvalidInput, match=r"use add\(name, data, delay=\.\.\.\)"):
        Queue("letters", "memory://").sync.add("send", None, {"delay": 5})  # type: ignore[arg-type]  # a mistake
