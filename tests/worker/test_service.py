"""A worker's loops go on until they are told to end."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.errors import StoreUnavailable
from ropeway.worker.service import Service, Services
from tests.patience import PATIENCE


class Troubled(Service):
    """Fails once, and works from then on."""

    def __init__(self, error: BaseException) -> None:
        self._errors = [error]
        self.works = asyncio.Event()

    async def step(self) -> None:
        if self._errors:
            raise self._errors.pop()
        self.works.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("error", [StoreUnavailable("test://", "on purpose"), asyncio.CancelledError()], ids=repr)
async def test_it_goes_on_after_trouble_that_is_not_its_end(error: BaseException, caplog: pytest.LogCaptureFixture):
    service = Troubled(error)
    running = asyncio.create_task(Services([service]).run())
    async with asyncio.timeout(PATIENCE):
        await service.works.wait()
    assert "Troubled: " in caplog.text

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_error_of_one_ends_all():
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(
            Services([Troubled(ZeroDivisionError()), Troubled(StoreUnavailable("test://", ""))]).run(), PATIENCE
        )
