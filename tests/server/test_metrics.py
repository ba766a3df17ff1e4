"""`/metrics`."""

from __future__ import annotations

from ropeway import Queue
from ropeway.metrics import CONTENT_TYPE
from ropeway.metrics.families import SERVER
from ropeway.store.contract import Store
from tests.metrics.parsing import parsed

from .conftest import Client, MakeToken, Serve


async def test_prometheus_reads_the_store_and_the_server(store: Store, web: Client):
    await Queue("letters", store=store).add("run")

    answer = await web.get("/metrics")

    assert (answer.status_code, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    samples = parsed(answer.text)
    assert samples["ropeway_jobs", "letters", "waiting"] == 1
    assert samples["ropeway_server_requests",] == 1
    assert {family.name for family in SERVER} <= {key[0] for key in samples}
    assert samples["process_cpu_seconds_total",] > 0


async def test_a_token_shows_the_queues_that_it_reaches(store: Store, serve: Serve, make_token: MakeToken):
    for name in ("a", "b", "ropeway.audit"):
        await Queue(name, store=store).add("run")
    async with serve() as web:
        scoped = await web.get("/metrics", headers=await make_token("viewer", queues=["a"]))
        all_queues = await web.get("/metrics", headers=await make_token("viewer"))
        refused = await web.get("/metrics", headers=await make_token("producer"))

    assert _queues(scoped.text) == {"a"}
    assert _queues(all_queues.text) == {"a", "b"}
    assert refused.status_code == 403


def _queues(text: str) -> set[str]:
    return {key[1] for key in parsed(text) if key[0] == "ropeway_workers"}
