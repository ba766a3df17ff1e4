"""`ropeway tokens list`."""

from __future__ import annotations

from typing import Any

import click

from ...job.instants import moment_of
from ...server.tokens import AccessToken, read_tokens
from ...store.contract import Store
from ..helping import examples
from ..lists import show_list
from ..options import json_option, url_option
from ..stores import on_store
from ..tables import Column
from ..text import clock_time, iso


@click.command("list", epilog=examples("ropeway tokens list", "ropeway tokens list --json | jq '.tokens[].id'"))
@url_option
@json_option
@on_store()
async def list_tokens(store: Store, as_json: bool) -> None:
    """List the tokens: their key ids, roles and queues. Secrets are not stored."""
    tokens = await read_tokens(store)
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
    document = {"tokens": [described(token) for token in tokens]} if as_json else None
    show_list(columns, rows, f"No tokens in {store.url} yet.", document)


def described(token: AccessToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "roles": token.roles,
        "queues": token.queues,
        "name": token.name,
        "created_at": iso(token.created_at),
        "expires_at": iso(token.expires_at),
    }
