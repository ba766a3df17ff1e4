from __future__ import annotations

from ...job.states import State
from ...store.contract import Store
from ...store.values import History, JobUpdate, LogLine, StallRules
from ..arrange import active, claim_one, entries, events_of, job_in, read, snapshot
from ..factories import FOREIGN, LOCK, NOW, QUEUE
from .cases import for_each


async def verdicts(store: Store, *changes: JobUpdate, now: int = NOW) -> list[str]:
    return [answer.verdict for answer in await store.update(QUEUE, changes, now=now)]


async def history(store: Store, id: str) -> History:
    found = await store.history(QUEUE, id)
    assert found is not None
    return found


class TestUpdate:
    async def test_the_holder_reports_progress(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, JobUpdate(held.id, held.token, progress='{"done":5}')) == ["done"]

        assert (await read(store, held.id)).progress == '{"done":5}'
        assert await events_of(store, "progress") == [(held.id, {"progress": {"done": 5}})]

    async def test_the_holder_changes_the_data(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, JobUpdate(held.id, held.token, data="[1]")) == ["done"]

        assert (await read(store, held.id)).data == "[1]"
        assert await events_of(store, "changed") == [(held.id, {"data": True})]

    async def test_the_holder_writes_a_log(self, store: Store) -> None:
        held = await active(store)

        await verdicts(store, JobUpdate(held.id, held.token, log=("one", "two")), now=NOW + 1)
        await verdicts(store, JobUpdate(held.id, held.token, log=("three",)), now=NOW + 2)

        assert (await history(store, held.id)).log == [
            LogLine(NOW + 1, "one"),
            LogLine(NOW + 1, "two"),
            LogLine(NOW + 2, "three"),
        ]

    async def test_what_is_not_given_stays(self, store: Store) -> None:
        held = await active(store)
        await verdicts(store, JobUpdate(held.id, held.token, progress="5"))

        await verdicts(store, JobUpdate(held.id, held.token, log=("one",)))

        job = await read(store, held.id)
        assert (job.progress, job.data) == ("5", held.data)

    async def test_progress_of_null_is_progress(self, store: Store) -> None:
        held = await active(store)

        await verdicts(store, JobUpdate(held.id, held.token, progress="null"))

        assert (await read(store, held.id)).progress == "null"

    async def test_the_newest_log_lines_stay_and_the_others_are_counted(self, store: Store) -> None:
        held = await active(store)

        await verdicts(store, JobUpdate(held.id, held.token, log=("1", "2", "3"), keep_logs=2))
        await verdicts(store, JobUpdate(held.id, held.token, log=("4",), keep_logs=2))

        kept = await history(store, held.id)
        assert [line.text for line in kept.log] == ["3", "4"]
        assert kept.dropped_log_lines == 2

    async def test_a_job_may_keep_no_log_at_all(self, store: Store) -> None:
        held = await active(store)

        await verdicts(store, JobUpdate(held.id, held.token, log=("1", "2"), keep_logs=0))

        kept = await history(store, held.id)
        assert (kept.log, kept.dropped_log_lines) == ([], 2)

    async def test_a_million_lines_are_no_more_than_a_thousand(self, store: Store) -> None:
        held = await active(store)
        lines = tuple(str(n) for n in range(5_000))

        await verdicts(store, JobUpdate(held.id, held.token, log=lines))

        kept = await history(store, held.id)
        assert [line.text for line in kept.log] == list(lines[-1_000:])
        assert kept.dropped_log_lines == 4_000

    async def test_a_stale_token_changes_nothing(self, store: Store) -> None:
        stale = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        await claim_one(store, now=NOW + LOCK)
        before = await snapshot(store)

        given = await verdicts(store, JobUpdate(stale.id, stale.token, "1", "2", ("late",)), now=NOW + LOCK)

        assert given == ["lost"]
        assert await snapshot(store) == before
        assert (await history(store, stale.id)).log == []

    async def test_a_foreign_token_changes_nothing(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, JobUpdate(held.id, FOREIGN, "1", "2", ("late",))) == ["lost"]
        assert await read(store, held.id) == held
        assert (await history(store, held.id)).log == []

    @for_each("state", ["completed", "failed"])
    async def test_the_last_token_of_a_finished_job_changes_nothing(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await verdicts(store, JobUpdate(job.id, job.token, "1", "2", ("late",))) == ["lost"]
        assert await read(store, job.id) == job

    @for_each("state", ["waiting", "delayed", "active"])
    async def test_somebody_outside_changes_what_is_not_finished(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await verdicts(store, JobUpdate(job.id, None, "1", "2", ("hello",))) == ["done"]

        changed = await read(store, job.id)
        assert (changed.state, changed.progress, changed.data) == (state, "1", "2")
        assert changed.token == job.token
        assert [line.text for line in (await history(store, job.id)).log] == ["hello"]

    @for_each("state", ["completed", "failed", "cancelled"])
    async def test_somebody_outside_cannot_change_what_is_finished(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        answers = await store.update(QUEUE, [JobUpdate(job.id, None, "1", "2", ("late",))], now=NOW)

        assert [(answer.verdict, answer.state) for answer in answers] == [("refused", state)]
        assert await read(store, job.id) == job
        assert (await history(store, job.id)).log == []

    async def test_every_change_has_its_answer_in_order(self, store: Store) -> None:
        done, held = await job_in("completed", store), await active(store)

        given = await verdicts(
            store,
            JobUpdate(held.id, held.token, progress="1"),
            JobUpdate("nobody", progress="1"),
            JobUpdate("nobody", FOREIGN, progress="1"),
            JobUpdate(done.id, progress="1"),
            JobUpdate(held.id, FOREIGN, progress="2"),
            JobUpdate(held.id, held.token, progress="3"),
        )

        assert given == ["done", "missing", "missing", "refused", "lost", "done"]
        assert (await read(store, held.id)).progress == "3"

    async def test_a_log_alone_announces_nothing(self, store: Store) -> None:
        held = await active(store)
        before = await entries(store)

        await verdicts(store, JobUpdate(held.id, held.token, log=("one",)))

        assert await entries(store) == before
