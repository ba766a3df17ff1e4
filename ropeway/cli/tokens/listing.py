"""`ropeway tokens list`."""

from __future__ import annotations

from typing import Any

import click

from ...job.instants import moment_of
from ...server.tokens import AccessToken, read_tokens
from ...store.contract import Store
from ..helping import examples
from ..options import json_option, url_option
from ..stores import on_store
from ..tables import Column, show_table
from ..text import as_json as json_text
from ..text import clock_time, iso


@click.command("list", epilog=examples("ropeway tokens list", "ropeway tokens list --json | jq '.tokens[].id'"))
@url_option
@json_option
@on_store()
async def list_tokens(store: Store, as_json: bool) -> None:
    """List the tokens: their key ids, roles and queues. Secrets are not stored."""
    tokens = await read_tokens(store)
    if as_json:
        click.echo(json_text({"tokens": [described(token) for token in tokens]}))
    elif tokens:
        columns = [Column("id", is_whole=True), Column("roles"), Column("queues"), Column("name"), Column("expires")]
        rows = [
            [
                token.id,
                ", ".join(token.roles),
                "all" if token.queues is None else ", ".join(token.queues),
                token.name,
                clock_time(moment_of(token.expires_at)),
            ]
            for token in tokens
        ]
        show_table(columns, rows)
    else:
        click.echo(f"No tokens in {store.url} yet.", err=True)


def described(token: AccessToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "roles": token.roles,
        "queues": token.queues,
        "name": token.name,
        "created_at": iso(token.created_at),
        "expires_at": iso(token.expires_at),
    }
