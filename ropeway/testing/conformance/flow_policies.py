"""What becomes of a parent when a child ends: the table of `job/flows.py` in every store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ...job.extras import Extras
from ...job.flows import EFFECTS, POLICIES, ChildEnd, Effect, Parent, Policy
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.retention import Retention
from ...job.states import State
from ...store.contract import Store
from ...store.values import ChildStatus, StallRules
from ..arrange import add, claim, events_of, is_gone, read
from ..factories import DAY, ELSEWHERE, LOCK, NOW, QUEUE, SECOND, complete, fail, new_flow, new_job
from .cases import for_each
from .flow_actions import (
    add_flow,
    break_down,
    children_of,
    claim_by_id,
    deliver,
    finish,
    settle_as,
    state_of,
)

Act: TypeAlias = Callable[[Store, list[str]], Awaitable[object]]


def settle_by(outcome: Callable[[JobRecord], Outcome]) -> Act:
    async def settle(store: Store, ids: list[str]) -> None:
        jobs = await claim(store, len(ids))
        assert [job.id for job in jobs] == ids
        await store.settle(QUEUE, [outcome(job) for job in jobs], now=NOW)

    return settle


async def give_up(store: Store, ids: list[str]) -> None:
    await claim(store, len(ids))
    await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)


async def expire(store: Store, ids: list[str]) -> None:
    assert (await store.tick(QUEUE, StallRules(), now=NOW + SECOND)).expired == len(ids)


async def clean(store: Store, ids: list[str]) -> None:
    assert (await store.clean(QUEUE, "waiting", now=NOW)).ids == ids


ENDS: Final[dict[str, tuple[ChildEnd, Act]]] = {
    "completed": ("completed", settle_by(lambda job: complete(job, '"done"'))),
    "failed": ("failed", settle_by(fail)),
    "given up": ("failed", give_up),
    "expired": ("failed", expire),
    "cancelled": ("cancelled", lambda store, ids: store.cancel(QUEUE, ids, now=NOW)),
    "removed": ("removed", lambda store, ids: store.remove(QUEUE, ids, now=NOW)),
    "cleaned": ("removed", clean),
}
"""How children may end; each act ends several in one call."""


def child(policy: Policy, how: str) -> tuple[NewJob, Policy]:
    """A child `a-` of a policy, which can end in that way."""
    return new_job(f"a-{policy}", extras=Extras(start_within=SECOND) if how == "expired" else None), policy


class TestChildPolicies:
    @for_each("how", ENDS)
    async def test_the_table(self, store: Store, how: str) -> None:
        end, act = ENDS[how]
        for policy in POLICIES:
            other = new_job(f"z-{policy}", delay=DAY)
            await add_flow(store, *new_flow(new_job(f"p-{policy}"), child(policy, how), other))

        await act(store, [f"a-{policy}" for policy in POLICIES])

        for policy in POLICIES:
            effect, parent, name = EFFECTS[end][policy], f"p-{policy}", f"a-{policy}"
            links = await children_of(store, parent) if await state_of(store, parent) else {}
            states: dict[Effect, State | None] = {"fail": "failed", "start": "waiting", "remove": None}
            assert await state_of(store, parent) == states.get(effect, "waiting-children")
            if effect == "forget":
                assert [*links] == [f"z-{policy}"]
                assert (await read(store, parent)).children == 1
            elif effect != "remove":
                assert links[name].state == end
                assert links[name].result == ('"done"' if end == "completed" else None)
            assert await state_of(store, f"z-{policy}") == (None if effect == "remove" else "delayed")

    @for_each("how", ENDS)
    async def test_what_the_last_child_does(self, store: Store, how: str) -> None:
        end, act = ENDS[how]
        for policy in POLICIES:
            await add_flow(store, *new_flow(new_job(f"p-{policy}"), child(policy, how)))

        await act(store, [f"a-{policy}" for policy in POLICIES])

        states: dict[Effect, State | None] = {"fail": "failed", "remove": None, "hold": "waiting-children"}
        for policy in POLICIES:
            assert await state_of(store, f"p-{policy}") == states.get(EFFECTS[end][policy], "waiting")

    async def test_the_reason_names_the_child(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=ELSEWHERE)))

        await break_down(store, "a", ELSEWHERE)

        parent = await read(store, "p")
        assert (parent.state, parent.reason) == ("failed", f"child {ELSEWHERE}/a failed: no luck")
        assert parent.finished_at == NOW
        assert await events_of(store, "fail by child") == [("p", {"reason": parent.reason})]
        link = (await children_of(store, "p"))["a"]
        assert (link.state, link.reason) == ("failed", parent.reason)

    async def test_a_cancelled_child_is_named_with_its_reason(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("q")))
        await store.cancel(QUEUE, ["a"], "not needed", now=NOW)

        assert (await read(store, "p")).reason == f"child {QUEUE}/a was cancelled: not needed"

    async def test_failure_goes_upward_as_each_policy_says(self, store: Store) -> None:
        root, middle = new_flow(new_job("root"), (new_job("middle"), "ignore"))
        await add_flow(store, root, *new_flow(middle, new_job("leaf")))

        await break_down(store, "leaf")

        assert await state_of(store, "middle") == "failed"
        assert await state_of(store, "root") == "waiting"
        reason = f"child {QUEUE}/leaf failed: no luck"
        assert (await children_of(store, "root"))["middle"] == ChildStatus(
            QUEUE, "middle", "ignore", "failed", None, reason
        )

    async def test_the_retention_of_a_parent_that_fails_holds(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", remove_on_fail=True), new_job("a")))

        await break_down(store, "a")

        assert await is_gone(store, "p")

    async def test_remove_takes_unfinished_descendants_and_revokes_running_ones(self, store: Store) -> None:
        middle = new_job("middle")
        root, bad, middle = new_flow(new_job("root"), (new_job("bad"), "remove"), middle)
        middle, leaf, done = new_flow(middle, new_job("leaf"), new_job("done"))
        await add_flow(store, root, bad, middle, leaf, done)
        await finish(store, "done")
        held = await claim_by_id(store, "leaf")
        cursor = (await store.revoked(QUEUE)).cursor

        await break_down(store, "bad")

        assert [await state_of(store, id) for id in ("root", "middle", "leaf")] == [None] * 3
        assert await state_of(store, "done") == "completed"
        [lock] = (await store.revoked(QUEUE, cursor)).locks
        assert (lock.id, lock.token, lock.why) == ("leaf", held.token, "removed")

    async def test_remove_spares_what_another_parent_waits_for(self, store: Store) -> None:
        left, bad, shared = new_flow(new_job("left"), (new_job("bad"), "remove"), new_job("shared"))
        right, shared = new_flow(new_job("right"), shared)
        await add_flow(store, left, right, bad, shared)

        await break_down(store, "bad")

        assert await is_gone(store, "left")
        assert (await read(store, "shared")).parents == (Parent(QUEUE, "right"),)
        await finish(store, "shared")
        assert await state_of(store, "right") == "waiting"

    async def test_continue_starts_once_and_records_later_ends(self, store: Store) -> None:
        await add_flow(
            store, *new_flow(new_job("p"), (new_job("a"), "continue"), (new_job("b"), "continue"), new_job("c"))
        )
        await break_down(store, "a")
        assert await state_of(store, "p") == "waiting"
        await break_down(store, "b")
        await finish(store, "c")

        assert await events_of(store, "release") == [("p", {})]
        links = await children_of(store, "p")
        assert {id: link.state for id, link in links.items()} == {"a": "failed", "b": "failed", "c": "completed"}

    async def test_wait_goes_on_until_the_child_is_retried_and_completes(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "wait")))
        await break_down(store, "a")
        await store.retry(QUEUE, ["a"], now=NOW)
        await break_down(store, "a")
        assert await state_of(store, "p") == "waiting-children"
        await store.retry(QUEUE, ["a"], now=NOW)

        await finish(store, "a", "5")

        assert await state_of(store, "p") == "waiting"
        assert (await children_of(store, "p"))["a"].result == "5"

    async def test_a_child_that_is_retried_and_then_removed_is_no_longer_waited_for(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "wait"), (new_job("b"), "wait")))
        await break_down(store, "a")
        await store.retry(QUEUE, ["a"], now=NOW)

        await store.remove(QUEUE, ["a"], now=NOW)

        assert [*await children_of(store, "p")] == ["b"]
        await finish(store, "b")
        assert await state_of(store, "p") == "waiting"

    async def test_an_obliterated_queue_of_children_releases_the_parent(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=ELSEWHERE), new_job("b", queue=ELSEWHERE)))

        while (await store.obliterate(ELSEWHERE, now=NOW)).more:
            pass
        await deliver(store)

        assert await state_of(store, "p") == "waiting"
        assert await children_of(store, "p") == {}


class TestIdsThatComeBack:
    """A job that has got the id of a child that is gone is not that child."""

    async def stranger(self, store: Store, *others: NewJob | tuple[NewJob, Policy]) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("c"), *others))
        await settle_as(store, "c", lambda job: complete(job, keep=Retention(count=0)))
        await add(store, new_job("c", data='"other"'))

    async def test_it_is_not_removed_with_the_parent(self, store: Store) -> None:
        await self.stranger(store, (new_job("b"), "remove"))

        await break_down(store, "b")

        assert await is_gone(store, "p")
        assert await state_of(store, "c") == "waiting"

    async def test_its_end_is_not_the_child_s(self, store: Store) -> None:
        await self.stranger(store, new_job("b"))

        await store.cancel(QUEUE, ["c"], now=NOW)

        assert await state_of(store, "p") == "waiting-children"
        assert (await children_of(store, "p"))["c"].state == "completed"

    async def test_a_retried_parent_does_not_wait_for_it(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("c")))
        await settle_as(store, "c", lambda job: fail(job, keep=Retention(count=0)))
        await add(store, new_job("c", data='"other"'))

        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)

        assert await state_of(store, "p") == "waiting"
