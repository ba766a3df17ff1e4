"""Who is let in, and who is not (G1 to G4)."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.server import authentication
from ropeway.server.authentication import MOST_FAILURES
from ropeway.server.tokens import create_token, revoke_token
from ropeway.store.contract import Store

from .conftest import Client, MakeToken, Serve, until

DO = '[1,{"verb":"clock"},null]'
JSON = {"content-type": "application/json"}


async def ask(web: Client, headers: object = None):
    return await web.post("/v1/do", content=DO, headers=[*JSON.items(), *(headers or [])])  # type: ignore[misc]


async def refused(web: Client, header: object):
    return (await ask(web, header)).status_code == 401


async def first_entry(store: Store):
    entries = (await store.events("ropeway.audit")).entries
    return entries[0].entry if entries else None


async def test_without_a_token_all_are_refused_in_the_same_words(web: Client, store: Store, make_token: MakeToken):
    good = (await make_token("viewer"))["authorization"]
    expired, _ = await create_token(store, ["viewer"], lasting=1)
    unknown = "rw_0123456789abcdef_" + "0" * 64
    given = [
        [],
        [("authorization", "Bearer nonsense")],
        [("authorization", f"Bearer {unknown}")],
        [("authorization", good[:-1] + ("0" if good[-1] != "0" else "1"))],
        [("authorization", "Bearer rw_\u00fc\u00e4_\u00e9".encode())],
        [("authorization", good), ("authorization", good)],
        [("authorization", f"Bearer {good}")],
        [("authorization", good.replace("Bearer", "Basic"))],
        [("authorization", f"Bearer {expired}")],
    ]
    await asyncio.sleep(0.01)
    refusals = [await ask(web, headers) for headers in given]
    in_query = await web.post(f"/v1/do?token={good.split()[1]}", content=DO, headers=JSON)

    assert {answer.status_code for answer in (*refusals, in_query)} == {401}
    assert len({answer.content for answer in (*refusals, in_query)}) == 1
    assert (await ask(web, [("authorization", good)])).status_code == 200


async def test_a_revoked_token_is_refused(web: Client, store: Store):
    text, token = await create_token(store, ["viewer"])
    header = [("authorization", f"Bearer {text}")]
    assert (await ask(web, header)).status_code == 200
    await revoke_token(store, token.id)
    await until(lambda: refused(web, header))


async def test_what_lasts_ends_when_its_token_is_revoked(web: Client, store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(authentication, "CHECKED_EVERY", 0.02)
    text, token = await create_token(store, ["worker"])
    header = {"authorization": f"Bearer {text}"}
    asked = {"worker": "w", "wait": 50}
    waiting = asyncio.create_task(web.post("/v1/queues/q/claim", json=asked, headers=header))
    async with web.stream("GET", "/v1/queues/q/events?snapshot=true", headers=header) as stream:
        assert stream.status_code == 200
        await revoke_token(store, token.id)
        assert b"".join([part async for part in stream.aiter_bytes()]), "it ends"
    assert (await waiting).status_code == 401


async def test_secrets_are_not_stored(store: Store):
    text, token = await create_token(store, ["viewer"])
    [record] = await store.recall("token")
    assert text.split("_")[2] not in record.value
    assert token.hash in record.value


async def test_many_attempts_are_not_looked_at(serve: Serve, make_token: MakeToken):
    good = (await make_token("viewer"))["authorization"]
    async with serve() as web:
        wrong = [("authorization", "Bearer rw_0123456789abcdef_" + "0" * 64)]
        statuses = [(await ask(web, wrong)).status_code for _ in range(MOST_FAILURES + 2)]
        assert statuses == [401] * MOST_FAILURES + [429] * 2
        refused = await ask(web, [("authorization", good)])
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip"])
async def test_a_proxy_on_this_machine_does_not_open_the_door(web: Client, header: str):
    assert (await ask(web)).status_code == 200
    assert (await ask(web, [(header, "127.0.0.1")])).status_code == 401


async def test_without_auth_is_for_this_machine_alone(serve: Serve, make_token: MakeToken):
    await make_token("viewer")
    async with serve(no_auth=True) as web:
        assert (await ask(web)).status_code == 200
        assert (await ask(web, [("x-forwarded-for", "10.0.0.1")])).status_code == 401


async def test_refusals_are_kept(web: Client, store: Store, make_token: MakeToken):
    viewer = await make_token("viewer", queues=["a"])
    answer = await web.post(
        "/v1/do", content='[1,{"verb":"cancel","queue":"a","ids":["x"]},null]', headers=JSON | viewer
    )
    assert answer.status_code == 403
    entry = await until(lambda: first_entry(store))
    detail = entry.detail
    assert (detail["name"], detail["data"]["status"]) == ("refused", 403)
    assert detail["data"]["why"] == "this token lacks the right to operate"
    assert detail["data"]["who"] == viewer["authorization"].split("_")[1]
