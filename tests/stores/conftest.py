"""Every test that takes `new_handle`, or `store`, runs once on each store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from ropeway.testing.conformance.fixtures import NewHandle, sibling, store

from .places import EVERYWHERE, empty_folder

__all__ = ["new_handle", "sibling", "store"]


@pytest.fixture(params=EVERYWHERE)
def new_handle(request: pytest.FixtureRequest) -> Iterator[NewHandle]:
    with empty_folder() as folder:
        yield EVERYWHERE[cast(str, request.param)](folder)
