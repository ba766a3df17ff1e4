"""Dedupe keys, deadlines, dead letters and schedules: what is particular to their storage."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from msgspec.structs import replace

from ropeway.job.dead_letters import dead_letter_id
from ropeway.job.dedupe import MODES, DedupeMode, DedupeRule
from ropeway.job.extras import Extras
from ropeway.store.values import Added, KeyHolder, ScheduleWrite, StallRules
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.arrange import active, add, add_one, claim, claim_one, is_gone, read
from ropeway.testing.conformance.flow_actions import give_children
from ropeway.testing.factories import DAY, LOCK, NOW, QUEUE, SECOND, complete, fail, keyed, new_flow, new_job
from tests.stores.servers import new_prefix, shared_cluster

from .conftest import OpenStore
from .test_outbox import AWAY, Died, before, die
from .test_parked import park

DEAD: Final = "dead"
KEPT: Final = ("held", "throttled", "deadlines", "extras", "schedules", "planned", "due")


@pytest.fixture
def cluster(open_store: OpenStore) -> RedisStore:
    return open_store(shared_cluster().url(new_prefix()))


async def left_in(store: RedisStore) -> list[str]:
    """Which of the keys about rules exist."""
    base = store._executor.keys.queue(QUEUE)
    return [key for key in KEPT if await store._executor.execute("EXISTS", f"{base}:{key}")]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_parked_claim_is_given_jobs_with_keys_and_deadlines(store: RedisStore, number: int):
    listener, waiting = await park(store)
    jobs = [
        new_job(f"job-{n}", extras=Extras(start_within=SECOND, dedupe=DedupeRule(f"key-{n}"))) for n in range(number)
    ]

    await store.add([jobs])

    claimed = await waiting
    assert [job.extras for job in claimed.jobs] == [job.extras for job in jobs]
    assert await store.dedupe(QUEUE, "key-0") == KeyHolder("job-0")
    ticked = await store.tick(QUEUE, StallRules(), now=claimed.now + SECOND)
    assert (ticked.expired, (await store.count(QUEUE))["active"]) == (0, number)
    listener.close()


async def test_the_deadlines_of_others_are_kept_when_a_job_is_claimed(store: RedisStore):
    await add(store, *(new_job(str(n), extras=Extras(start_within=SECOND + n)) for n in range(3)))
    await claim_one(store)

    ticked = await store.tick(QUEUE, StallRules(), now=NOW + SECOND + 1)

    assert (ticked.expired, ticked.next_at) == (1, NOW + SECOND + 2)


async def test_a_lone_job_with_a_known_id_leaves_its_key_free(store: RedisStore):
    await add(store, new_job("a", data="1"))

    answers = await store.add([[keyed("key", id="a", data="2")]], now=NOW)

    assert answers == [[Added("a", "conflict")]]
    assert await store.dedupe(QUEUE, "key", now=NOW) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_free_key_is_held_alike_alone_and_in_a_bundle(store: RedisStore, mode: DedupeMode, *, is_alone: bool):
    # The first add makes the queue, and a lone job of a new queue goes the way of bundles.
    await add(store, new_job("first"))
    job = keyed("key", mode, SECOND, id="a")

    await add(store, *([job] if is_alone else [job, new_job("b")]))

    until = NOW + SECOND if mode == "throttle" else None
    assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("a", until)
    assert (await read(store, "a")).extras == job.extras


async def test_nothing_is_left_of_jobs_that_are_gone(store: RedisStore):
    rules = [Extras(start_within=DAY, dead_letter=DEAD, dedupe=DedupeRule(f"key-{n}")) for n in range(4)]
    await add(store, *(new_job(str(n), extras=rules[n]) for n in range(4)))
    held = await claim(store, 2)
    await store.settle(QUEUE, [complete(held[0]), fail(held[1])], now=NOW)
    await store.cancel(QUEUE, ["2"], now=NOW)
    await store.remove(QUEUE, ["3"], now=NOW)
    assert await left_in(store) == ["extras"]

    await store.remove(QUEUE, ["0", "1", "2"], now=NOW)

    assert await left_in(store) == []


async def test_an_obliterated_queue_leaves_nothing(store: RedisStore):
    await store.write_schedules(QUEUE, [ScheduleWrite("nightly", "1", NOW)], now=NOW)
    await add(store, keyed("a", "throttle", DAY), keyed("b"), new_job(extras=Extras(start_within=DAY)))
    assert await left_in(store) == list(KEPT)

    await store.obliterate(QUEUE, now=NOW)

    assert await left_in(store) == []


async def test_a_time_that_is_over_does_not_free_a_key_that_was_taken_since(store: RedisStore):
    await add(store, keyed("key", "throttle", SECOND, id="a"))
    await store.release_dedupe(QUEUE, "key", now=NOW)
    await add(store, keyed("key", id="b"))

    await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

    assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("b")
    assert await left_in(store) == ["held", "extras"]


@pytest.mark.parametrize("extras", [Extras(), Extras(dedupe=DedupeRule("key", "throttle", DAY), schedule="s")])
async def test_scripts_that_change_other_rare_fields_leave_them_as_they_are(store: RedisStore, extras: Extras):
    held = await active(store, id="p", tags=("x",), extras=extras)

    await give_children(store, held, new_job("child"))

    changed = await read(store, "p")
    assert (changed.extras, changed.tags, changed.children) == (extras, ("x",), 1)


async def test_a_job_that_has_ended_frees_its_key_for_the_one_that_it_adds(store: RedisStore):
    held = await active(store, id="a", extras=Extras(dedupe=DedupeRule("key")))

    await store.settle(QUEUE, [replace(complete(held), adds=(keyed("key", id="b"),))], now=NOW)

    assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("b")


async def test_a_bundle_meets_the_jobs_that_it_has_just_added(store: RedisStore):
    bundle = [
        keyed("key", "keep-last", id="a", data="1"),
        keyed("key", "keep-last", id="b", data="2"),
        keyed("key", "supersede", id="c"),
        keyed("key", "debounce", SECOND, id="d", delay=SECOND),
        keyed("key", "debounce", SECOND, id="e", data="5"),
    ]

    [answers] = await store.add([bundle], now=NOW)

    assert answers == [
        Added("a", "created"),
        Added("a", "deduplicated"),
        Added("c", "created"),
        Added("d", "created"),
        Added("d", "deduplicated"),
    ]
    states = [(job.id, job.state, job.data) for job in await store.get(QUEUE, ["a", "c", "d"]) if job]
    assert states == [("a", "cancelled", "2"), ("c", "waiting", bundle[2].data), ("d", "delayed", "5")]


async def test_a_thread_without_a_loop_adds_jobs_with_keys(store: RedisStore):
    assert isinstance(store, ServerStore)
    jobs = [keyed("key", id=str(n)) for n in range(3)]

    answers = await asyncio.to_thread(lambda: [store.add_blocking([[job]], now=NOW) for job in jobs])

    assert answers == [[[Added("0", verdict)]] for verdict in ("created", "deduplicated", "deduplicated")]


async def test_dead_letters_that_a_crash_left_in_the_outbox_are_delivered_by_a_tick(cluster: RedisStore):
    held = await active(cluster, id="job", extras=Extras(dead_letter=AWAY))
    before(cluster, "receive", die)
    with pytest.raises(Died):
        await cluster.settle(QUEUE, [fail(held)], now=NOW)
    letter = dead_letter_id(QUEUE, "job", NOW)
    assert await is_gone(cluster, letter, AWAY)

    for _ in range(2):
        await cluster.tick(QUEUE, StallRules(), now=NOW + 1)

    assert (await read(cluster, letter, AWAY)).state == "waiting"
    assert (await cluster.count(AWAY))["waiting"] == 1


async def test_a_claim_of_a_cluster_delivers_the_dead_letters_of_expired_jobs(cluster: RedisStore):
    await add_one(cluster, id="job", extras=Extras(start_within=SECOND, dead_letter=AWAY))

    assert await claim(cluster, now=NOW + SECOND) == []

    assert (await read(cluster, dead_letter_id(QUEUE, "job", NOW + SECOND), AWAY)).state == "waiting"


async def test_jobs_of_several_slots_meet_the_holders_of_their_keys(cluster: RedisStore):
    await add(cluster, keyed("key", id="holder"))
    await add(cluster, keyed("key", queue=AWAY, id="other"))

    [answers] = await cluster.add([[keyed("key", id="a"), keyed("key", id="b", queue=AWAY), new_job("c")]], now=NOW)

    assert answers == [Added("holder", "deduplicated"), Added("other", "deduplicated"), Added("c", "created")]


async def test_a_child_in_another_slot_is_kept_if_one_of_its_parents_is(cluster: RedisStore):
    await add(cluster, keyed("key", id="holder"))
    root, leaf = new_flow(keyed("key", id="root"), new_job("leaf", queue=AWAY))
    second, leaf = new_flow(new_job("second"), leaf)

    [answers] = await cluster.add([[root, second, leaf]], now=NOW)

    assert [answer.verdict for answer in answers] == ["deduplicated", "created", "created"]
    assert (await read(cluster, "leaf", AWAY)).state == "waiting"
    assert (await read(cluster, "second")).state == "waiting-children"


async def test_a_key_of_a_job_that_stalls_and_is_given_up_is_free(cluster: RedisStore):
    await active(cluster, id="job", extras=Extras(dedupe=DedupeRule("key"), dead_letter=AWAY))

    await cluster.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)

    assert await cluster.dedupe(QUEUE, "key", now=NOW) is None
    assert AWAY in await cluster.queues()
