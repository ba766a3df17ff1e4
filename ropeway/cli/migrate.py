"""`ropeway migrate`: migrates a store to this version of Ropeway."""

from __future__ import annotations

import asyncio

import click

from ..errors import StoreRefused
from ..showing import plural
from ..store.contract import Store
from ..store.inspection import Inspection
from ..store.url import connect
from .exit_codes import ExitCode
from .helping import examples
from .options import json_option, url_option
from .text import as_json as json_text


@click.command(
    epilog=examples("ropeway migrate", "ropeway migrate --check || echo needed", "ropeway migrate --sql > review.sql")
)
@click.option("--check", is_flag=True, help="Only say whether it is needed; exit code 1 if it is.")
@click.option("--sql", is_flag=True, help="Only print the statements that it would run.")
@url_option
@json_option
def migrate(check: bool, sql: bool, url: str | None, as_json: bool) -> int:
    """Bring the store to this version of Ropeway.

    Workers and queues do it by themselves when they open a store; this is for those who want to do it first. It is one
    atomic step, and does nothing if there is nothing to do.
    """
    if check and sql:
        raise click.UsageError("--check and --sql do not go together")
    store = connect(url)
    if (inspectable := store.offers.inspection) is None:
        return _say("nothing", f"{store.url} has nothing to migrate", None, as_json=as_json)
    before = inspectable.inspect()
    _refuse(store, before)
    if sql:
        click.echo("\n".join(before.migrations) or f"-- {store.url} is up to date", nl=True)
        return ExitCode.OK
    if not before.migrations:
        return _say("up-to-date", f"{store.url} is up to date, at version {before.newest}", before, as_json=as_json)
    if check:
        _say("needed", f"{store.url} needs {plural(len(before.migrations), 'migration')}", before, as_json=as_json)
        return ExitCode.FAILED
    asyncio.run(_open(store))
    where = f"to version {before.newest}" if before.exists else f"at version {before.newest}"
    what = "migrated" if before.exists else "made"
    return _say(what, f"{store.url} was {what}, {where}", before, as_json=as_json)


def _refuse(store: Store, inspection: Inspection) -> None:
    """Refuses to migrate a store with problems."""
    problems = [finding.what for finding in inspection.findings if finding.level == "problem"]
    if problems:
        raise StoreRefused(store.url, "; ".join(problems))


async def _open(store: Store) -> None:
    try:
        await (store.open() if (own := store.offers.migration) is None else own.migrate())
    finally:
        await store.close()


def _say(status: str, text: str, before: Inspection | None, *, as_json: bool) -> int:
    if as_json:
        versions = {"version": before and before.version, "newest": before and before.newest}
        click.echo(json_text({"status": status, **versions}))
    else:
        click.echo(text)
    return ExitCode.OK
