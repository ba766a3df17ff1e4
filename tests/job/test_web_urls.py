"""Which URLs and addresses webhooks may be sent to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from ropeway.job.web_addresses import address_problem
from ropeway.job.web_urls import BadUrl, url_problem, web_url

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e"]
NOT_PUBLIC = [
    *("127.0.0.1", "127.255.0.1", "0.0.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.51.100.1"),
    *("203.0.113.1", "198.18.0.1", "192.88.99.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *(
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "::ffff:0:127.0.0.1",
        "fe80::1",
        "fec0::1",
    ),
    *("fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1"),
    *("2001:0:4136:e378::1", "2001:10::1", "2001:20::1", "2001:2::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1"),
    *("2a00:1450::5efe:7f00:1", "2a00:1450::200:5efe:7f00:1", "4000::1", "fe80::1%eth0"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str):
    assert address_problem(ip_address(address)) is None


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address: str):
    assert address_problem(ip_address(address)) is not None


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/"),
        *(
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://0/",
            "https://127.1/",
            "https://2130706433/",
        ),
        *("https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://127.0.0.01/", "https://1.2.3.4.5/"),
        *(
            "https://127.0.0.1./",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://256.1.1.1/",
        ),
        *("https://example.com@127.0.0.1/", "https://user:pw@example.com/", "https://example.com\\@127.0.0.1/"),
        *(
            "https://example.com/\r\nHost: x",
            "https://exa\tmple.com/",
            " https://example.com/",
            "https://example.com/ ",
        ),
        *("https://example.com:0/", "https://example.com:99999/", "https://example.com:/x", "https://exa%6dple.com/"),
        *(
            "https://１２７.0.0.1/",
            "https://ⓛocalhost/",
            "https://münchen.de/",
            "https://[fe80::1%25eth0]/",
            "https:///x",
        ),
        *("https://", "ftp://example.com/", "//example.com/", "example.com", "https:example.com", "https://a..b/", ""),
        *("https://example.com/#part", "https://[::1", "https://-a.com/", f"https://example.com/{'a' * 2_000}"),
    ],
)
def test_a_url_that_leads_elsewhere_or_is_odd_is_refused(url: str):
    assert not is_accepted(url)


def is_accepted(url: str) -> bool:
    try:
        return url_problem(web_url(url), ()) is None
    except BadUrl:
        return False


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://example.com", ("example.com", 443, "/")),
        ("HTTPS://Example.COM.:8443/a?b=c@d", ("example.com", 8443, "/a?b=c@d")),
        ("https://example.com?b", ("example.com", 443, "/?b")),
        ("https://1.2.3.4/x", ("1.2.3.4", 443, "/x")),
        ("https://[2606:4700::1111]:444/", ("2606:4700::1111", 444, "/")),
        ("https://xn--mnchen-3ya.de/", ("xn--mnchen-3ya.de", 443, "/")),
    ],
)
def test_a_url_is_taken_apart(url: str, parts: tuple[str, int, str]):
    read = web_url(url)
    assert (read.host, read.port, read.target) == parts
    assert url_problem(read, ()) is None


def test_a_host_is_allowed_by_name_with_its_port_or_any():
    url = web_url("http://localhost:8000/")
    assert url_problem(url, ("localhost:8000",)) is None
    assert url_problem(url, ("localhost",)) is None
    assert url_problem(url, ("localhost:80", "otherhost")) is not None
