from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropeway.errors import InvalidOption, RopewayError
from ropeway.showing import LONGEST_MESSAGE
from ropeway.store.url import connect
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.redis import RedisStore
from tests.odd import ODD

SCHEMES = (
    "memory",
    "sqlite",
    "postgresql",
    "postgres",
    "redis",
    "rediss",
    "redis+cluster",
    "redis+sentinel",
    "valkey",
    "http",
    "https",
)
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


NO_PLACES = [
    "redis://127.0.0.1:99999/0",
    "redis://127.0.0.1:0/0",
    "redis://127.0.0.1:٦٣٧٩/0",
    "redis://127.0.0.1:-1/0",
    "redis://localhost/-1",
    "redis://localhost/1_0",
    f"redis://localhost/{'9' * 5_000}",
    "redis+cluster://one:6379,other:99999",
    "redis+sentinel://one:99999/main",
    "postgresql://localhost:99999/jobs",
    "postgresql://one:5432,other:99999/jobs",
    "postgresql://localhost/jobs?port=99999",
    f"postgresql://localhost/jobs?host={'a' * 300}",
    "http://127.0.0.1:0",
    "https://",
    *(
        f"{scheme}://{host}/0"
        for scheme in ("redis", "postgresql", "https")
        for host in ("a" * 64, "a" * 4_000_000, "a\ud800", "a..b")
    ),
    *(f"{scheme}://me:\ud800@localhost/0" for scheme in ("redis", "postgresql")),
    "sqlite:///\ud800.db",
    "sqlite:///a%00b.db",
]


@pytest.mark.parametrize("url", NO_PLACES, ids=lambda url: ascii(url)[:60])
def test_a_place_that_cannot_be_is_refused_before_anybody_connects(url: str):
    with pytest.raises(InvalidOption) as refused:
        connect(url)

    assert refused.value.option == "url"
    assert len(str(refused.value)) <= LONGEST_MESSAGE
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "host", ["localhost", "my_redis", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "bücher.example", "a."]
)
@pytest.mark.parametrize("scheme", ["redis", "postgresql", "https"])
def test_a_host_that_can_be_is_taken(scheme: str, host: str):
    assert connect(f"{scheme}://{host}/0").url


@pytest.mark.parametrize("url", [0, 5, False, [], b"sqlite:///a.db", object(), ODD])
def test_what_is_no_text_is_no_url(url: object):
    with pytest.raises(InvalidOption, match="use text such as"):
        connect(url)


URLS = st.one_of(
    st.text(max_size=80),
    st.builds(
        "{}://{}{}{}".format,
        st.sampled_from(SCHEMES),
        st.text(st.sampled_from("a.:@[]%/,-_0159\ud800é \n\x00"), max_size=30),
        st.sampled_from(["", "/", "/0", "/x/y", "//", "/٥"]),
        st.one_of(st.just(""), st.builds("?{}={}".format, st.text(max_size=10), st.text(max_size=30))),
    ),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(URLS)
def test_any_url_is_taken_or_refused_by_our_own_errors(url: str):
    said = ""
    try:
        connect(url)
    except RopewayError as refused:
        said = str(refused)
    assert len(said) <= LONGEST_MESSAGE
