from __future__ import annotations

import pytest

from ropeway.errors import InvalidOption
from ropeway.store.url import connect
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.redis import RedisStore

SCHEMES = ("memory", "sqlite", "postgresql", "postgres", "redis", "rediss", "redis+cluster", "redis+sentinel", "valkey")
HOSTS = ("[::1", "::1]", "[wrong]", "[::1]:6379,[::2", "ho℀st")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_cannot_be_read_is_refused_as_every_wrong_url(scheme: str, host: str):
    with pytest.raises(InvalidOption) as refused:
        connect(f"{scheme}://{host}/0")

    assert refused.value.option == "url"


@pytest.mark.parametrize(("scheme", "store"), [("redis", RedisStore), ("postgresql", PostgresStore)])
def test_a_store_that_is_made_without_connect_refuses_it_too(scheme: str, store: type[RedisStore | PostgresStore]):
    with pytest.raises(InvalidOption, match="an IPv6 address has brackets"):
        store.from_url(f"{scheme}://[::1/0")


@pytest.mark.parametrize("url", ["redis://me:s3:cr@et@[::1/0", "nowhere://me:s3:cr@et@host/0"])
def test_what_is_said_about_a_wrong_url_keeps_its_password(url: str):
    with pytest.raises(InvalidOption) as refused:
        connect(url)

    assert "//me:***@" in str(refused.value)
    assert not {"s3", "cr", "et@"} & set(str(refused.value).replace("'", " ").replace(":", " ").split())


@pytest.mark.parametrize(
    ("path", "url"), [("jobs.db", "sqlite:///jobs.db"), ("/srv/jobs.db", "sqlite:////srv/jobs.db")]
)
def test_a_path_is_answered_with_its_url(path: str, url: str):
    with pytest.raises(InvalidOption) as refused:
        connect(path)

    assert str(refused.value).endswith(f" {url}")


def test_a_database_in_memory_is_not_a_file_of_that_name():
    with pytest.raises(InvalidOption, match="use memory://"):
        connect("sqlite:///:memory:")
