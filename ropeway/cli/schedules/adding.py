"""`ropeway schedules add`."""

from __future__ import annotations

from typing import Any, cast

import click

from ...client.new_jobs import Call
from ...client.queue import Queue
from ...job.options import JobOptions
from ...store.contract import Store
from ..completing import complete_name
from ..escaping import one_line
from ..helping import examples
from ..job_options import with_template_options
from ..options import json_option, queue_argument, url_option
from ..payloads import read_data
from ..stores import on_store
from ..text import as_json as json_text
from ..unhandled import warn_of_unhandled
from .completing import complete_schedule
from .locating import locate
from .reporting import in_words
from .rules import with_rule_options


@click.command(
    epilog=examples(
        "ropeway schedules add reports nightly make_report --cron '0 9 * * *'",
        'ropeway schedules add health pulse ping \'{"host": "db"}\' --every 30s',
        "ropeway schedules add sales daily report --cron @daily --tz Asia/Tokyo",
    )
)
@queue_argument
@click.argument("id", shell_complete=complete_schedule)
@click.argument("name", shell_complete=complete_name)
@click.argument("data", required=False, metavar="[JSON|-|@FILE]")
@with_rule_options
@with_template_options
@url_option
@json_option
@on_store(make=True)
async def add(
    store: Store,
    /,
    queue: str,
    id: str,
    name: str,
    data: str | None,
    options: dict[str, Any],
    as_json: bool,
    **rule: Any,
) -> None:
    """Make or change a schedule: jobs of NAME, by --cron or --every.

    A schedule with this id is changed; making the same one again changes nothing. The data is JSON; '-' reads it from
    standard input, @FILE from a file. Options such as --attempts are those of the jobs that it makes.
    """
    given = {option: value for option, value in rule.items() if value is not None}
    target = Queue(queue, store=store)
    schedule = await target.schedule(id, name, read_data(data), **given, **options)
    now = await store.clock()
    if as_json:
        click.echo(json_text((await locate(store, id, queue)).document(now)))
    else:
        click.echo(f"{id} {in_words(schedule, now)} ({one_line(schedule.description)})")
    await warn_of_unhandled(target, [Call(name, None, cast(JobOptions, options))], with_app=False)
