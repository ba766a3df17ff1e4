"""`ropeway webhooks enable`."""

from __future__ import annotations

import click

from ...store.contract import Store
from ...webhooks.records import disabled_urls
from ...webhooks.records import enable as enable_url
from ..exit_codes import NotFound
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..text import as_json as json_text


@click.command(epilog=examples("ropeway webhooks enable https://shop.example.com/hooks --queue orders"))
@click.argument("webhook", metavar="URL")
@queue_option
@url_option
@json_option
@on_store()
async def enable(store: Store, webhook: str, queue: str | None, as_json: bool) -> None:
    """Send to a URL again that was disabled because it answered 410.

    Deliveries that failed meanwhile are sent again by `ropeway webhooks send-again`.
    """
    found = [each for each in await disabled_urls(store) if each.url == webhook and queue in (None, each.queue)]
    if not found:
        raise NotFound("this URL is not disabled: `ropeway webhooks list --disabled` lists those that are")
    for each in found:
        await enable_url(store, each.queue, each.url)
    queues = [each.queue for each in found]
    click.echo(json_text({"url": webhook, "queues": queues}) if as_json else f"Enabled for {', '.join(queues)}")
