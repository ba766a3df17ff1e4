"""`Webhook`: where the ends of jobs are reported, as users write it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..errors import InvalidOption
from ..showing import shown
from .extras import WebhookRule
from .states import FINAL
from .web_urls import BadUrl, is_allowed, url_problem, web_url

EVENTS: Final = ("completed", "failed")
MOST_SECRETS: Final = 2
SHORTEST_SECRET: Final = 16


class Webhook:
    """Reports the ends of jobs to `url`: `Queue("orders", webhook=Webhook("https://...", secret="whsec_..."))`.

    `events` are of "completed", "failed" and "cancelled". `secret` signs what is sent; give two while one replaces the
    other, the new one first. `allow_hosts` names hosts that may be in your own network, or be reached without TLS, as
    in "localhost:8000". Secret and allowed hosts are those of a queue, for all URLs of its jobs; then the URL may be
    left out.
    """

    __slots__ = ("allow_hosts", "events", "secrets", "url")

    def __init__(
        self,
        url: str | None = None,
        *,
        secret: str | Iterable[str] | None = None,
        events: Iterable[str] = EVENTS,
        allow_hosts: Iterable[str] = (),
    ) -> None:
        self.url = None if url is None else _readable(url)
        self.secrets = _secrets(secret)
        self.events = _events(events)
        self.allow_hosts = _hosts(allow_hosts)

    def __repr__(self) -> str:
        """Without its secrets."""
        signed = ", signed" if self.secrets else ""
        return f"<Webhook {self.url or 'of its jobs'} for {', '.join(self.events)}{signed}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Webhook) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.url, self.events, self.secrets, self.allow_hosts))

    def rule(self) -> WebhookRule | None:
        return None if self.url is None else WebhookRule(self.url, self.events)


def read_webhook(option: str, value: Any) -> tuple[str, Webhook | str | bool | None]:
    """Checks the option of a queue, a task or a job. False and None stand for no webhook."""
    if value is None or value is False:
        return option, False
    if isinstance(value, Webhook):
        return option, value
    if isinstance(value, str):
        return option, _readable(value)
    raise InvalidOption(option, f"cannot be {shown(value)}: give a URL, Webhook(url, ...), or None for none")


def rule_of(
    given: Webhook | str | bool | None, of_queue: Webhook | None, allowed: tuple[str, ...]
) -> WebhookRule | None:
    """The rule of a job: its own, or that of its queue if it says nothing (None). `allowed` are further hosts."""
    if given is False:
        return None
    if isinstance(given, Webhook):
        if given is not of_queue and (given.secrets or given.allow_hosts):
            raise InvalidOption(
                "webhook", "of a job has no secret and no allow_hosts: give these to Queue(..., webhook=Webhook(...))"
            )
        rule = given.rule()
    elif isinstance(given, str):
        rule = WebhookRule(given, EVENTS if of_queue is None else of_queue.events)
    else:
        rule = None if of_queue is None else of_queue.rule()
    if rule is not None:
        check_url(rule.url, (*(of_queue.allow_hosts if of_queue else ()), *allowed))
    return rule


def check_url(url: str, allowed: Iterable[str]) -> None:
    """Refuses a URL to which nothing would be sent."""
    if (problem := url_problem(web_url(url), allowed)) is not None:
        raise InvalidOption("webhook", f"cannot be sent to this URL, which {problem}")


def allowed_hosts(text: str) -> tuple[str, ...]:
    """The hosts of `ROPEWAY_WEBHOOK_ALLOW`."""
    return _hosts(host.strip() for host in text.split(",") if host.strip())


def _readable(url: object) -> str:
    if not isinstance(url, str):
        raise InvalidOption("webhook", f"cannot be sent to {shown(url)}: give a URL")
    try:
        web_url(url)
    except BadUrl as problem:
        raise InvalidOption("webhook", f"cannot be sent to this URL, which {problem}") from None
    return url


def _secrets(given: object) -> tuple[str, ...]:
    several = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(several, Iterable):
        raise InvalidOption("secret", "is not text: give text, or two while one replaces the other")
    secrets = tuple(several)
    if len(secrets) > MOST_SECRETS or not all(isinstance(one, str) and len(one) >= SHORTEST_SECRET for one in secrets):
        # Not shown: what is wrong with it may still be close to a secret.
        problem = f"must be text of at least {SHORTEST_SECRET} characters, or two such while one replaces the other"
        raise InvalidOption("secret", problem)
    return secrets


def _events(given: object) -> tuple[str, ...]:
    events = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
    if not events or not all(event in FINAL for event in events):
        raise InvalidOption("events", f"cannot be {shown(given)}: give some of {', '.join(FINAL)}")
    return tuple(dict.fromkeys(events))


def _hosts(given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidOption("allow_hosts", f'cannot be {shown(given)}: give a list of hosts, as in ["localhost:8000"]')
    return tuple(_host(host) for host in given)


def _host(given: object) -> str:
    host = given.lower() if isinstance(given, str) else ""
    try:
        if is_allowed(web_url(f"http://{host}"), (host,)):
            return host
    except BadUrl:
        pass
    raise InvalidOption(
        "allow_hosts", f'cannot have {shown(given)}: name a host, as in "localhost" or "localhost:8000"'
    )
