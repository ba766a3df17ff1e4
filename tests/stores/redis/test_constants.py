"""What the domain states is not written again in Lua."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, Final, get_args

import pytest

from ropeway.job.events import EVENT_NAMES, EVENTS_KEPT, LOCAL_EVENTS
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.moves import MOVES
from ropeway.job.rules import METRICS_OF, MetricName
from ropeway.job.stalls import StallVerdict, stall_reason
from ropeway.store.templates import fill
from ropeway.store.values import BATCH
from ropeway.stores.redis.constants import METRICS_KEPT, VALUES, literal

LUA: Final = files("ropeway.stores.redis") / "lua"
FILES: Final = [file for folder in (LUA, LUA / "lib") for file in folder.iterdir() if file.name.endswith(".lua")]
WORDS: Final = {*EVENT_NAMES, *MOVES, *get_args(MetricName), *get_args(StallVerdict)} - {*LOCAL_EVENTS}
NUMBERS: Final = {LAST_INSTANT, BATCH, EVENTS_KEPT, METRICS_KEPT}
SENTENCE: Final = "last renewed its lock"


def code_of(file: Any) -> str:
    return re.sub(r"^\s*--.*\n", "", str(file.read_text()), flags=re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_word_of_the_domain_is_spelled_out(file: Any):
    # In front of a colon it is the name of a field in JSON.
    quoted = {word for word in WORDS if re.search(rf"""(['"]){re.escape(word)}\1(?!:)""", code_of(file))}
    as_keys = {word for word in WORDS if re.search(rf"[{{,]\s+{re.escape(word)} = (true|'|[A-Z])", code_of(file))}

    assert not quoted | as_keys
    assert SENTENCE not in code_of(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_number_of_the_domain_is_spelled_out(file: Any):
    # Not milliseconds of a second, which instants are reckoned with.
    code = re.sub(r"[*/%] 1000\b", "", code_of(file))

    assert not {number for number in NUMBERS if re.search(rf"\b{number}\b", code)}


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(LookupError, match="COMPLETD"):
        fill("local state = '{{COMPLETD}}'", VALUES)


def test_words_can_stand_between_quotes():
    words = [value for value in VALUES.values() if isinstance(value, str) and not value.startswith("{")]

    assert not [word for word in words if re.search(r"""["\\]""", word)]


def test_lua_literals():
    value = {"a b": True, "list": [1, "it's"]}

    assert literal(value) == r"{ ['a b'] = true, ['list'] = { 1, 'it\'s' } }"


def test_scripts_count_a_move_in_two_metrics_at_most():
    assert max(map(len, METRICS_OF.values())) == 2


def test_the_pieces_of_a_stall_reason_make_it_whole():
    whole = stall_reason("spared", "host:1", 0, {"host": "was killed"})

    pieces = VALUES["BEFORE_PROCESS_END"], "was killed", VALUES["AFTER_PROCESS_END"], "1970-01-01T00:00:00.000Z"
    assert whole == f"stalled: worker host:1{''.join(map(str, pieces))}"
