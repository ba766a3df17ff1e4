"""The memory store and every other, side by side."""

from __future__ import annotations

import os
from itertools import count
from typing import Final

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ropeway.testing.machine import StoreMachine

from .places import EVERYWHERE, PLACES, empty_folder, start_over

SEARCHES: Final = "ROPEWAY_EXAMPLES" in os.environ

# To shorten a failure takes minutes: it is done when somebody searches, not in every run.
SEARCH: Final = settings(stateful_step_count=50, phases=[Phase.generate, Phase.shrink])
EVERY_RUN: Final = SEARCH if SEARCHES else settings(SEARCH, max_examples=15, phases=[Phase.generate])
# A step takes PostgreSQL several times as long as it takes the others.
ON_POSTGRES: Final = SEARCH if SEARCHES else settings(EVERY_RUN, max_examples=6)


@pytest.mark.parametrize("place", [*PLACES, "sqlite-inbox"])
def test_the_store_does_what_the_memory_store_does(place: str) -> None:
    with empty_folder() as folder:
        numbers = count()

        def new_machine() -> StoreMachine:
            start_over()
            run = folder / str(next(numbers))
            run.mkdir()
            return StoreMachine(EVERYWHERE[place](run))

        search = ON_POSTGRES if place == "postgres" else EVERY_RUN
        run_state_machine_as_test(new_machine, settings=search)  # type: ignore[arg-type]  # takes any maker
