from __future__ import annotations

from pathlib import Path

import pytest

from ropeway.errors import InvalidOption
from ropeway.store.url import connect
from ropeway.stores.sqlite import SQLiteStore
from ropeway.stores.sqlite.target import Target


def test_three_slashes_mean_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)

    assert Target.from_url("sqlite:///jobs/today.db").path == str(tmp_path / "jobs/today.db")


def test_four_slashes_mean_the_root():
    assert Target.from_url("sqlite:////srv/jobs.db").path == "/srv/jobs.db"


def test_escaped_characters_are_read():
    assert Target.from_url("sqlite:////srv/my%20jobs%3F.db").path == "/srv/my jobs?.db"


@pytest.mark.parametrize(("query", "is_durable"), [("", True), ("?durability=full", True), ("?durability=fast", False)])
def test_durability_is_full_unless_the_url_says_fast(query: str, is_durable: bool):
    assert Target.from_url(f"sqlite:///jobs.db{query}").is_durable is is_durable


@pytest.mark.parametrize("query", ["durability=slow", "durability=", "allow_network=yes", "synchronous=OFF", "mode=ro"])
def test_what_the_url_cannot_say_is_refused(query: str):
    with pytest.raises(InvalidOption):
        SQLiteStore.from_url(f"sqlite:///jobs.db?{query}")


@pytest.mark.parametrize("url", ["sqlite:jobs.db", "sqlite://jobs.db", "sqlite://", "sqlite:///", "sqlite:///a%00b"])
def test_a_url_without_a_path_is_refused(url: str):
    with pytest.raises(InvalidOption):
        SQLiteStore.from_url(url)


def test_making_a_handle_touches_nothing(path: Path):
    connect(f"sqlite:///{path}")

    assert list(path.parent.iterdir()) == []
