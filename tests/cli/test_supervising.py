"""Keeping processes, where no real worker is needed to see it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from ropeway.cli import supervising
from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.reloading import Sources
from ropeway.cli.supervising import Supervisor
from tests.patience import PATIENCE

SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")


class TroubledSources(Sources):
    """Cannot be looked at, then changes; `looked_again` is set when it is asked after that."""

    def __init__(self) -> None:
        super().__init__([])
        self._looks = 0
        self.looked_again = asyncio.Event()

    async def changed(self) -> str:
        self._looks += 1
        if self._looks == 1:
            raise RuntimeError("can't start new thread")
        if self._looks > 2:
            self.looked_again.set()
            await asyncio.Event().wait()
        return "app.py"


async def test_reloading_goes_on_after_an_error_that_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(supervising, "LONGEST_PAUSE", 0.01)
    caplog.set_level("INFO", "ropeway")
    sources = TroubledSources()
    supervisor = Supervisor(SLEEPER, 1, sources)

    running = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(sources.looked_again.wait(), PATIENCE)
    supervisor.stop()

    assert await asyncio.wait_for(running, PATIENCE) == ExitCode.OK
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("changes cannot be looked for")
    assert told[1:3] == ["app.py changed", "restarting"]
    assert "can't start new thread" in caplog.text


@pytest.mark.parametrize("reload", [False, True])
async def test_a_drained_process_is_not_started_again(caplog: pytest.LogCaptureFixture, reload: bool):
    caplog.set_level("INFO", "ropeway")
    ended = (sys.executable, "-c", f"raise SystemExit({int(ExitCode.DRAINED)})")

    code = await asyncio.wait_for(Supervisor(ended, 2, Sources([]) if reload else None).run(), PATIENCE)

    assert code == ExitCode.OK
    assert caplog.text.count("was drained, and is not started again") == 2
