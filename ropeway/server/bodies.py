"""Reading requests: bodies within limits, and their decoding by types that accept no unknown field."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

import msgspec

from ..errors import RopewayError
from .problems import Refused

Form = Literal["json", "msgpack"]
Receive = Callable[[], Awaitable[Any]]

FORMS: Final[dict[bytes, Form]] = {
    b"application/json": "json",
    b"application/msgpack": "msgpack",
    b"application/x-msgpack": "msgpack",
    b"application/vnd.msgpack": "msgpack",
}
MEDIA: Final[dict[Form, str]] = {"json": "application/json", "msgpack": "application/msgpack"}
MOST_PARAMETERS: Final = 100
LAST_SECONDS: Final = 2.0
"""How long bodies may still take when the server ends."""


class Gone(Exception):
    """The client closed the connection: nobody waits for an answer."""


def form_of(headers: Mapping[bytes, bytes]) -> Form:
    """How the body is encoded. Only types that no form of a web page can send are accepted."""
    kind, *parameters = headers.get(b"content-type", b"").lower().split(b";")
    form = FORMS.get(kind.strip())
    charsets = [part.strip() for part in parameters if part.strip()]
    if form is None or any(part.strip(b'"') not in (b"charset=utf-8", b'charset="utf-8') for part in charsets):
        raise Refused(
            415, "unsupported-media-type", "the content-type must be application/json (UTF-8) or application/msgpack"
        )
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refused(415, "unsupported-media-type", "a content-encoding is not accepted: send the body as it is")
    return form


def is_bodiless(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers


@cache
def may_be_empty(shape: Any) -> bool:
    """True if all fields of the body have defaults, so that it can be left out."""
    return (
        isinstance(shape, type)
        and issubclass(shape, msgspec.Struct)
        and not any(field.required for field in msgspec.structs.fields(shape))
    )


class Bodies:
    """Reads the bodies of requests, within limits."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit: Final = limit
        self._seconds: Final = seconds
        self._deadlines: set[asyncio.Timeout] = set()
        """Of the bodies that are being read."""
        self._is_ending = False

    async def read(self, receive: Receive, headers: Mapping[bytes, bytes], limit: int | None = None) -> bytes:
        """The whole body, if it arrives in time; `limit` is one of its own, in bytes."""
        most = self._limit if limit is None else limit
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(LAST_SECONDS if self._is_ending else self._seconds) as deadline:
                self._deadlines.add(deadline)
                try:
                    return await _read(receive, most)
                finally:
                    self._deadlines.discard(deadline)
        except TimeoutError:
            raise self._late() from None

    def end(self) -> None:
        """Gives those that are being read little time: the server ends, and would otherwise wait for them."""
        self._is_ending = True
        last = asyncio.get_running_loop().time() + LAST_SECONDS
        for deadline in self._deadlines:
            deadline.reschedule(min(last, deadline.when() or last))

    def _late(self) -> Refused:
        close = {"connection": "close"}
        if self._is_ending:
            return Refused(503, "ending", "the server ends: send this again", headers={**close, "retry-after": "1"})
        return Refused(408, "slow-body", f"the body did not arrive within {self._seconds:g} s", headers=close)


async def _read(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused(
        413, "body-too-large", f"the body has more than {limit:,} bytes", headers={"connection": "close"}, limit=limit
    )


def decode_body(data: bytes, form: Form, shape: Any) -> Any:
    decoder = _decoder(form, shape)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise Refused(422, "invalid-body", f"the body does not fit: {error}") from None
    except RecursionError:
        raise Refused(422, "invalid-body", "the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, "malformed-body", f"the body is not {'JSON' if form == 'json' else form}: {error}") from None
    except RopewayError as error:  # From a `__post_init__`.
        raise error from None


def decode_query(text: bytes, shape: Any) -> Any:
    """The parameters as a struct; a name that occurs twice is a list."""
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            max_num_fields=MOST_PARAMETERS,
            errors="strict",
        )
    except ValueError:
        raise Refused(400, "malformed-query", "the query cannot be read") from None
    if shape is None:
        if pairs:
            raise Refused(422, "invalid-query", f"there is no parameter {pairs[0][0][:100]!r}")
        return None
    given: dict[str, Any] = {}
    lists = _lists(shape)
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise Refused(422, "invalid-query", f"the parameter {name[:100]!r} is given twice")
        else:
            given[name] = value
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(422, "invalid-query", f"the query does not fit: {error}") from None


@cache
def _lists(shape: Any) -> frozenset[str]:
    """The fields of which there may be several."""
    fields = msgspec.structs.fields(shape)
    return frozenset(field.encode_name for field in fields if "tuple[" in str(field.type) or "list[" in str(field.type))


@cache
def _decoder(form: Form, shape: Any) -> Any:
    return msgspec.json.Decoder(shape) if form == "json" else msgspec.msgpack.Decoder(shape)
