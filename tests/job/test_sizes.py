"""Sizes of memory."""

from __future__ import annotations

import pytest

from ropeway.job.sizes import size_in_bytes


@pytest.mark.parametrize(
    ("given", "size"), [(5, 5), ("512 MB", 512_000_000), ("2GiB", 2 * 2**30), ("1 kb", 1000), ("3 KiB", 3072)]
)
def test_a_size_is_bytes_or_a_text_with_a_unit(given: object, size: int):
    assert size_in_bytes("max_process_memory", given) == size
