"""Marks: in the row of a job's state, or rows of their own; signals that come while a job is postponed."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ropeway.job.codec import encode
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.marks import Mark, Marking, Notice
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord
from ropeway.store.url import connect
from ropeway.store.values import JobUpdate
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.placeholders import MARKS_IN_ROW
from ropeway.testing.arrange import active, add, claim, claim_one, events_of, read
from ropeway.testing.factories import LOCK, NOW, QUEUE, complete, new_jobs, retry, token_of

from .conftest import Execute, Other

SIGNAL: Final = "signal:paid"
MARKS: Final = 100


LONG: Final = f'"{"x" * MARKS_IN_ROW}"'
"""A value for which the row of a job's state has no room."""


def marking(*names: str, value: str = "1") -> Marking:
    return Marking(tuple(Mark(name, value) for name in names))


def await_signal(job: JobRecord) -> Outcome:
    return Outcome(job.id, token_of(job), "postpone", delay=LAST_INSTANT, awaits=SIGNAL)


async def test_a_job_that_goes_to_the_back_of_the_line_takes_its_marks_along_unchanged(
    store: PostgresStore, execute: Execute
):
    held = await active(store, attempts=3)
    await store.update(QUEUE, [JobUpdate(held.id, held.token, marking=marking("a", "b", value=LONG))], now=NOW)
    written = "SELECT array_agg(ctid::text ORDER BY name) FROM ropeway.mark"
    before = execute(written)

    await store.settle(QUEUE, [retry(held)], now=NOW)
    again = await claim_one(store)
    await store.update(QUEUE, [JobUpdate(again.id, again.token, marking=marking("c", value=LONG))], now=NOW)

    assert execute(f"{written} WHERE name < 'c'") == before
    assert [mark.name for mark in (await read(store, held.id)).marks] == ["a", "b", "c"]


async def test_a_removed_job_leaves_no_row(store: PostgresStore, execute: Execute):
    held = await active(store)
    await store.update(QUEUE, [JobUpdate(held.id, held.token, marking=marking("a", value=LONG))], now=NOW)
    assert execute("SELECT count(*) FROM ropeway.mark") == [(1,)]

    await store.remove(QUEUE, [held.id], force=True, now=NOW)

    assert execute("SELECT count(*) FROM ropeway.mark") == [(0,)]


async def test_several_updates_of_one_job_in_a_call_take_effect_in_order(store: PostgresStore):
    changes = (
        marking("a", "b", "c"),
        Marking(forgets=("a", "b")),
        Marking((Mark("a", "2"), Mark("a", "3")), forgets=("missing",), notices=(Notice("signalled"),)),
        Marking((Mark("c", "4"),), forgets=("c",), notices=(Notice("signalled", '{"name":"\\u0000é"}'),)),
    )
    memory = connect("memory://")
    seen: list[object] = []
    for each in (store, memory):
        held = await active(each, id="job")
        await each.update(QUEUE, [JobUpdate("job", held.token, marking=change) for change in changes], now=NOW)
        seen.append(((await read(each, "job")).marks, await events_of(each, "signalled")))

    assert seen[0] == seen[1]
    assert [mark.value for mark in (await read(store, "job")).marks] == ["3", "4"]


async def test_marks_in_the_row_and_beyond_it_are_one_set(store: PostgresStore, execute: Execute):
    half = f'"{"é" * (MARKS_IN_ROW // 4)}"'
    changes = (
        marking("a", "b"),
        Marking((Mark("b", half), Mark("c", "1"))),
        Marking((Mark("d", half), Mark("a", "2")), forgets=("c",)),
        Marking((Mark("e", half),), forgets=("d",)),
        Marking((Mark("f", LONG), Mark("c", "3"))),
        marking("g"),
    )
    memory = connect("memory://")
    seen: list[object] = []
    for each in (store, memory):
        held = await active(each, id="job", attempts=2)
        for number, change in enumerate(changes):
            await each.update(QUEUE, [JobUpdate("job", held.token, marking=change)], now=NOW + number)
        await each.settle(QUEUE, [replace(retry(held), marking=Marking(forgets=("a",)))], now=NOW)
        again = await claim_one(each)
        await each.settle(QUEUE, [complete(again)], now=NOW)
        await each.retry(QUEUE, ["job"], marking=Marking((Mark("h", LONG),), ("f", "g")), now=NOW)
        seen.append((again.marks, (await read(each, "job")).marks))

    assert seen[0] == seen[1]
    assert execute("SELECT count(*) > 1 FROM ropeway.mark") == [(True,)]


