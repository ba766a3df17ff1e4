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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "{folder}/jobs.db"),
        ("sqlite:///../my%20jobs%3F%25.db?durability=fast", "{parent}/my jobs%3F%25.db?durability=fast"),
        ("sqlite:////srv/jobs.db?durability=fast", "/srv/jobs.db?durability=fast"),
    ],
)
def test_the_url_of_a_store_tells_the_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, shown: str):
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore.from_url(url)

    assert store.url == "sqlite:///" + shown.format(folder=tmp_path, parent=tmp_path.parent)
    assert Target.from_url(store.url).path == Target.from_url(url).path


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
