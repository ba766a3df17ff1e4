"""Submitting jobs: options, repeats and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway.job.options import JobOptions
from ropeway.server.job_fields import Submission

from .conftest import Client, MakeToken
from .test_working import submit

JOBS = "/v1/queues/q/jobs"


def test_every_option_of_add_can_be_submitted():
    fields = {{"max_attempts": "attempts"}.get(field, field) for field in Submission.__struct_fields__}
    assert set(JobOptions.__annotations__) <= fields


async def test_options_arrive(web: Client):
    job: dict[str, Any] = {
        "id": "my-id",
        "max_attempts": 7,
        "priority": -3,
        "delay": "1 hour",
        "tags": ["a", "b"],
        "backoff": {"kind": "exponential", "delay": 1, "jitter": 0.5, "max_delay": "1h"},
        "timeout": 5,
        "remove_on_complete": {"age": "1 day", "count": 10},
        "remove_on_fail": 5,
        "expires": "2 hours",
        "dead_letter": "letters",
        "dedupe": {"key": "k", "mode": "throttle", "ttl": "1m"},
        "webhook": {"url": "https://hooks.example.com/ends", "events": ["failed"]},
        "max_starts": 9,
        "keep_logs": 3,
        "stack_traces": 2,
        "version": 4,
    }
    await submit(web, **job)
    found = (await web.get(f"{JOBS}/my-id")).json()
    assert (found["state"], found["max_attempts"], found["priority"], found["tags"]) == ("delayed", 7, -3, ["a", "b"])
    assert (found["dead_letter"], found["dedupe"], found["version"]) == ("letters", "k", 4)


async def test_a_repeat_finds_the_job(web: Client):
    first = await submit(web, id="one", payload=1)
    again = await web.post(JOBS, json={"type": "task", "id": "one", "payload": 1})
    other = await web.post(JOBS, json={"type": "task", "id": "one", "payload": 2})
    assert first == {"id": "one", "created": True, "deduplicated": False}
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert (other.status_code, other.json()["error"]) == (409, "DuplicateJob")


async def test_a_key_makes_repeats_safe(web: Client):
    body = {"jobs": [{"type": "task", "payload": number} for number in range(3)]}
    key = {"idempotency-key": "order-42"}
    first = (await web.post("/v1/queues/q/batch", json=body, headers=key)).json()["jobs"]
    again = (await web.post("/v1/queues/q/batch", json=body, headers=key)).json()["jobs"]
    other = (await web.post("/v1/queues/q/batch", json=body, headers={"idempotency-key": "order-43"})).json()["jobs"]
    assert [job["id"] for job in first] == [job["id"] for job in again]
    assert ([job["created"] for job in again], [job["created"] for job in other]) == ([False] * 3, [True] * 3)
    assert (await web.get("/v1/queues/q")).json()["counts"]["waiting"] == 6


async def test_a_bulk_is_added_completely_or_not_at_all(web: Client):
    body = {"jobs": [{"type": "task"}, {"type": "task", "priority": 2**40}]}
    answer = await web.post("/v1/queues/q/batch", json=body)
    assert (answer.status_code, answer.json()["facts"]["item"]) == (422, 1)
    assert (await web.get("/v1/queues/q")).json()["counts"]["waiting"] == 0


async def test_a_flow_waits_for_its_children(web: Client, make_token: MakeToken):
    body = {"type": "report", "children": [{"type": "fetch", "payload": 1}, {"type": "fetch", "queue": "other"}]}
    added = (await web.post("/v1/queues/q/flows", json=body)).json()
    tree = (await web.get(f"/v1/queues/q/flows/{added['id']}")).json()
    assert (tree["state"], [child["queue"] for child in tree["children"]]) == ("waiting-children", ["q", "other"])
    scoped = await make_token("producer", queues=["q"])
    assert (await web.post("/v1/queues/q/flows", json=body, headers=scoped)).status_code == 403


@pytest.mark.parametrize(
    "child", [{"type": ""}, {"type": "fetch", "on_child_failure": "explode"}, {"type": "x", "id": "r"}]
)
async def test_a_flow_with_a_wrong_node_is_refused_as_a_whole(web: Client, child: Any):
    body = {"type": "report", "id": "r", "children": [{"type": "fetch"}, child]}
    assert (await web.post("/v1/queues/q/flows", json=body)).status_code == 422
    assert not any((await web.get("/v1/queues/q")).json()["counts"].values())


async def test_a_dead_letter_must_be_within_reach(web: Client, make_token: MakeToken):
    scoped = await make_token("producer", queues=["q"])
    body = {"type": "task", "dead_letter": "other"}
    assert (await web.post(JOBS, json=body, headers=scoped)).status_code == 403
    assert (await web.post("/v1/queues/q/batch", json={"jobs": [body]}, headers=scoped)).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": ""},
        {"type": "task", "state": "completed"},
        {"type": "task", "attempts": 5},
        {"type": "task", "token": "x"},
        {"type": "task", "max_attempts": 0},
        {"type": "task", "delay": "soon"},
        {"type": "task", "delay": 1, "run_at": "2030-01-01T00:00:00Z"},
        {"type": "task", "run_at": "2030-01-01T00:00:00"},
        {"type": "task", "id": "a b"},
        {"type": "task", "tags": ["x" * 100]},
        {"type": "task", "webhook": "http://127.0.0.1/internal"},
        {"type": 5},
        [],
    ],
)
async def test_what_does_not_fit_is_refused(web: Client, body: Any):
    answer = await web.post(JOBS, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert (await web.get("/v1/queues/q")).json()["counts"]["waiting"] == 0


async def test_msgpack_is_spoken_too(web: Client):
    import msgspec

    content = msgspec.msgpack.encode({"type": "task", "payload": [1, "two"]})
    kind = {"content-type": "application/msgpack"}
    answer = await web.post(JOBS, content=content, headers=kind)
    assert answer.headers["content-type"] == "application/msgpack"
    id = msgspec.msgpack.decode(answer.content)["id"]
    assert (await web.get(f"{JOBS}/{id}")).json()["payload"] == [1, "two"]


async def test_an_answer_that_msgpack_cannot_hold_is_json(web: Client):
    import msgspec

    number = 10**30
    id = (await web.post(JOBS, json={"type": "task", "payload": number})).json()["id"]
    claim = msgspec.msgpack.encode({"worker": "w"})
    answer = await web.post("/v1/queues/q/claim", content=claim, headers={"content-type": "application/msgpack"})
    assert answer.headers["content-type"] == "application/json"
    [job] = answer.json()["jobs"]
    assert (job["id"], job["payload"]) == (id, number)
