"""Delivering webhooks: the handler of the jobs in `ropeway.webhooks`.

    2xx                    delivered, `webhook-delivered`
    410                    the URL is disabled for the queue, `webhook-failed`
    with Retry-After       later, without using an attempt, for a day at most
    any other, or none     retried with backoff; after the last attempt `webhook-failed`
    the host is down       few are tried at once, so that they do not take all slots; the others wait
    URL not allowed        `webhook-failed` at once

The event is written before the delivery is settled: after a crash in between, the message is sent and reported again.
"""

from __future__ import annotations

import random
import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from ..errors import Postponed, RopewayError, StoreError, Unrecoverable
from ..job.codec import encode
from ..job.extras import Origin
from ..job.instants import Milliseconds
from ..job.outcomes import attempts_remain
from ..logger import log
from ..store.contract import Store
from ..webhooks.failures import Refused, Unreachable
from ..webhooks.message import message_of
from ..webhooks.records import WebhookSettings, disable, environment_hosts, is_disabled, read_settings
from ..webhooks.reply import Reply, SendsMessages
from ..webhooks.signing import signed_headers
from .job import Job

SETTINGS_LIFETIME: Final = 5.0
"""Seconds for which the settings of a queue are not read again."""
MOST_REMEMBERED: Final = 1_000
"""Most URLs, and most hosts, of which something is remembered."""
SHORTEST_WAIT: Final[Milliseconds] = 10_000
LONGEST_WAIT: Final[Milliseconds] = 6 * 3_600_000
"""The time that a Retry-After asks for is heeded between these."""
FREE_WAITS_FOR: Final[Milliseconds] = 24 * 3_600_000
"""For this time after the end of the job, waiting because of a Retry-After uses no attempt."""
GONE: Final = 410
FAILING_AFTER: Final = 3
"""Messages without an answer, one after the other, after which a host is taken to be down."""
MOST_TO_FAILING: Final = 5
"""Most messages at once to a host that is down: each may take a slot until its deadline, and others wait for slots."""
PAUSE_FOR_FAILING: Final = (5_000, 10_000)


class DeliveryFailed(RopewayError):
    """One attempt was not accepted."""


class _Known(NamedTuple):
    """What was read from the store about a queue and a URL."""

    until: float
    settings: WebhookSettings
    is_disabled: bool


class _Host:
    """How sending to a host went lately."""

    __slots__ = ("in_flight", "unanswered")

    def __init__(self) -> None:
        self.in_flight = 0
        self.unanswered = 0

    @property
    def has_enough(self) -> bool:
        """True if it seems to be down, and has as many messages as may wait for it."""
        return self.unanswered >= FAILING_AFTER and self.in_flight >= MOST_TO_FAILING


