"""What `ropeway doctor` says, as a page."""

from __future__ import annotations

from ropeway import Queue


async def test_findings_say_what_to_do(store, pages):
    queue = Queue("mail", store=store)
    await queue.add("welcome")
    await Queue("idle", store=store).pause()
    page = await pages.get("/doctor")
    assert "1 problem, 1 warning" in page.text
    assert "1 job to do, and no worker" in page.text
    assert "start one: ropeway worker MODULE:ATTR" in page.text
    assert "ropeway queues resume idle" in page.text
    assert page.text.index("no worker") < page.text.index("it is paused"), "the worst first"
    assert "it can be opened" in page.text


async def test_findings_are_of_the_queues_that_a_token_reaches(store, visit, make_token):
    for name in ("mail", "secret"):
        await Queue(name, store=store).add("welcome")
    headers = await make_token("viewer", queues=["mail"])
    async with visit(headers={**headers, "sec-fetch-site": "same-origin"}) as client:
        page = await client.get("/doctor")
        assert "1 problem, 0 warnings" in page.text
        assert "secret" not in page.text
        assert "it can be opened" not in page.text


async def test_all_is_well_with_nothing_to_do(pages):
    assert "All is well" in (await pages.get("/doctor")).text
