"""Text is stored and returned unchanged, whatever it contains."""

from __future__ import annotations

import json
from typing import Final

from ...job.codec import SIZE_LIMIT, decode, encode
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import JobUpdate, Record
from ..arrange import active, add, add_one, claim, claim_one, events_of, read
from ..factories import NOW, QUEUE, complete, fail, new_job, retry

TEXTS: Final[dict[str, str]] = {
    "an escaped NUL": r'"a\u0000b"',
    "whitespace": ' {"a" : 1,\n\t"b":2} ',
    "the order of keys": '{"b":1,"a":2}',
    "duplicate keys": '{"a":1,"a":2}',
    "an empty key": '{"":{"":0}}',
    "an integer of 64 bits": str(2**63),
    "an integer beyond doubles": str(2**53 + 1),
    "a thousand digits": "9" * 1_000,
    "minus zero": "-0.0",
    "a float in full": "0.30000000000000004",
    "a float beyond doubles": "1e400",
    "emoji and astral planes": '"🚡 𝔘𝔫𝔦"',
    "composed and decomposed": '{"\u00e9":1,"e\u0301":2}',
    "right to left": '"\u202eabc\u202c"',
    "line separators": '"\u2028\u2029"',
    "control characters, escaped": r'"\u001b[31m\r\n\t\u007f"',
    "quotes of every kind": r'''"'; DROP TABLE job; -- \" ` $1 :1 ?1 %s {0} [[x]]"''',
    "markup": '"<script>alert(1)</script>&amp;"',
    "a lone escape of half a pair": r'"\ud800"',
    "deep nesting": "[" * 64 + "]" * 64,
    "null": "null",
    "an empty list, which is no empty map": '{"list":[],"map":{}}',
    "a megabyte": encode("x" * (SIZE_LIMIT - 2)),
}

VALUES: Final[dict[str, object]] = {
    "a NUL": "a\x00b",
    "a large integer": 2**63 + 1,
    "an integer beyond 64 bits": [2**64, -(2**63) - 1],
    "a thousand digits": 10**999,
    "nested": {"a": [1, 2.5, None, True, {"b": "é"}], "": []},
    "minus zero": -0.0,
    "false": False,
    "zero": 0,
    "an empty text": "",
    "an empty list": [],
    "an empty map": {},
    "unicode": "🚡\u2028\u202e",
}

BY_ID: Final = {kind.replace(" ", "-").replace(",", ""): text for kind, text in TEXTS.items()}
VALUES_BY_ID: Final = {kind.replace(" ", "-"): value for kind, value in VALUES.items()}
"""A job for each, named as its kind."""

IDS: Final = [
    "0", "00", "-1", "1e3", "__proto__", "a:b", "a..b", ".", "..", "-", "_", "A", "a", "nil", "now", "x" * 255
]  # fmt: skip
NAMES: Final = [
    "send e-mail",
    "os.system",
    "\u00e9",
    "e\u0301",
    "🚡",
    "a:b{c}*[d]",
    "%s",
    "'\"`;--",
    "<b>",
    "x" * 255,
]
QUEUES: Final = ["0", "a.b", "a-b", "a_b", "A", "a", "x" * 128, "jobs", "meta", "job", "wait", "0.0"]


