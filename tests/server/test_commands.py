"""Commands of the contract over HTTP, and wake-ups."""

from __future__ import annotations

import asyncio
import json

import httpx
import msgspec
import pytest

from ropeway.job.ids import new_id, new_token
from ropeway.job.outcomes import Outcome
from ropeway.job.record import NewJob
from ropeway.job.states import STATES
from ropeway.server import broker
from ropeway.server.limits import Limits
from ropeway.store.commands import (
    Add,
    Cancel,
    Claim,
    Configure,
    Count,
    Find,
    ListQueues,
    ReadClock,
    ReadEvents,
    ReadMetrics,
    ReadSchedules,
    Recall,
    Settle,
)
from ropeway.store.contract import Store
from ropeway.store.wire import decode_answer, encode_command
from ropeway.testing.conformance.fixtures import NewHandle

from .conftest import Client, MakeToken, Serve, client_of
from .extremes import commands, variants

JSON = {"content-type": "application/json"}
PARTS = 4
"""Tests that share a long search, so that none of them takes minutes."""


async def do(web: Client, command, *, now=None, headers=None, form="msgpack"):
    kind = {"content-type": f"application/{form}", **(headers or {})}
    answer = await web.post("/v1/do", content=encode_command(command, now, form), headers=kind)
    if answer.status_code != 200:
        return answer
    return decode_answer(command, answer.content, form)


def job(queue: str = "q", **more) -> NewJob:
    return NewJob(queue, new_id(), "task", "{}", **more)


@pytest.mark.parametrize("form", ["msgpack", "json"])
async def test_a_job_runs_by_commands(web: Client, form: str):
    [[added]] = await do(web, Add([[job()]]), form=form)
    claimed = await do(web, Claim("q", "w", new_token(), 1, 30_000), form=form)
    assert [each.id for each in claimed.jobs] == [added.id]
    settled = await do(web, Settle("q", [Outcome(added.id, claimed.jobs[0].token, "complete")]), form=form)
    assert settled.answers[0].verdict == "done"


async def test_a_claim_waits_for_a_job(web: Client):
    waiting = asyncio.create_task(do(web, Claim("q", "w", new_token(), 1, 30_000, wait=50_000)))
    await do(web, Add([[job()]]))
    assert len((await waiting).jobs) == 1


async def test_a_token_reaches_its_queues_alone(web: Client, make_token: MakeToken):
    worker = await make_token("worker", queues=["mail-*"])
    both = await make_token("worker", "producer", queues=["mail-*"])
    claim = Claim("mail-out", "w", new_token(), 1, 1_000)

    assert (await do(web, claim, headers=worker)).jobs == []
    assert (await do(web, Claim("other", "w", new_token(), 1, 1_000), headers=worker)).status_code == 403
    assert (await do(web, Add([[job("mail-out")]]), headers=worker)).status_code == 403
    assert (await do(web, Add([[job("mail-out")]]), headers=both))[0][0].verdict == "created"
    assert (await do(web, Add([[job("other")]]), headers=both)).status_code == 403
    assert (await do(web, Cancel("mail-out", ["x"]), headers=both)).status_code == 403
    # A worker says which callbacks it has, and runs them; it does not change other settings.
    assert (await do(web, Configure("mail-out", callbacks=["stale"]), headers=worker)).stages is not None
    assert (await do(web, Claim("ropeway.stale.mail-out", "w", new_token(), 1, 1_000), headers=worker)).jobs == []
    assert (await do(web, Claim("ropeway.stale.other", "w", new_token(), 1, 1_000), headers=worker)).status_code == 403
    assert (await do(web, Configure("mail-out", pause=True), headers=worker)).status_code == 403
    assert (await do(web, Configure("mail-out", callbacks=[]), headers=worker)).status_code == 403
    # Through the outcome of a job.
    outcome = Outcome("x", "t", "complete", adds=(job("other"),))
    assert (await do(web, Settle("mail-out", [outcome]), headers=both)).status_code == 403
    then = Settle("mail-out", [], Claim("other", "w", new_token(), 1, 1_000))
    assert (await do(web, then, headers=both)).status_code == 403


async def test_lists_have_what_a_token_reaches(web: Client, make_token: MakeToken):
    await do(web, Add([[job("seen")], [job("unseen")]]))
    viewer = await make_token("viewer", queues=["seen"])
    assert await do(web, ListQueues(), headers=viewer) == ["seen"]


async def test_tokens_cannot_be_read_by_others_than_administrators(web: Client, make_token: MakeToken):
    operator, admin = await make_token("operator"), await make_token("admin")
    assert (await do(web, Recall("token"), headers=operator)).status_code == 403
    assert len(await do(web, Recall("token"), headers=admin)) == 2


