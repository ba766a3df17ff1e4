"""Where there is no inbox: on other systems, and on file systems that machines may share."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropeway.stores.sqlite import ingest
from ropeway.stores.sqlite.target import Target

from . import processes


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_need_nothing_that_it_is_made_of(path: Path, system: str):
    script = f"""
    for name in [name for name in sys.modules if name.startswith("ropeway")]:
        del sys.modules[name]
    sys.modules["fcntl"] = None
    sys.platform = {system!r}
    from ropeway.stores.sqlite import SQLiteStore
    async def main():
        store = new_store()
        await store.add([[new_job(is_fresh=True)]])
        say((await store.count(QUEUE))["waiting"])
        say(os.path.exists(path + "-inbox"))
        await store.close()
    asyncio.run(main())
    """
    assert processes.run(script, path).split() == ["1", "False"]


@pytest.mark.parametrize(("kind", "expected"), [("ext4", True), ("nfs4", False), ("9p", False), ("", False)], ids=str)
def test_only_local_disks_have_one(path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, expected: bool):
    monkeypatch.setattr(ingest, "filesystem", lambda _: kind)

    assert ingest.has_inbox(str(path), Target(str(path), f"sqlite:///{path}")) == expected
