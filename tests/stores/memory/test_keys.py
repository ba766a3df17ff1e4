from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.stores.memory import keys as module
from ropeway.stores.memory.keys import Key, SortedKeys


def key(number: int) -> Key:
    return (number // 10, number, f"id-{number}")


batches = st.lists(st.tuples(st.booleans(), st.lists(st.integers(-50, 50), max_size=30, unique=True)), max_size=20)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 4)


@given(batches)
def test_it_is_a_sorted_set(steps: list[tuple[bool, list[int]]]):
    kept, model = SortedKeys(), set[int]()
    for adds, numbers in steps:
        if adds:
            new = [number for number in numbers if number not in model]
            kept.add([key(number) for number in new])
            model.update(new)
        else:
            old = [number for number in numbers if number in model]
            kept.remove([key(number) for number in old])
            model.difference_update(old)

        ordered = [key(number) for number in sorted(model)]
        assert [*kept] == ordered
        assert len(kept) == len(ordered)
        assert kept.least == (ordered[0] if ordered else None)
        assert kept._lasts == [block[-1] for block in kept._blocks]


@given(st.sets(st.integers(-50, 50)), st.integers(-60, 60), st.integers(0, 30))
def test_pages_begin_anywhere_and_go_both_ways(numbers: set[int], bound: int, count: int):
    kept = SortedKeys(map(key, numbers))
    ordered = [key(number) for number in sorted(numbers)]
    place = key(bound)[:2]

    assert kept.first(count) == ordered[:count]
    assert kept.first(count, before=place) == [each for each in ordered if each[:2] < place][:count]
    assert kept.after(None, count) == ordered[:count]
    assert kept.after(place, count) == [each for each in ordered if each[:2] > place][:count]
    assert kept.back_from(None, count) == ordered[::-1][:count]
    assert kept.back_from(place, count) == [each for each in ordered[::-1] if each[:2] < place][:count]


def test_a_bound_of_one_number_lies_before_all_keys_that_begin_with_it():
    kept = SortedKeys(map(key, range(40)))

    assert kept.first(100, before=(2,)) == [key(number) for number in range(20)]


def test_a_key_that_is_not_there_cannot_be_removed():
    kept = SortedKeys([key(1), key(3)])

    with pytest.raises(KeyError):
        kept.remove([key(2)])


def test_random_removals_leave_no_trail_of_small_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "BLOCK", 16)
    kept = SortedKeys(map(key, range(4_000)))
    numbers = [*range(4_000)]
    random.Random(7).shuffle(numbers)

    kept.remove([key(number) for number in numbers[40:]])

    assert len(kept) == 40
    assert len(kept._blocks) <= 15
