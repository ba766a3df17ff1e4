from __future__ import annotations

from ropeway.stores.memory.clock import Clock

SECOND = 1_000_000_000


class Clocks:
    """A wall clock and a steady one, moved by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_700_000_000 * SECOND, 5 * SECOND

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds: int) -> None:
        self.wall += seconds * SECOND
        self.steady += seconds * SECOND


def test_it_tells_the_time_of_the_wall_in_milliseconds():
    clocks = Clocks()
    clock = clocks.clock()
    clocks.pass_(3)

    assert clock.now() == 1_700_000_003_000


def test_it_goes_on_steadily_when_the_wall_clock_is_set_back():
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall -= 3_600 * SECOND
    clocks.pass_(2)

    assert clock.now() == 1_700_000_002_000


def test_it_follows_the_wall_clock_over_a_suspended_machine():
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall += 3_600 * SECOND

    assert clock.now() == 1_700_003_600_000


def test_it_never_runs_backwards():
    clocks = Clocks()
    clock = clocks.clock()
    seen = []
    for jump in (0, 50, -100, 3, -1, 200, -7):
        clocks.wall += jump * SECOND
        clocks.pass_(1)
        seen.append(clock.now())

    assert seen == sorted(seen)
