"""`ropeway add`: one job from the command line, or many or a flow from a file."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import click

from ..client.flows import Flow
from ..client.handle import JobHandle
from ..client.new_jobs import Call
from ..client.queue import Queue
from ..errors import DuplicateJob, InvalidInput, NoResult, ResultTimeout
from ..job.durations import Duration
from ..job.options import JobOptions
from ..showing import plural
from ..store.contract import Store
from .completing import complete_name, complete_queue
from .flow_files import read_flow
from .helping import examples
from .job_options import with_job_options
from .options import app_dir_option, duration, json_option, url_option
from .payloads import read_bulk, read_data
from .stores import on_store, refuse_memory, set_default_store
from .text import as_json as json_text
from .unhandled import warn_of_unhandled

if TYPE_CHECKING:
    from .apps import App

FOREVER: Final = math.inf

Work: TypeAlias = "Callable[[Queue, App | None], Awaitable[None]]"


def patience(value: str) -> Duration:
    return FOREVER if value == "forever" else duration(value)


@click.command(
    epilog=examples(
        'ropeway add emails send_email \'{"to": "a@example.com"}\' --attempts 5',
        "ropeway add emails send_email @letter.json --delay 5m",
        "echo '[1, 2]' | ropeway add sums add - --wait 30s",
        "ropeway add emails send_email @letter.json --app app:queue",
        "ropeway add emails send_email @letter.json --dedupe welcome-42 --expires 1h",
        "ropeway add emails --bulk letters.jsonl",
        "ropeway add reports --flow report.json --wait",
    )
)
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.argument("name", required=False, shell_complete=complete_name)
@click.argument("data", required=False, metavar="[JSON|-|@FILE]")
@click.option("--bulk", metavar="FILE", help="Add a job for each line: all or none. '-' reads standard input.")
@click.option("--flow", metavar="FILE", help="Add a job with its children: all or none. '-' reads standard input.")
@click.option(
    "--wait",
    type=patience,
    is_flag=False,
    flag_value="forever",
    metavar="[DURATION]",
    help="Wait for the result and print it; exit code 5 if it takes longer.",
)
@click.option(
    "--app", metavar="MODULE:ATTR", help="The app that has the task, as for `worker`: checks data, adds options."
)
@app_dir_option
@url_option
@json_option
@with_job_options
def add(
    app: str | None,
    app_dir: Path,
    url: str | None,
    queue: str | None,
    flow: str | None,
    options: dict[str, Any],
    **given: Any,
) -> None:
    """Add a job, a file of jobs or a flow.

    The data is JSON; '-' reads it from standard input, @FILE from a file. A line of a --bulk file is an object such as
    {"name": "send_email", "data": {...}, "options": {"attempts": 3}}, with options as in Python; those that are given
    here hold for all lines that do not have their own.

    A --flow file is an object such as {"name": "report", "queue": "reports", "on_child_failure": "ignore", "children":
    [{"name": "fetch", "data": 1, "attempts": 3}]}, to any depth. A job without a queue is in its parent's, the root in
    QUEUE. --wait waits for the root.

    Data is not checked, and the options of a task (attempts, timeout, ...) are not known, unless --app names the app.
    """
    work: Work = partial(_add, options=options, **given)
    if flow is not None:
        if given["name"] or given["bulk"] is not None or "id" in options:
            raise click.UsageError("--flow takes names, data and ids from the file, and no --bulk")
        nodes = read_flow(flow, queue, options)
        queue = str(nodes[0].queue)
        work = partial(_add_flow, nodes=nodes, wait=given["wait"], as_json=given["as_json"])
    if queue is None:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'QUEUE'", param_type="argument")
    if app is None:
        _add_to_store(url=url, queue=queue, work=work)
    else:
        from .apps import load_app  # noqa: PLC0415 - it imports workers, which takes long

        set_default_store(url)
        # Not on a loop: apps may run any code while they are imported.
        found = load_app(app, app_dir, queue)
        refuse_memory(found.queue.store.url)
        asyncio.run(_add_to_app(found, work))


@on_store(make=True)
async def _add_to_store(store: Store, /, queue: str, work: Work) -> None:
    await work(Queue(queue, store=store), None)


async def _add_to_app(app: App, work: Work) -> None:
    async with app.queue:
        await work(app.queue, app)


async def _add(
    queue: Queue,
    app: App | None,
    name: str | None,
    data: str | None,
    bulk: str | None,
    wait: Duration | None,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    if bulk is not None:
        if name or data or wait is not None or "id" in options:
            raise click.UsageError("--bulk takes names, data and ids from the file, and does not --wait")
        calls = read_bulk(bulk, options)
        if app is not None:
            app.check(call.name for call in calls.values())
        _report_many(await _add_lines(queue, calls), as_json=as_json)
        await warn_of_unhandled(queue, calls.values(), with_app=app is not None)
        return
    if name is None:
        raise click.UsageError("say the NAME of the job, or use --bulk FILE or --flow FILE")
    if app is not None:
        app.check([name])
    job = await queue.add(name, read_data(data), **options)
    if wait is None:
        _report_one(job, as_json=as_json)
    await warn_of_unhandled(queue, [Call(name, None, cast(JobOptions, options))], with_app=app is not None)
    if wait is not None:
        await _report_result(job, None if wait == FOREVER else wait, as_json=as_json)


async def _add_flow(queue: Queue, app: App | None, nodes: list[Flow], wait: Duration | None, *, as_json: bool) -> None:
    calls: defaultdict[str, list[Call]] = defaultdict(list)
    for node in nodes:
        name = str(node.queue)
        calls[name].append(Call(node.name, None, node.options))
        if app is not None and name in app.queues:
            app.queues[name].check([node.name])
            node.queue = app.queues[name].queue
    try:
        job = await queue.add_flow(nodes[0])
    except InvalidInput as error:
        place = (error.place or "flow").replace("flow", "$", 1)
        raise click.UsageError(f"{place}: {error}; nothing was added") from error
    if wait is None:
        _report_one(job, as_json=as_json)
    for name, added in calls.items():
        with_app = app is not None and name in app.queues
        await warn_of_unhandled(Queue(name, store=queue.store), added, with_app=with_app)
    if wait is not None:
        await _report_result(job, None if wait == FOREVER else wait, as_json=as_json)


async def _add_lines(queue: Queue, calls: dict[int, Call]) -> list[JobHandle]:
    try:
        return await queue.add_many(calls.values())
    except (InvalidInput, DuplicateJob) as error:
        if error.item is None:
            raise
        kind = click.UsageError if isinstance(error, InvalidInput) else click.ClickException
        raise kind(f"line {[*calls][error.item]}: {error}; nothing was added") from error


async def _report_result(job: JobHandle, timeout: Duration | None, *, as_json: bool) -> None:
    if not as_json:
        click.echo(job.id, err=True)
    known = _found(job)
    try:
        result = await job.result(timeout)
    except (NoResult, ResultTimeout) as without:
        if as_json:
            # On an error the reader needs the id all the more.
            click.echo(json_text({**known, "error": str(without)}))
        raise
    click.echo(json_text({**known, "result": result} if as_json else result))


def _report_one(job: JobHandle, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(_found(job)))
        return
    click.echo(job.id)
    if job.deduplicated:
        click.echo("This job holds the dedupe key: no other was added.", err=True)
    elif not job.created:
        click.echo("It was there already: nothing was added.", err=True)


def _found(job: JobHandle) -> dict[str, Any]:
    return {"id": job.id, "created": job.created, "deduplicated": job.deduplicated}


def _report_many(jobs: list[JobHandle], *, as_json: bool) -> None:
    created = sum(job.created for job in jobs)
    if as_json:
        click.echo(json_text({"created": created, "found": len(jobs) - created, "ids": [job.id for job in jobs]}))
    else:
        found = f", {plural(len(jobs) - created, 'job')} found" if created < len(jobs) else ""
        click.echo(f"{plural(created, 'job')} added{found}")
