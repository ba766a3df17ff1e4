"""A stream of pictures, one per interval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from ...errors import StoreError
from .gathering import Gatherer
from .picture import Picture


async def pictures(gatherer: Gatherer, interval: float) -> AsyncGenerator[Picture, None]:
    """Raises if the store cannot be read at first; later errors are shown in the picture, and retried."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    picture = await gatherer.look()
    while True:
        yield picture
        await asyncio.sleep(max(interval / 2, begun + interval - loop.time()))
        begun = loop.time()
        try:
            picture = await gatherer.look()
        except StoreError as error:
            picture = msgspec.structs.replace(picture, trouble=str(error))