class TestPayloads:
    async def test_data_comes_out_as_it_went_in(self, store: Store) -> None:
        added = await add(store, *(new_job(id, data=text) for id, text in BY_ID.items()))
        claimed = await claim(store, len(BY_ID))
        found = (await store.find(Find(QUEUE, ("active",), limit=len(BY_ID)))).jobs

        for jobs in (added, claimed, found):
            assert {job.id: job.data for job in jobs} == BY_ID

    async def test_a_repeated_add_is_recognised_by_its_text(self, store: Store) -> None:
        jobs = [[new_job(id, data=text)] for id, text in BY_ID.items()]
        await store.add(jobs, now=NOW)

        again = await store.add(jobs, now=NOW)
        others = await store.add([[new_job(id, data=text + " ")] for id, text in BY_ID.items()], now=NOW)

        assert {answer.verdict for [answer] in again} == {"found"}
        assert {answer.verdict for [answer] in others} == {"conflict"}

    async def test_changed_data_comes_out_as_it_went_in(self, store: Store) -> None:
        await add(store, *map(new_job, BY_ID))
        held = await claim(store, len(BY_ID))

        await store.update(QUEUE, [JobUpdate(job.id, job.token, data=BY_ID[job.id]) for job in held], now=NOW)

        assert {id: (await read(store, id)).data for id in BY_ID} == BY_ID

    async def test_a_result_comes_out_as_it_went_in_and_is_announced(self, store: Store) -> None:
        await add(store, *map(new_job, VALUES_BY_ID))
        held = await claim(store, len(VALUES_BY_ID))

        await store.settle(QUEUE, [complete(job, encode(VALUES_BY_ID[job.id])) for job in held], now=NOW)

        for id, value in VALUES_BY_ID.items():
            assert (await read(store, id)).result == encode(value)
        announced = {id: detail["result"] for id, detail in await events_of(store, "complete")}
        assert _exactly(announced) == _exactly(VALUES_BY_ID)

    async def test_progress_comes_out_as_it_went_in_and_is_announced(self, store: Store) -> None:
        await add(store, *map(new_job, VALUES_BY_ID))
        held = await claim(store, len(VALUES_BY_ID))
        updates = [JobUpdate(job.id, job.token, progress=encode(VALUES_BY_ID[job.id])) for job in held]

        await store.update(QUEUE, updates, now=NOW)

        for id, value in VALUES_BY_ID.items():
            assert (await read(store, id)).progress == encode(value)
        announced = {id: detail["progress"] for id, detail in await events_of(store, "progress")}
        assert _exactly(announced) == _exactly(VALUES_BY_ID)

    async def test_a_result_of_a_megabyte_is_kept(self, store: Store) -> None:
        held = await active(store)
        text = encode("é" * ((SIZE_LIMIT - 2) // 2))

        await store.settle(QUEUE, [complete(held, text)], now=NOW)

        assert (await read(store, held.id)).result == text

    async def test_reasons_and_traces_come_out_as_they_went_in(self, store: Store) -> None:
        held = await active(store, attempts=5)
        reason, trace = "'\"\x1b[31m\r\n\u2028🚡 $1", "é\n" * 10_000

        await store.settle(QUEUE, [retry(held, reason=reason, trace=trace)], now=NOW)

        history = await store.history(QUEUE, held.id)
        assert (await read(store, held.id)).reason == reason
        assert history is not None
        assert [(failure.reason, failure.trace) for failure in history.failures] == [(reason, trace)]

    async def test_log_lines_come_out_as_they_went_in(self, store: Store) -> None:
        held = await active(store)
        lines = ("", "\x1b[31mred", "a\r\nb", "\u2028", "🚡", "'; --", "x" * 65_536)

        await store.update(QUEUE, [JobUpdate(held.id, held.token, log=lines)], now=NOW)

        history = await store.history(QUEUE, held.id)
        assert history is not None
        assert tuple(line.text for line in history.log) == lines

    async def test_a_reason_for_cancelling_comes_out_as_it_went_in(self, store: Store) -> None:
        job = await add_one(store)

        await store.cancel(QUEUE, [job.id], "'\"\u2028🚡", now=NOW)

        assert (await read(store, job.id)).reason == "'\"\u2028🚡"

    async def test_records_come_out_as_they_went_in(self, store: Store) -> None:
        for n, text in enumerate(TEXTS.values()):
            await store.remember(Record("text", str(n), text), now=NOW)

        recalled = {record.key: record.value for record in await store.recall("text", now=NOW)}
        assert recalled == {str(n): text for n, text in enumerate(TEXTS.values())}

    async def test_the_options_come_out_as_they_went_in(self, store: Store) -> None:
        job = new_job(attempts=7, backoff=1.5, remove_on_fail=3, max_starts=9)

        [stored] = await add(store, job)

        assert stored.options == job.options


class TestNamesOfThings:
    async def test_ids_are_text_and_differ_by_every_letter(self, store: Store) -> None:
        await store.add([[new_job(id, data=encode(id)) for id in IDS]], now=NOW)

        found = await store.get(QUEUE, IDS)

        assert [job and (job.id, decode(job.data)) for job in found] == [(id, id) for id in IDS]

    async def test_an_id_that_looks_like_a_number_is_settled_like_any_other(self, store: Store) -> None:
        for id in IDS:
            held = await active(store, id=id)
            settled = await store.settle(QUEUE, [fail(held, reason=id)], now=NOW)
            assert [answer.verdict for answer in settled.answers] == ["done"]

        assert [(await read(store, id)).reason for id in IDS] == IDS

    async def test_job_names_are_exact(self, store: Store) -> None:
        await store.add([[new_job(name=name) for name in NAMES]], now=NOW)

        for name in NAMES:
            assert (await claim_one(store, names=(name,))).name == name

    async def test_paused_job_names_are_exact(self, store: Store) -> None:
        await store.add([[new_job(name=name) for name in NAMES]], now=NOW)
        await store.configure(QUEUE, pause_names=NAMES[1:], now=NOW)

        assert [job.name for job in await claim(store, 100)] == NAMES[:1]

    async def test_queues_never_run_into_each_other(self, store: Store) -> None:
        for queue in QUEUES:
            await add(store, new_job("a", queue=queue, data=encode(queue)))

        assert [decode((await read(store, "a", queue)).data) for queue in QUEUES] == QUEUES
        assert await store.queues() == sorted(QUEUES)
        for queue in QUEUES:
            assert [job.queue for job in [await claim_one(store, queue=queue)]] == [queue]


def _exactly(value: object) -> str:
    """Tells -0.0 from 0 and 1 from True, which are equal in Python."""
    return json.dumps(value, sort_keys=True)
