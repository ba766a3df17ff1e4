"""`ropeway queues retention`."""

from __future__ import annotations

from typing import Final

import click

from ...client.queue import Queue
from ...job.durations import Duration
from ...job.instants import Milliseconds
from ...job.stages import Stages
from ...showing import length
from ...store.contract import Store
from ..helping import examples
from ..options import duration, json_option, queue_argument, url_option
from ..stores import known_queue, on_store
from ..text import as_json as json_text

_NEVER: Final = "none"


def _age(text: str) -> Duration:
    return _NEVER if text.lower() == _NEVER else duration(text)


@click.command(
    epilog=examples(
        "ropeway queues retention emails --stale-after 1d --delete-after 7d",
        "ropeway queues retention emails --stale-after none",
        "ropeway queues retention emails    # shows it",
    )
)
@queue_argument
@click.option("--stale-after", type=_age, metavar="AGE", help="Mark finished jobs as stale at this age; none: never.")
@click.option("--delete-after", type=_age, metavar="AGE", help="Delete finished jobs at this age; none: never.")
@click.option("--forget-callbacks", is_flag=True, help="Keep no jobs for callbacks of workers, until one starts again.")
@url_option
@json_option
@on_store()
async def retention(
    store: Store,
    queue: str,
    stale_after: Duration | None,
    delete_after: Duration | None,
    forget_callbacks: bool,
    as_json: bool,
) -> None:
    """Show or set when finished jobs of a queue become stale, and are deleted."""
    found = await known_queue(store, queue)
    if stale_after is not None or delete_after is not None:
        stages = await _stages(found)
        ages = stale_after, delete_after
        stale, delete = (
            old if given is None else None if given == _NEVER else given
            for given, old in zip(ages, (_seconds(stages.stale_after), _seconds(stages.delete_after)), strict=True)
        )
        await found.set_retention(stale_after=stale, delete_after=delete)
    if forget_callbacks:
        await found.forget_callbacks()
    stages = await _stages(found)
    if as_json:
        document = {
            "queue": queue,
            "stale_after": _seconds(stages.stale_after),
            "delete_after": _seconds(stages.delete_after),
            "callbacks": stages.callbacks,
        }
        click.echo(json_text(document))
        return
    click.echo(f"finished jobs of {queue} become stale {_after(stages.stale_after)}")
    rest = "" if stages.delete_after else ", but by their own rules"
    click.echo(f"and are deleted {_after(stages.delete_after)}{rest}")
    if stages.callbacks:
        click.echo(f"workers have callbacks for those that are {' and '.join(stages.callbacks)}")


async def _stages(queue: Queue) -> Stages:
    return (await queue.settings()).stages or Stages()


def _seconds(age: Milliseconds | None) -> float | None:
    return None if age is None else age / 1000


def _after(age: Milliseconds | None) -> str:
    return "never" if age is None else f"after {length(age / 1000)}"
