"""Ids that the server keeps in fewer letters."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.store.commands import Find
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.ids import all_shortened, shortened, text_of
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, new_job

ANY_UUID = st.uuids().map(str)
ONE = "0199d5a0-7c1e-7b3c-9c64-0a1b2c3d4e5f"


@given(ANY_UUID)
def test_a_uuid_is_kept_in_22_letters(id: str):
    assert len(shortened(id)) == 22
    assert text_of(shortened(id)) == id


@given(st.text() | st.text("=abc", min_size=20, max_size=24) | st.text("0a-", min_size=36, max_size=36))
def test_every_other_id_comes_back_as_it_was(id: str):
    assert text_of(shortened(id)) == id


@given(ANY_UUID)
def test_no_other_id_is_taken_for_a_uuid(id: str):
    kept = shortened(id)
    lookalikes = [kept, f"={kept}", id.upper() + " ", id.replace("-", ""), f"{{{id}}}", id.replace("-", " ")]

    assert len({kept, *map(shortened, lookalikes)}) == len(lookalikes) + 1
    assert [text_of(shortened(each)) for each in lookalikes] == lookalikes


@given(st.lists(ANY_UUID | st.sampled_from([ONE.upper(), ONE.replace("-", " "), "0-" * 18, "x" * 36, "x" * 22])))
def test_many_are_shortened_like_each(ids: list[str]):
    assert all_shortened(ids) == [shortened(id) for id in ids]


def test_a_uuid_in_capitals_stays_in_capitals():
    assert shortened(ONE.upper()) == ONE.upper()


@pytest.mark.parametrize("id", [ONE, shortened(ONE), str(uuid.UUID(int=0)), "x" * 255])
async def test_whoever_asks_sees_the_id_that_was_given(store: RedisStore, id: str):
    await add(store, new_job(id))

    found = await store.find(Find(QUEUE, ("waiting",)))
    got = await store.get(QUEUE, [id])
    claimed = await claim(store, 1)
    await store.cancel(QUEUE, [id])
    revoked = await store.revoked(QUEUE, "0")
    events = await store.events(QUEUE)
    gone = await store.obliterate(QUEUE, force=True)

    assert [job.id for job in (*found.jobs, *got, *claimed) if job] == [id] * 3
    assert [lock.id for lock in revoked.locks] == [id]
    assert {job for stored in events.entries for job, _ in stored.entry.jobs} == {id}
    assert gone.ids == [id]


async def test_an_id_that_looks_like_a_shortened_one_is_another(store: RedisStore):
    await add(store, new_job(ONE, data="1"), new_job(shortened(ONE), data="2"))

    found = await store.get(QUEUE, [ONE, shortened(ONE), f"={shortened(ONE)}"])

    assert [job and job.data for job in found] == ["1", "2", None]
