"""The wire format of commands and answers: MessagePack or JSON, for proxies that send them between processes.

A message is `[version, command, now]`. A reader refuses an unknown version; unknown fields come from a newer writer of
the same version, and are skipped. An answer with larger integers than MessagePack can hold is the byte c1 and JSON.
What the types of a command do not allow is refused with the path of the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from ..errors import InvalidOption
from ..job.instants import Instant
from ..job.wrong_values import wrong_values
from .commands import COMMANDS, Command, answer_type
from .wire_checks import check_texts

A = TypeVar("A")
Format: TypeAlias = Literal["msgpack", "json"]

VERSION: Final = 1


def _listed(value: object) -> list[Any]:
    """Fields are sequences of any kind, such as a range; on the wire they are lists."""
    if isinstance(value, Sequence):
        return list(value)
    raise NotImplementedError(f"cannot be encoded: {type(value).__name__}")


_ENCODERS: Final = {
    "msgpack": msgspec.msgpack.Encoder(enc_hook=_listed).encode,
    "json": msgspec.json.Encoder(enc_hook=_listed).encode,
}
_DECODERS: Final[dict[str, Any]] = {"msgpack": msgspec.msgpack.Decoder, "json": msgspec.json.Decoder}


def encode_command(command: Command[Any], now: Instant | None = None, form: Format = "msgpack") -> bytes:
    return _ENCODERS[form]((VERSION, command, now))


def decode_command(data: bytes, form: Format = "msgpack") -> tuple[Command[Any], Instant | None]:
    try:
        version, body, now = _reader(form, _MESSAGE).decode(data)
        if version != VERSION:
            raise InvalidOption("command", f"is of version {version}, and this Ropeway reads version {VERSION}")
        command = _reader(form, _COMMAND).decode(body)
        at = _reader(form, Instant | None).decode(now)
    except msgspec.ValidationError as error:
        [wrong] = wrong_values(error)
        # Without a place in the command: an unknown one, or a field is missing.
        place = wrong.path.removeprefix("$.") if wrong.path not in ("$", "$.verb") else "command"
        raise InvalidOption(place, f"cannot be read: {wrong.problem}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidOption("command", f"cannot be read: {error}") from error
    check_texts(command)
    return command, at


def encode_answer(answer: Any, form: Format = "msgpack") -> bytes:
    try:
        return _ENCODERS[form](answer)
    except OverflowError:
        # Details of events are values, with integers that only JSON can hold.
        return _IN_JSON + _ENCODERS["json"](answer)


def decode_answer(command: Command[A], data: bytes, form: Format = "msgpack") -> A:
    if data.startswith(_IN_JSON):
        form, data = "json", data[len(_IN_JSON) :]
    answer: A = _reader(form, answer_type(type(command))).decode(data)
    return answer


_IN_JSON: Final = b"\xc1"
"""A byte that MessagePack never uses: the answer follows in JSON, which has integers of any size."""
_MESSAGE: Final[Any] = tuple[int, msgspec.Raw, msgspec.Raw]
_COMMAND: Final[Any] = reduce(or_, COMMANDS)


@cache
def _reader(form: Format, shape: Any) -> Any:
    return _DECODERS[form](shape)