class Deliverer:
    """Sends the deliveries of one store. Belongs to one event loop."""

    def __init__(self, store: Store, sender: SendsMessages) -> None:
        self._store = store
        self._sender = sender
        self._known: dict[tuple[str, str], _Known] = {}
        self._hosts: dict[str, _Host] = {}

    def close(self) -> None:
        self._sender.close()

    async def run(self, job: Job) -> dict[str, Any]:
        extras = job.record.extras
        if extras is None or extras.origin is None or extras.webhook is None:
            raise Unrecoverable("this job is no delivery of a webhook")
        origin, url = extras.origin, extras.webhook.url
        known = await self._settings(origin.queue, url)
        if known.is_disabled:
            raise await self._given_up(
                job, origin, "the URL is disabled since it answered 410: see `ropeway webhooks enable`"
            )
        host = self._host(url)
        if host.has_enough and time.time() * 1000 < origin.at + FREE_WAITS_FOR:
            raise Postponed(random.randint(*PAUSE_FOR_FAILING))  # noqa: S311 - spreads load
        try:
            reply = await self._send(job, origin, url, known.settings, host)
        except Refused as refusal:
            raise await self._given_up(job, origin, f"not sent: {refusal}") from None
        except Unreachable as problem:
            raise await self._failed(job, origin, str(problem)) from None
        await job.log(f"attempt {job.attempt}: {_line(reply)}")
        if 200 <= reply.status < 300:
            facts = {"delivery": job.id, "status": reply.status, "attempts": job.attempt}
            await self._publish("webhook-delivered", origin, facts)
            return {"status": reply.status, "seconds": round(reply.seconds, 3)}
        if reply.status == GONE:
            await disable(self._store, origin.queue, url)
            self._known.clear()
            raise await self._given_up(
                job, origin, "it answered 410: the URL is disabled for this queue", is_logged=True
            )
        wait = retry_after(reply.retry_after, time.time())
        if wait and time.time() * 1000 + wait < origin.at + FREE_WAITS_FOR:
            raise Postponed(wait)
        raise await self._failed(job, origin, f"it answered {reply.status}", is_logged=True)

    async def _send(self, job: Job, origin: Origin, url: str, settings: WebhookSettings, host: _Host) -> Reply:
        body = message_of(job.record, origin)
        headers = signed_headers(job.id, int(time.time()), body, settings.secrets)
        host.in_flight += 1
        try:
            reply = await self._sender.send(url, headers, body, (*settings.allow_hosts, *environment_hosts()))
        except Unreachable:
            host.unanswered += 1
            raise
        finally:
            host.in_flight -= 1
        host.unanswered = 0
        return reply

    def _host(self, url: str) -> _Host:
        name = url.partition("://")[2].partition("/")[0].lower()
        if name not in self._hosts:
            if len(self._hosts) >= MOST_REMEMBERED:
                self._hosts = {name: host for name, host in self._hosts.items() if host.in_flight}
            self._hosts[name] = _Host()
        return self._hosts[name]

    async def _settings(self, queue: str, url: str) -> _Known:
        now = time.monotonic()
        known = self._known.get((queue, url))
        if known is None or known.until < now:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            settings = await read_settings(self._store, queue)
            known = _Known(now + SETTINGS_LIFETIME, settings, await is_disabled(self._store, queue, url))
            self._known[queue, url] = known
        return known

    async def _failed(self, job: Job, origin: Origin, reason: str, *, is_logged: bool = False) -> DeliveryFailed:
        if not is_logged:
            await job.log(f"attempt {job.attempt}: {reason}")
        if job.options is not None and not attempts_remain(job.options, job.record.attempts_made):
            await self._report_failure(job, origin, reason)
        return DeliveryFailed(reason)

    async def _given_up(self, job: Job, origin: Origin, reason: str, *, is_logged: bool = False) -> Unrecoverable:
        if not is_logged:
            await job.log(f"attempt {job.attempt}: {reason}")
        await self._report_failure(job, origin, reason)
        return Unrecoverable(reason)

    async def _report_failure(self, job: Job, origin: Origin, reason: str) -> None:
        facts = {"delivery": job.id, "attempts": job.attempt, "reason": reason}
        await self._publish("webhook-failed", origin, facts)

    async def _publish(self, name: str, origin: Origin, facts: dict[str, Any]) -> None:
        """Writes the event into the stream of the job's queue; the job may be gone."""
        try:
            await self._store.publish(origin.queue, name, encode(facts), origin.id)
        except StoreError as error:
            # Sending it again would be worse than an event that is missing.
            log.warning("%s of %s in %r was not written: %s", name, origin.id, origin.queue, error)


def retry_after(text: str | None, now: float) -> Milliseconds:
    """The time that a Retry-After asks for, bounded; 0 without one that can be read, or that asks for none."""
    if text is None or len(text) > 100:
        return 0
    if text.isascii() and text.isdigit():
        seconds = float(text)
    else:
        try:
            at = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return 0
        seconds = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() - now
    return int(min(max(seconds * 1000, SHORTEST_WAIT), LONGEST_WAIT)) if seconds > 0 else 0


def _line(reply: Reply) -> str:
    text = reply.excerpt.decode("utf-8", "backslashreplace")
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return f"{reply.status} in {reply.seconds:.3f} s" + (f": {shown}" if shown else "")
