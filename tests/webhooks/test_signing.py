"""Signatures of Standard Webhooks, and their check by receivers."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import InvalidOption, InvalidSignature
from ropeway.webhooks import verify
from ropeway.webhooks.signing import signature, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_signature_is_that_of_the_specification():
    """The example of the reference libraries."""
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY) == expected


def headers(body: bytes = BODY, at: int = 1000, secrets: tuple[str, ...] = (SECRET,)) -> dict[str, str]:
    return {name.title(): value for name, value in signed_headers("orders:1:2:completed", at, body, secrets)}


@pytest.mark.parametrize("secret", [SECRET, "a plain secret of any text", "whsec_not base64 at all!"])
def test_what_was_signed_is_verified(secret: str):
    given = headers(secrets=("one that is older than this", secret))
    assert verify(given, BODY, secret, now=1000) == {"test": 2432232314}
    assert verify(given, BODY.decode(), ["a new secret, unused", secret], now=1299) == {"test": 2432232314}


@pytest.mark.parametrize(
    ("given", "body", "secret", "now", "problem"),
    [
        (headers(), BODY, SECRET, 1301, "more than 300 s ago"),
        (headers(), BODY, SECRET, 699, "more than 300 s ago"),
        (headers(), BODY + b" ", SECRET, 1000, "not signed with this secret"),
        (headers(), BODY, "another secret of some length", 1000, "not signed with this secret"),
        (headers() | {"Webhook-Id": "other"}, BODY, SECRET, 1000, "not signed with this secret"),
        (headers() | {"Webhook-Timestamp": "1001"}, BODY, SECRET, 1000, "not signed with this secret"),
        (headers() | {"Webhook-Timestamp": "1e3"}, BODY, SECRET, 1000, "not a number"),
        (headers() | {"Webhook-Signature": "v1,é"}, BODY, SECRET, 1000, "not signed with this secret"),
        (headers() | {"Webhook-Signature": "v1,\udcff", "Webhook-Id": "\udcff"}, BODY, SECRET, 1000, "not signed with"),
        (headers() | {"Webhook-Signature": ""}, BODY, SECRET, 1000, "no header webhook-signature"),
        (headers(b"no json"), b"no json", SECRET, 1000, "not JSON"),
        (headers(b"[1]"), b"[1]", SECRET, 1000, "not a JSON object"),
        ({}, BODY, SECRET, 1000, "no header webhook-id"),
        (headers(), BODY, [], 1000, "no secret was given"),
    ],
)
def test_anything_else_is_refused(given: dict[str, str], body: bytes, secret: str, now: float, problem: str):
    with pytest.raises(InvalidSignature, match=problem):
        verify(given, body, secret, now=now)


@pytest.mark.parametrize("body", [{"test": 1}, 5, None])
def test_a_body_that_was_decoded_is_refused(body: Any):
    with pytest.raises(InvalidOption, match="as it was received"):
        verify(headers(), body, SECRET, now=1000)
