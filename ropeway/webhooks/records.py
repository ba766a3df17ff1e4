"""What belongs to the webhooks of a queue and must not be in its jobs: secrets, allowed hosts, disabled URLs.

They are records of the store: secrets and hosts under the queue's name, written by the `Queue` object that was given
them; a disabled URL under the queue's name and a digest of the URL.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Final

import msgspec

from ..job.webhook_options import Webhook, allowed_hosts
from ..store.contract import Store
from ..store.values import Record

SETTINGS: Final = "webhook"
DISABLED: Final = "webhook-gone"
ALLOW: Final = "ROPEWAY_WEBHOOK_ALLOW"


class WebhookSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a queue's webhooks."""

    secrets: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Without its secrets."""
        return f"<WebhookSettings with {len(self.secrets)} secrets>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nor here, where msgspec would show every field."""
        return [("secrets", len(self.secrets)), ("allow_hosts", self.allow_hosts)]


class DisabledUrl(msgspec.Struct, frozen=True):
    """A URL that answered 410: nothing more is sent there for jobs of the queue."""

    queue: str
    url: str


_decode_settings: Final = msgspec.json.Decoder(WebhookSettings).decode
_decode_disabled: Final = msgspec.json.Decoder(DisabledUrl).decode


def environment_hosts() -> tuple[str, ...]:
    """The hosts that are allowed by the environment of this process."""
    text = os.environ.get(ALLOW)
    return allowed_hosts(text) if text else ()


async def write_settings(store: Store, queue: str, webhook: Webhook) -> None:
    settings = WebhookSettings(webhook.secrets, webhook.allow_hosts)
    await store.remember(Record(SETTINGS, queue, msgspec.json.encode(settings).decode()))


async def read_settings(store: Store, queue: str) -> WebhookSettings:
    for record in await store.recall(SETTINGS, queue):
        return _decode_settings(record.value)
    return WebhookSettings()


async def disable(store: Store, queue: str, url: str) -> None:
    value = msgspec.json.encode(DisabledUrl(queue, url)).decode()
    await store.remember(Record(DISABLED, _key(queue, url), value))


async def enable(store: Store, queue: str, url: str) -> bool:
    """False if it was not disabled."""
    return await store.forget(DISABLED, _key(queue, url))


async def is_disabled(store: Store, queue: str, url: str) -> bool:
    return bool(await store.recall(DISABLED, _key(queue, url)))


async def disabled_urls(store: Store) -> list[DisabledUrl]:
    return [_decode_disabled(record.value) for record in await store.recall(DISABLED)]


def _key(queue: str, url: str) -> str:
    return f"{queue}:{hashlib.sha256(url.encode()).hexdigest()}"
