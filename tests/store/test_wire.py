"""Commands as MessagePack and JSON; `tests/stores/wired.py` carries those of the whole suite."""

from __future__ import annotations

import msgspec
import pytest

from ropeway.errors import InvalidOption
from ropeway.store.commands import COMMANDS, Cancel, answer_type
from ropeway.store.values import Answer
from ropeway.store.wire import Format, decode_answer, decode_command, encode_answer, encode_command

FORMATS: list[Format] = ["msgpack", "json"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_command_comes_back_with_its_time(form: Format):
    command = Cancel("letters", ["a", "b"], "moved away")

    assert decode_command(encode_command(command, 5, form), form) == (command, 5)


@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_comes_back_as_what_the_command_answers(form: Format):
    answers = [Answer("done", "waiting"), Answer("missing")]

    assert decode_answer(Cancel("letters", ["a", "b"]), encode_answer(answers, form), form) == answers


def test_on_the_wire_a_command_is_named_by_its_verb():
    assert encode_command(Cancel("letters", ["a"]), form="json") == (
        b'[1,{"verb":"cancel","queue":"letters","ids":["a"],"reason":null},null]'
    )


def test_fields_of_a_newer_writer_are_skipped():
    assert decode_command(b'[1,{"verb":"clock","later":1},null]', "json")[1] is None


@pytest.mark.parametrize("data", [b"", b"[]", b'[1,{"verb":"fly"},null]', b'[1,{"verb":"count"},null]', b"\xc1"])
def test_what_is_no_command_is_refused(data: bytes):
    with pytest.raises(InvalidOption, match="command"):
        decode_command(data, "json")


def test_text_that_is_not_utf_8_is_refused():
    with pytest.raises(InvalidOption, match="command"):
        decode_command(b"\x93\x01\x81\xa4verb\xa1\xff\xc0", "msgpack")


def test_another_version_is_named():
    with pytest.raises(InvalidOption, match="version 2, and this Ropeway reads version 1"):
        decode_command(b'[2,{"verb":"fly"},null]', "json")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_answer_can_be_decoded(command: type[object]):
    msgspec.msgpack.Decoder(answer_type(command))  # type: ignore[arg-type]
