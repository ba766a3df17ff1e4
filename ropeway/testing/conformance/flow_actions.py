"""What tests of parents and children do with them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...job.flows import CHILD_STATES, Child, Parent, Policy
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.states import State
from ...store.contract import Store
from ...store.values import ChildStatus, JobUpdate, StallRules
from ..arrange import claim
from ..factories import ELSEWHERE, NOW, QUEUE, complete, fail, hand_back, postpone, token_of


async def deliver(store: Store) -> None:
    """Where queues are on different servers, ticks may have to deliver what one tells another."""
    for _ in range(3):
        for queue in (ELSEWHERE, QUEUE):
            await store.tick(queue, StallRules(), now=NOW)


async def add_flow(store: Store, *bundle: NewJob) -> list[str]:
    [added] = await store.add([bundle], now=NOW)
    await deliver(store)
    return [one.verdict for one in added]


async def claim_by_id(store: Store, id: str, queue: str = QUEUE) -> JobRecord:
    """Claims all that waits, and hands back all but one."""
    jobs = await claim(store, 100, queue=queue)
    [wanted] = [job for job in jobs if job.id == id]
    await store.settle(queue, [hand_back(job) for job in jobs if job.id != id], now=NOW)
    return wanted


async def settle_as(store: Store, id: str, outcome: Callable[[JobRecord], Outcome], queue: str = QUEUE) -> None:
    held = await claim_by_id(store, id, queue)
    settled = await store.settle(queue, [outcome(held)], now=NOW)
    assert settled.answers[0].verdict == "done"
    await deliver(store)


async def finish(store: Store, id: str, result: str = '"done"', queue: str = QUEUE) -> None:
    await settle_as(store, id, lambda job: complete(job, result), queue)


async def break_down(store: Store, id: str, queue: str = QUEUE) -> None:
    await settle_as(store, id, fail, queue)


async def state_of(store: Store, id: str, queue: str = QUEUE) -> State | None:
    [job] = await store.get(queue, [id])
    return job.state if job else None


async def children_of(store: Store, id: str, queue: str = QUEUE) -> dict[str, ChildStatus]:
    page = await store.children(queue, id)
    assert page is not None
    assert page.counts == {state: sum(child.state == state for child in page.children) for state in CHILD_STATES}
    return {child.id: child for child in page.children}


async def give_children(
    store: Store, parent: JobRecord, *children: NewJob, token: str | None = None, policy: Policy = "fail"
) -> str:
    links = tuple(Child(child.queue, child.id, policy) for child in children)
    adds = tuple(replace(child, parents=(Parent(parent.queue, parent.id),)) for child in children)
    update = JobUpdate(parent.id, token or token_of(parent), children=links, adds=adds)
    [answer] = await store.update(parent.queue, [update], now=NOW)
    await deliver(store)
    return answer.verdict


def awaiting(job: JobRecord) -> Outcome:
    return replace(postpone(job), awaits_children=True)