async def test_a_batch_answers_and_announces_each_by_itself(store: PostgresStore):
    await add(store, *new_jobs(4))
    jobs = (await claim(store, 4))[::-1]
    await store.cancel(QUEUE, [jobs[1].id], now=NOW)
    notices = (Notice("phase-completed", '{"phase":"a"}'), Notice("phase-started", '{"phase":"b"}'))
    changes = [JobUpdate(job.id, job.token, progress="5", marking=Marking(notices=notices)) for job in jobs[:3]]
    changes += [JobUpdate(jobs[3].id, jobs[3].token, marking=marking("a")), JobUpdate("none", "t", progress="1")]

    answers = await store.update(QUEUE, changes, now=NOW)

    assert [answer.verdict for answer in answers] == ["done", "lost", "done", "done", "missing"]
    for what in ("progress", "phase-completed", "phase-started"):
        assert {id for id, _ in await events_of(store, what)} == {jobs[0].id, jobs[2].id}


class TestAtTheSameMoment:
    async def test_an_update_that_waits_for_a_renewal_is_written(self, store: PostgresStore, other: Other) -> None:
        await add(store, *new_jobs(2))
        jobs = await claim(store, 2)
        await other.run(f"SELECT ropeway.renew('{QUEUE}', ARRAY['{jobs[1].id}'], ARRAY['{jobs[1].token}'], {LOCK})")
        changes = [JobUpdate(job.id, job.token, progress="5", marking=marking("a")) for job in jobs]

        answers = await other.commit_when_waited_for(store.update(QUEUE, changes, now=NOW))

        assert [answer.verdict for answer in answers] == ["done", "done"]
        assert [(job.progress, len(job.marks)) for job in await store.get(QUEUE, [job.id for job in jobs]) if job] == [
            ("5", 1),
            ("5", 1),
        ]
        assert len(await events_of(store, "progress")) == 2

    async def test_a_signal_that_waits_for_a_postponement_ends_it(self, store: PostgresStore, other: Other) -> None:
        held = await active(store, id="job")
        nothing = ", ".join(["NULL"] * 10)
        await other.run(
            f"SELECT ropeway.settle('{QUEUE}', NULL, NULL, NULL, NULL, NULL, ARRAY['job'], ARRAY['{held.token}'], "
            f"ARRAY['postpone'], NULL, NULL, NULL, "
            f"ARRAY[1000000], ARRAY[NULL]::bigint[], ARRAY[NULL]::bigint[], ARRAY[false], ARRAY[1], NULL, {nothing}, "
            f"awaited => ARRAY['{SIGNAL}'])"
        )

        [answer] = await other.commit_when_waited_for(store.update(QUEUE, [JobUpdate("job", marking=marking(SIGNAL))]))

        assert (answer.verdict, answer.state) == ("done", "delayed")
        assert (await read(store, "job")).state == "waiting"

    async def test_a_postponement_that_waits_for_a_signal_finds_it(self, store: PostgresStore, other: Other) -> None:
        held = await active(store, id="job")
        given = f"""ARRAY['"{SIGNAL}","1"']"""
        before, behind = ", ".join(["NULL"] * 7), ", ".join(["NULL"] * 4)
        await other.run(
            f"SELECT ropeway.update('{QUEUE}', ARRAY['job'], ARRAY[NULL]::text[], {before}, {given}, {behind})"
        )

        await other.commit_when_waited_for(store.settle(QUEUE, [await_signal(held)], now=NOW))

        assert [job.id for job in await claim(store)] == ["job"]


