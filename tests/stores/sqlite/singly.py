"""Jobs that are added one by one, as they go by the inbox, and where they are found."""

from __future__ import annotations

from pathlib import Path

from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import claim_request, new_job

from . import processes


async def add(store: SQLiteStore, *ids: str) -> None:
    """One after the other, each by the inbox."""
    for id in ids:
        [[answer]] = await store.add([[new_job(id, is_fresh=True)]])
        assert answer.verdict == "created"


def in_file(path: Path) -> list[str]:
    """What another process sees that knows nothing of the inbox."""
    script = "import apsw; say(apsw.Connection(path).execute(\"SELECT group_concat(id, ' ') FROM job\").get or '')"
    return processes.run(script, path).split()


async def ids(store: SQLiteStore, most: int = 100) -> list[str]:
    """Of what can be claimed, in that order."""
    return [job.id for job in (await store.claim(claim_request(most))).jobs]
