"""`ropeway tokens revoke`."""

from __future__ import annotations

import click

from ...server.tokens import revoke_token
from ...store.contract import Store
from ..exit_codes import NotFound
from ..helping import examples
from ..options import json_option, url_option
from ..stores import on_store
from ..text import as_json as json_text


@click.command(epilog=examples("ropeway tokens revoke 1f0c9a7e5b3d2846"))
@click.argument("id")
@url_option
@json_option
@on_store()
async def revoke(store: Store, id: str, as_json: bool) -> None:
    """Revoke a token, by its key id. Running servers refuse it within two seconds."""
    # The token itself is accepted too: it is what people have at hand.
    key = id.split("_")[1] if id.startswith("rw_") else id
    if not await revoke_token(store, key):
        raise NotFound(f"there is no token {key!r} in {store.url}")
    click.echo(json_text({"id": key, "revoked": True}) if as_json else f"{key} revoked")