class TestTransactions:
    async def test_marks_of_a_completion_are_there_with_it(self, store: PostgresStore, other: Other) -> None:
        held = await active(store)
        await store.prepare(QUEUE)
        outcome = replace(complete(held), marking=Marking((Mark("a", '"\\u0000"'),), forgets=("b",)))

        await store.join(other.connection).settle(QUEUE, outcome)
        assert (await read(store, held.id)).marks == ()
        await other.connection.commit()

        assert [(mark.name, mark.value) for mark in (await read(store, held.id)).marks] == [("a", '"\\u0000"')]


_TOUCHED: Final = """
    SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del), 0)::integer
    FROM pg_stat_xact_user_tables WHERE schemaname || '.' = 'ropeway.' AND relname = 'mark'
"""
_CALLED: Final = """
    SELECT array_agg(called.name) FROM (
        SELECT regexp_replace(funcname, '_[0-9a-f]{8}$', '') AS name FROM pg_stat_xact_user_functions
        WHERE schemaname || '.' = 'ropeway.'
    ) AS called
    WHERE called.name LIKE '%mark%' OR called.name = 'settle'
"""
"""Functions of marks that were called; and one more, to see that calls are counted."""


class TestCost:
    async def test_a_plain_job_pays_nothing_for_them(self, store: PostgresStore, other: Other) -> None:
        """Through progress, a retry, another claim and its end: no look at the table, no call, no text in its row."""
        await add(store, *new_jobs(3))
        held = await claim(store, 3)
        ids, token = f"ARRAY[{', '.join(repr(job.id) for job in held)}]", held[0].token
        tokens, each = f"ARRAY['{token}', '{token}', '{token}']", "array_fill({}, ARRAY[3])"
        nothing = ", ".join(["NULL"] * 5)
        retried = ", ".join(
            [
                each.format("'retry'::text"),
                "NULL",
                each.format("'no luck'::text"),
                each.format("''::text"),
                each.format("0::bigint"),
            ]
            + [each.format("NULL::bigint")] * 2
            + [each.format("false"), each.format("1"), "NULL"]
        )
        await other.run("SET LOCAL track_functions = 'all'")

        await other.run(f"SELECT ropeway.update_held('{QUEUE}', {ids}, {tokens}, ARRAY['5', '5', '6'], {nothing})")
        await other.run(
            f"SELECT ropeway.settle('{QUEUE}', {nothing}, {ids}, {tokens}, {retried}, "
            "'again', 'w', 3, 1000, NULL, false, false, NULL, NULL, NULL)"
        )
        assert await other.ask("SELECT count(*) FROM ropeway.active WHERE token = 'again' AND marks IS NULL") == 3
        await other.run(f"SELECT ropeway.get('{QUEUE}', {ids})")
        await other.run(f"SELECT ropeway.remove('{QUEUE}', {ids}, true)")

        assert await other.ask(_TOUCHED) == 0
        assert await other.ask(_CALLED) == ["settle"]

    async def test_marks_are_looked_up_by_their_job(self, store: PostgresStore, other: Other, execute: Execute) -> None:
        """Also if the table was analyzed when it was nearly empty."""
        await add(store, *new_jobs(MARKS + 1))
        held = await claim(store, MARKS + 1)
        await store.update(QUEUE, [JobUpdate(held[0].id, held[0].token, marking=marking("a", value=LONG))], now=NOW)
        execute("VACUUM ANALYZE ropeway.mark")
        names = [f"mark-{number}" for number in range(MARKS)]
        for job in held[1:]:
            await store.update(QUEUE, [JobUpdate(job.id, job.token, marking=marking(*names))], now=NOW)

        one, two = (f"ARRAY['{job.id}']" for job in held[1:3])
        await other.run(f"SELECT * FROM ropeway.get('{QUEUE}', {one})")
        await other.run(
            f"SELECT ropeway.update_held('{QUEUE}', {two}, ARRAY['{held[2].token}'], NULL, "
            f"""ARRAY['"mark-7",null,"mark-8",{encode(LONG, "", 9_999)}'], NULL, NULL, NULL, NULL)"""
        )

        looked = "SELECT (seq_tup_read + idx_tup_fetch)::integer FROM pg_stat_xact_user_tables"
        assert await other.ask(f"{looked} WHERE schemaname || '.' = 'ropeway.' AND relname = 'mark'") <= MARKS + 5
