"""The small measure of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway


def test_without_a_url_a_file_is_made_and_removed(ropeway: Ropeway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ROPEWAY_URL")

    ran = ropeway("bench", "--jobs", "100")

    assert ran.code == 0
    assert "jobs/s" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_with_a_url_a_queue_is_made_and_removed(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    figures = ropeway("bench", "--jobs", "100", "--json").json

    assert figures["jobs"] == 100
    assert min(value for value in figures.values() if isinstance(value, float)) > 0
    assert arrange.on_store(lambda store: store.queues()) == [QUEUE]