async def test_time_is_the_servers(web: Client, serve: Serve):
    assert (await do(web, ReadClock(), now=5)).status_code == 422
    async with serve(test_clock=True) as trusting:
        assert await do(trusting, Count("q"), now=5)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"\xc1", 422),
        (b"[]", 422),
        (b'[1,{"verb":"none"},null]', 422),
        (b'[9,{"verb":"queues"},null]', 422),
    ],
)
async def test_what_is_no_command_is_refused(web: Client, body: bytes, status: int):
    answer = await web.post("/v1/do", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


@pytest.mark.every_store
async def test_a_value_that_no_command_has_is_refused_with_its_path(serve: Serve):
    told: dict[str, tuple[int, str]] = {}
    async with serve() as web:
        for place, command in WRONG.items():
            answer = await web.post("/v1/do", content=f"[1,{command},null]", headers=JSON)
            told[place] = answer.status_code, answer.json()["facts"]["option"]
    assert told == {place: (422, place.partition(" ")[0]) for place in WRONG}


WRONG = {
    "limit": '{"verb":"events","queue":"q","limit":-1}',
    "limit 2": '{"verb":"claim","queue":"q","worker":"w","token":"t","limit":9007199254740992,"lock":1}',
    "max_active": '{"verb":"configure","queue":"q","max_active":-1}',
    "older_than": '{"verb":"clean","queue":"q","state":"completed","older_than":-9223372036854775808}',
    "ids[1]": r'{"verb":"get","queue":"q","ids":["a","b\u0000"]}',
    "updates[0].progress": '{"verb":"update","queue":"q","updates":[{"id":"a","progress":"{"}]}',
    "outcomes[0].id": r'{"verb":"settle","queue":"q","outcomes":[{"id":"\"","token":"t","move":"retry"}]}',
}
"""By the path of the value."""


@pytest.mark.deep
@pytest.mark.every_store
@pytest.mark.parametrize("part", range(PARTS))
async def test_no_value_of_any_command_breaks_the_server_or_what_others_read(new_handle: NewHandle, part: int):
    store = new_handle()
    async with client_of(broker(store, limits=Limits(wait=0.01))) as web:
        for number in range(part, len(commands("", "")), PARTS):
            for variant in variants(msgspec.to_builtins(commands(*await active(store))[number])):
                answer = await web.post("/v1/do", content=json.dumps([1, variant, None]), headers=JSON)
                assert answer.status_code < 500, (variant, answer.text)
        for command in (ReadEvents("q"), Find("q", STATES, limit=1_000), ReadSchedules("q"), ReadMetrics("q")):
            assert not isinstance(await do(web, command), httpx.Response)
    await store.close()


async def active(store: Store) -> tuple[str, str]:
    """Id and token of a job that runs, also if an earlier command has paused its queue."""
    added, token = job(), new_token()
    await store.do(Configure("q", pause=False, max_active=0))
    await store.add([[added]])
    while not any(each.id == added.id for each in (await store.claim(Claim("q", "w", token, 1_000, 60_000))).jobs):
        token = new_token()
    return added.id, token


async def listen(web: Client, *listeners, wait: float = 0, headers=None, **more):
    answer = await web.post("/v1/listen", json={"listeners": listeners, "wait": wait, **more}, headers=headers)
    return answer.json()["wakes"] if answer.status_code == 200 else answer.status_code


async def test_a_wake_up_is_heard_also_between_polls(web: Client):
    ask = {"id": "l1", "topic": "jobs", "queues": ["q"]}
    first = (await listen(web, ask))["l1"]
    await do(web, Add([[job()]]))
    heard = await listen(web, {**ask, "after": first}, wait=50)
    assert heard == {"l1": first + 1}
    # The answer was lost, and it is asked for again.
    assert await listen(web, {**ask, "after": first}, wait=50) == heard
    assert await listen(web, {**ask, "after": first + 1}, wait=0.01) == heard


async def test_one_poll_waits_for_several_listeners(web: Client):
    asks = [{"id": queue, "topic": "jobs", "queues": [queue]} for queue in ("a", "b")]
    first = await listen(web, *asks)
    heard = first
    added = asyncio.create_task(do(web, Add([[job("b")]])))
    # A listener may wake without a cause, as when its subscription begins.
    while heard["b"] == first["b"]:
        heard = await listen(web, *({**ask, "after": heard[ask["id"]]} for ask in asks), wait=50)
    assert heard["b"] == first["b"] + 1
    await added


async def test_a_listener_that_was_forgotten_has_another_number(web: Client):
    ask = {"id": "l1", "topic": "jobs", "queues": ["q"]}
    first = (await listen(web, ask))["l1"]
    assert await listen(web, close=["l1"]) == {}
    assert (await listen(web, {**ask, "after": first}, wait=50))["l1"] != first


@pytest.mark.parametrize(
    "listeners",
    [
        [{"id": "l1", "topic": "jobs", "queues": []}],
        [{"id": "l1", "topic": "jobs", "queues": ["q"]}] * 2,
        [{"id": "l1", "topic": "events", "queues": ["q"], "worker": "w"}],
        [{"id": "l1", "topic": "jobs", "queues": ["q", "r"], "worker": "w"}],
    ],
)
async def test_what_cannot_be_listened_to_is_refused(web: Client, listeners):
    assert await listen(web, *listeners) == 422


async def test_a_listener_is_for_queues_that_the_token_reaches(web: Client, make_token: MakeToken):
    worker = await make_token("worker", queues=["a"])
    ask = {"id": "l1", "topic": "jobs", "queues": ["a", "b"]}
    assert await listen(web, ask, headers=worker) == 403
