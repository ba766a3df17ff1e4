"""`ropeway jobs retry`, `cancel`, `promote` and `remove`."""

from __future__ import annotations

import click

from ...client.new_jobs import reason_text
from ...client.queue import Queue
from ...job.moves import MOVES
from ...job.phases import begin_at
from ...job.states import OPEN, State
from ...store.contract import Store
from ...store.values import Answer
from ..helping import examples
from ..stores import on_store
from .batches import Selection, Verb, chosen_by, move
from .trees import on_trees


@click.command(
    epilog=examples(
        "ropeway jobs retry 4e5f6a7b welcome-42",
        "ropeway jobs retry --queue emails --name send_email --yes",
        "ropeway jobs retry --state cancelled --reset",
        "ropeway jobs retry import-42 --from-phase process",
    )
)
@chosen_by("default: failed")
@click.option("--reset", is_flag=True, help="Give all attempts again, not one.")
@click.option("--from-phase", metavar="PHASE", help="Begin again at this phase of their pipeline.")
@on_store()
async def retry(
    store: Store, reset: bool, from_phase: str | None, selection: Selection, yes: bool, as_json: bool
) -> int:
    """Let finished jobs run once more, by id or by filter; a pipeline goes on at the phase that failed."""
    verb = Verb("retry", "retried", MOVES["retry by hand"].sources, ("failed",))

    async def from_there(queue: str, ids: list[str]) -> list[Answer]:
        records = await store.get(queue, ids)
        begins = {record.id: begin_at(record, from_phase) for record in records if record is not None and from_phase}
        return [(await store.retry(queue, [id], reset=reset, marking=begins.get(id)))[0] for id in ids]

    async def at_once(queue: str, ids: list[str]) -> list[Answer]:
        return await store.retry(queue, ids, reset=reset)

    act = at_once if from_phase is None else from_there
    return await move(store, verb, act, selection, yes=yes, as_json=as_json)


@click.command(
    epilog=examples(
        "ropeway jobs cancel welcome-42 --reason 'wrong address'",
        "ropeway jobs cancel --queue emails --state waiting --name send_newsletter",
        "ropeway jobs cancel report-42 --children    # and what it waits for",
    )
)
@chosen_by("default: all that are not finished")
@click.option("--reason", help="Why; kept with the job.")
@click.option("--children", is_flag=True, help="Also all below them in their flows that are not finished.")
@on_store()
async def cancel(
    store: Store, reason: str | None, children: bool, selection: Selection, yes: bool, as_json: bool
) -> int:
    """Cancel jobs, running ones too, by id or by filter."""
    verb = Verb("cancel", "cancelled", MOVES["cancel"].sources, OPEN)
    why = reason_text(reason)

    async def alone(queue: str, ids: list[str]) -> list[Answer]:
        return await store.cancel(queue, ids, why)

    async def with_children(queue: Queue, id: str) -> None:
        await queue.cancel(id, why, children=True)

    act = on_trees(store, alone, with_children) if children else alone
    return await move(store, verb, act, selection, yes=yes, as_json=as_json)


@click.command(epilog=examples("ropeway jobs promote welcome-42", "ropeway jobs promote --queue emails --limit 100"))
@chosen_by("default: delayed")
@on_store()
async def promote(store: Store, selection: Selection, yes: bool, as_json: bool) -> int:
    """End the delay of jobs, by id or by filter."""
    verb = Verb("promote", "promoted", MOVES["promote"].sources, ("delayed",))
    return await move(store, verb, store.promote, selection, yes=yes, as_json=as_json)


@click.command(
    epilog=examples(
        "ropeway jobs remove welcome-42",
        "ropeway jobs remove --queue emails --state cancelled --yes",
        "ropeway jobs remove welcome-42 --force    # even if it runs",
        "ropeway jobs remove report-42 --keep-children",
    )
)
@chosen_by("needed, because there is no way back")
@click.option("--force", is_flag=True, help="Even active ones; their results are refused.")
@click.option("--keep-children", is_flag=True, help="Leave the jobs below them in their flows.")
@on_store()
async def remove(store: Store, force: bool, keep_children: bool, selection: Selection, yes: bool, as_json: bool) -> int:
    """Forget jobs, by id or by filter; a flow as a whole, or not at all while a job below is active."""
    movable: tuple[State, ...] = tuple(state for state in MOVES["remove"].sources if force or state != "active")
    verb = Verb("remove", "removed", movable, ())

    async def alone(queue: str, ids: list[str]) -> list[Answer]:
        return await store.remove(queue, ids, force=force)

    async def with_children(queue: Queue, id: str) -> None:
        await queue.remove(id, force=force)

    act = alone if keep_children else on_trees(store, alone, with_children)
    return await move(store, verb, act, selection, yes=yes, as_json=as_json)
