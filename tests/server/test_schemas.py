"""JSON Schemas of payloads."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import InvalidOption, Queue
from ropeway.server import broker
from ropeway.store.contract import Store

from .conftest import Client, Serve

MAIL = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "copies": {"type": "array", "items": {"type": "string"}}},
    "required": ["to"],
}
JOBS = "/v1/queues/mail/jobs"


async def test_a_payload_that_does_not_fit_is_refused_with_every_place(serve: Serve):
    async with serve(schemas={"send": MAIL}) as web:
        fine = await web.post(JOBS, json={"type": "send", "payload": {"to": "a"}})
        other = await web.post(JOBS, json={"type": "other", "payload": 1})
        wrong = await web.post(JOBS, json={"type": "send", "payload": {"copies": ["a", 7]}})
        counts = (await web.get("/v1/queues/mail")).json()["counts"]
    assert (fine.status_code, other.status_code, wrong.status_code) == (201, 201, 422)
    problem = wrong.json()
    assert problem["type"] == "urn:ropeway:problem:invalid-payload"
    assert "7 is not of type" in problem["detail"]
    assert [(each["job"], each["path"]) for each in problem["facts"]["errors"]] == [(0, "$"), (0, "$.copies[1]")]
    assert counts["waiting"] == 2


@pytest.mark.parametrize("key", ["send", "mail", "mail/send"])
async def test_schemas_are_given_by_type_queue_or_both(serve: Serve, key: str):
    async with serve(schemas={key: {"type": "integer"}}) as web:
        assert (await web.post(JOBS, json={"type": "send", "payload": "x"})).status_code == 422
        assert (await web.post("/v1/queues/q/jobs", json={"type": "other", "payload": "x"})).status_code == 201


async def test_all_ways_to_submit_are_checked(serve: Serve):
    good, bad = {"type": "send", "payload": {"to": "a"}}, {"type": "send", "payload": {}}
    async with serve(schemas={"send": MAIL}) as web:
        batch = await web.post("/v1/queues/mail/batch", json={"jobs": [good, bad]})
        flow = await web.post("/v1/queues/mail/flows", json={**good, "children": [bad]})
        schedule = await web.put("/v1/queues/mail/schedules/s", json={**bad, "every": 60})
        counts = (await web.get("/v1/queues/mail")).json()["counts"]
    assert [answer.status_code for answer in (batch, flow, schedule)] == [422, 422, 422]
    assert batch.json()["facts"]["errors"][0]["job"] == 1
    assert not any(counts.values())


async def test_commands_of_remote_stores_are_checked(serve: Serve):
    def add(data: str) -> list[Any]:
        return [1, {"verb": "add", "bundles": [[["mail", "a", "send", data]]]}, None]

    async with serve(schemas={"send": MAIL}) as web:
        answers = [await web.post("/v1/do", json=add(data)) for data in ("{}", "nonsense", '{"to": "a"}')]
    assert [answer.status_code for answer in answers] == [422, 422, 200]


async def test_a_job_that_was_added_by_other_ways_is_checked_before_it_is_given_out(serve: Serve, store: Store):
    queue = Queue("mail", store=store)
    bad = await queue.add("send", {}, attempts=5)
    good = await queue.add("send", {"to": "a"})
    async with serve(schemas={"send": MAIL}) as web:
        claimed = (await web.post("/v1/queues/mail/claim", json={"worker": "w", "count": 2})).json()["jobs"]
    assert [job["id"] for job in claimed] == [good.id]
    snapshot = await bad.refresh()
    assert (snapshot.state, snapshot.attempts_made) == ("failed", 1)
    assert snapshot.reason == 'invalid payload: "to" is a required property'


@pytest.mark.parametrize(
    ("schemas", "problem"),
    [
        ({"send": {"type": "nonsense"}}, "of 'send' is no JSON Schema"),
        ({"send": {"$ref": "https://example.com/x.json"}}, "put it into \\$defs"),
        ({"send": {"$ref": "file:///etc/passwd"}}, "put it into \\$defs"),
        ({1: {}}, "use the name of a type or a queue"),
        ([MAIL], "give JSON Schemas by type or queue"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schemas: Any, problem: str):
    with pytest.raises(InvalidOption, match=problem):
        broker("memory://", schemas=schemas)


async def test_a_server_without_schemas_checks_nothing(web: Client):
    assert (await web.post(JOBS, json={"type": "send", "payload": 7})).status_code == 201
