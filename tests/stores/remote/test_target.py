"""What URLs of servers say."""

from __future__ import annotations

import pytest

from ropeway.errors import InvalidOption
from ropeway.store.url import connect
from ropeway.stores.remote.target import Target

SECRET = "rw_abc_secret"


def test_a_url_has_a_place_a_path_and_parameters():
    target = Target.from_url("https://Broker.example/jobs/?timeout=2.5&ca_file=/etc/ca.pem")

    assert (target.scheme, target.host, target.port, target.path) == ("https", "Broker.example", 443, "/jobs")
    assert (target.timeout, target.ca_file, target.token) == (2.5, "/etc/ca.pem", None)
    assert target.authority == "Broker.example"


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://[::1]:8787", "[::1]:8787"),
        ("http://localhost:80", "localhost"),
        ("http://bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_a_server_is_asked_under_its_name(url: str, authority: str):
    assert Target.from_url(url).authority == authority


@pytest.mark.parametrize("login", [SECRET, f"me:{SECRET}", f":{SECRET}"])
def test_a_token_of_a_url_is_used_and_not_shown(login: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWAY_TOKEN", "another")
    store = connect(f"https://{login}@broker:8787")

    assert Target.from_url(f"https://{login}@broker:8787").token == SECRET
    assert store.url == store.domain_of("emails") == "https://broker:8787"


def test_a_token_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWAY_TOKEN", SECRET)

    assert Target.from_url("http://broker").token == SECRET


@pytest.mark.parametrize(
    "url",
    [
        f"https://{SECRET}@",
        f"https://{SECRET}@[::1",
        f"https://{SECRET}@broker:99999",
        f"https://{SECRET}@bro ker",
        f"https://{SECRET}@broker/a b",
        f"https://{SECRET}@broker#there",
        f"https://{SECRET}@broker?timeout=0",
        f"https://{SECRET}@broker?timout=1",
        f"https://{SECRET}%0d%0a@broker",
    ],
)
def test_a_wrong_url_is_refused_without_telling_the_token(url: str):
    with pytest.raises(InvalidOption) as refused:
        connect(url)

    assert SECRET not in str(refused.value)
