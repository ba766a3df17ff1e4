"""Commands that are repeated, or sent in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ropeway.errors import StoreUnavailable
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.store.values import JobUpdate
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job
from tests.stores.brokers import BrokerProcess
from tests.stores.network import Proxy, proxied
from tests.stores.places import empty_folder

from .conftest import served

MEGABYTE = '"' + "x" * 1_000_000 + '"'


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    with empty_folder() as folder:
        server = BrokerProcess(folder)
        server.start()
        async with proxied(server) as proxy:
            yield proxy
        server.kill()


async def test_a_call_that_may_be_repeated_is_if_its_answer_is_lost(proxy: Proxy):
    store = connect(proxy.url())
    await store.add([[new_job("a"), new_job("b"), new_job("c")]])

    proxy.cut_in_the_next_answer()
    assert (await store.count(QUEUE))["waiting"] == 3
    proxy.cut_in_the_next_answer()
    claimed = await store.claim(claim_request(2))
    assert [job.id for job in claimed.jobs] == ["a", "b"]
    assert (await store.count(QUEUE))["waiting"] == 1
    proxy.cut_in_the_next_answer()
    with pytest.raises(StoreUnavailable, match="whether the call took effect is unknown"):
        await store.publish(QUEUE, "imported", "{}")
    await store.close()


async def test_large_calls_go_in_parts(behind: Store):
    async with served(behind) as url:
        store = connect(url)
        # More than a server takes at once.
        bundles = [[new_job(f"job-{n:02}", data=MEGABYTE)] for n in range(20)]
        answers = await store.add(bundles)
        assert [added.id for [added] in answers] == [f"job-{n:02}" for n in range(20)]

        jobs = (await store.claim(claim_request(20))).jobs
        await store.update(QUEUE, [JobUpdate(job.id, job.token, progress=MEGABYTE) for job in jobs])
        settled = await store.settle(QUEUE, [complete(job, MEGABYTE) for job in jobs], claim_request(1, token="next"))
        assert {answer.verdict for answer in settled.answers} == {"done"}
        assert len(settled.answers) == 20
        assert settled.claimed is not None
        assert (await store.count(QUEUE))["completed"] == 20
        await store.close()
