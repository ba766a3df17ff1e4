"""Sorted lists of keys, whose cost per change is nearly independent of their length."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import accumulate
from typing import Final, TypeAlias

Key: TypeAlias = tuple[int, int, str]
"""Two numbers that define the order, unique together, and a job's id."""
Bound: TypeAlias = tuple[int] | tuple[int, int]
"""A position between keys: `(a,)` is before every key that begins with `a`."""

BLOCK: Final = 512


class SortedKeys:
    """A sorted list divided into blocks, so that no change moves more than a block.

    Adding at the end and removing at the front, which is what a queue does, need no search.
    """

    __slots__ = ("_blocks", "_lasts", "_length")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        ordered = sorted(keys)
        self._blocks = [ordered[at : at + BLOCK] for at in range(0, len(ordered), BLOCK)]
        self._lasts = [block[-1] for block in self._blocks]
        self._length = len(ordered)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Key]:
        for block in self._blocks:
            yield from block

    @property
    def least(self) -> Key | None:
        return self._blocks[0][0] if self._blocks else None

    def add(self, keys: list[Key]) -> None:
        """Adds keys; sorts the given list in place and may keep it."""
        keys.sort()
        self._length += len(keys)
        if not self._lasts or (keys and keys[0] > self._lasts[-1]):
            self._extend(keys)
        else:
            for key in keys:
                self._insert(key)

    def remove(self, keys: list[Key]) -> None:
        """Removes keys, all of which must be present; sorts the given list in place."""
        keys.sort()
        self._length -= len(keys)
        for key in keys[self._remove_head(keys) :]:
            self._remove(key)

    def first(self, count: int, before: Bound | None = None) -> list[Key]:
        """The least keys, at most `count`; only those before a bound, if one is given."""
        found: list[Key] = []
        for block in self._blocks:
            if before is not None and block[0] >= before:
                break
            end = count - len(found)
            if before is not None and block[-1] >= before:
                end = min(end, bisect_left(block, before))
            found += block[:end]
            if len(found) >= count:
                break
        return found

    def after(self, bound: Bound | None, count: int) -> list[Key]:
        """At most `count` keys, the least first, that lie after a bound and do not begin with it."""
        if bound is None:
            return self.first(count)
        behind = (*bound[:-1], bound[-1] + 1)
        blocks, at = self._blocks, bisect_left(self._lasts, behind)
        start = bisect_left(blocks[at], behind) if at < len(blocks) else 0
        found: list[Key] = []
        while at < len(blocks) and len(found) < count:
            found += blocks[at][start : start + count - len(found)]
            at, start = at + 1, 0
        return found

    def back_from(self, bound: Bound | None, count: int) -> list[Key]:
        """At most `count` keys, the greatest first, that lie before a bound (or the end)."""
        blocks = self._blocks
        at = len(blocks) if bound is None else min(bisect_right(self._lasts, bound) + 1, len(blocks))
        found: list[Key] = []
        while at > 0 and len(found) < count:
            at -= 1
            block = blocks[at]
            end = len(block) if bound is None else bisect_left(block, bound)
            found += block[max(0, end - (count - len(found))) : end][::-1]
        return found

    def counts(self, numbers: Iterable[int]) -> list[int]:
        """For each of the numbers, how many keys begin with it."""
        before = [0, *accumulate(map(len, self._blocks))]

        def index_of(bound: Bound) -> int:
            at = bisect_left(self._lasts, bound)
            return before[at] + (bisect_left(self._blocks[at], bound) if at < len(self._blocks) else 0)

        return [index_of((number + 1,)) - index_of((number,)) for number in numbers]

    def _extend(self, keys: list[Key]) -> None:
        blocks, lasts = self._blocks, self._lasts
        added = 0
        if blocks and len(blocks[-1]) < BLOCK:
            added = BLOCK - len(blocks[-1])
            blocks[-1] += keys[:added]
            lasts[-1] = blocks[-1][-1]
        for at in range(added, len(keys), BLOCK):
            blocks.append(keys[at : at + BLOCK])
            lasts.append(blocks[-1][-1])

    def _insert(self, key: Key) -> None:
        at = bisect_left(self._lasts, key)
        if at == len(self._blocks):
            self._extend([key])
            return
        block = self._blocks[at]
        block.insert(bisect_left(block, key), key)
        if len(block) > 2 * BLOCK:
            self._split(at)

    def _remove_head(self, keys: list[Key]) -> int:
        """Removes the longest prefix of `keys` that is at the front of this list; answers its length."""
        removed = 0
        while removed < len(keys):
            block = self._blocks[0]
            count = min(len(block), len(keys) - removed)
            if block[:count] != keys[removed : removed + count]:
                break
            removed += count
            if count < len(block):
                del block[:count]
            else:
                del self._blocks[0], self._lasts[0]
        return removed

    def _remove(self, key: Key) -> None:
        at = bisect_left(self._lasts, key)
        block = self._blocks[at]
        index = bisect_left(block, key)
        if block[index] != key:
            raise KeyError(key)
        del block[index]
        if not block:
            del self._blocks[at], self._lasts[at]
        elif index == len(block):
            self._lasts[at] = block[-1]
        elif len(block) < BLOCK // 4 and at + 1 < len(self._blocks):
            self._join(at)

    def _split(self, at: int) -> None:
        block = self._blocks[at]
        self._blocks.insert(at + 1, block[BLOCK:])
        del block[BLOCK:]
        self._lasts.insert(at, block[-1])

    def _join(self, at: int) -> None:
        """Merges a block with the next one, so that blocks do not stay small after many removals."""
        self._blocks[at] += self._blocks.pop(at + 1)
        self._lasts.pop(at)
        if len(self._blocks[at]) > 2 * BLOCK:
            self._split(at)


class MergedKeys:
    """Two lists of keys, read as one."""

    __slots__ = ("_both",)

    def __init__(self, one: SortedKeys, other: SortedKeys) -> None:
        self._both = (one, other)

    def __len__(self) -> int:
        return sum(map(len, self._both))

    def __iter__(self) -> Iterator[Key]:
        return merge(*self._both)

    def first(self, count: int, before: Bound | None = None) -> list[Key]:
        return sorted(key for keys in self._both for key in keys.first(count, before))[:count]

    def after(self, bound: Bound | None, count: int) -> list[Key]:
        return sorted(key for keys in self._both for key in keys.after(bound, count))[:count]

    def back_from(self, bound: Bound | None, count: int) -> list[Key]:
        return sorted((key for keys in self._both for key in keys.back_from(bound, count)), reverse=True)[:count]
