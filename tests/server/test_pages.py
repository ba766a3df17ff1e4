"""The commands on the page about HTTP, run as they stand there."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT

from tests.docs.pages import ROOT, blocks_of

from .conftest import Client


async def test_the_commands_of_the_page_work(web: Client):
    script = "".join(block.text for block in blocks_of(ROOT / "docs" / "http.md", "sh"))
    script = script.replace("http://127.0.0.1:8787", str(web.base_url).rstrip("/"))
    process = await asyncio.create_subprocess_exec("sh", "-eu", "-c", script, stdout=PIPE, stderr=STDOUT)
    printed = (await process.communicate())[0].decode()

    assert process.returncode == 0, printed
    assert '{"id":"welcome-42","created":true,"deduplicated":false}' in printed
    assert "urn:ropeway:problem" not in printed
    job = (await web.get("/v1/queues/emails/jobs/welcome-42")).json()
    assert (job["state"], job["result"]) == ("completed", {"sent": True})
    assert (await web.get("/v1/queues/emails/schedules/nightly")).status_code == 200
