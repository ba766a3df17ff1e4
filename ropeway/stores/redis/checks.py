"""Checks of a server before its first use: version, role, eviction, persistence and rights."""

from __future__ import annotations

from typing import Final

import hiredis

from ...errors import StoreReadOnly, StoreRefused, StoreVersion
from ...logger import log
from .link import Link
from .target import Target

OLDEST: Final = (6, 2)
_warned: set[str] = set()


async def check(link: Link, target: Target) -> None:
    """Raises for a server that would lose jobs; one that refuses `INFO` is accepted unchecked."""
    try:
        await link.ask(*probe(target))
    except hiredis.ReplyError as error:
        refuse_without_channels(target, error)
    try:
        if leaves_disk_to_saves(target, await link.ask("INFO")):
            warn_if_nothing_is_saved(target, await link.ask("CONFIG", "GET", "save"))
    except hiredis.ReplyError:
        # A user without this right.
        return


def probe(target: Target) -> tuple[str, str, str]:
    """A harmless command that tests the right to publish: a script would fail only after its first writes."""
    return "PUBLISH", f"{{{target.prefix}:}}:jobs", ""


def refuse_without_channels(target: Target, error: hiredis.ReplyError) -> None:
    """Raises if the probe failed for want of rights; other errors come again with the first call."""
    if str(error).startswith("NOPERM"):
        raise StoreRefused(
            target.url, f"this user may not wake workers: grant the channels, as by ACL SETUSER name '&*' ({error})"
        ) from error


def leaves_disk_to_saves(target: Target, said: object) -> bool:
    """Raises if `INFO` shows an unfit server; returns True if it has no append-only file."""
    facts = _facts(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))
    _check_version(target, facts)
    if facts.get("role") == "slave":
        raise StoreReadOnly(target.url, f"{target.address} is a replica: use the primary's address, or Sentinel")
    _check_eviction(target, facts)
    return facts.get("aof_enabled") == "0"


def warn_if_nothing_is_saved(target: Target, saves: list[bytes]) -> None:
    if len(saves) == 2 and saves[1] == b"" and target.address not in _warned:
        _warned.add(target.address)
        log.warning(
            "%s: this server keeps nothing on disk, so a restart loses every job: set appendonly yes", target.url
        )


def _facts(said: str) -> dict[str, str]:
    lines = (line.partition(":") for line in said.splitlines())
    return {fact: value for fact, colon, value in lines if colon}


def _check_version(target: Target, facts: dict[str, str]) -> None:
    version = facts.get("redis_version", "")
    try:
        numbers = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return
    if numbers < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise StoreVersion(target.url, f"the server is Redis {version}: {wanted} or newer, or Valkey, is needed")


def _check_eviction(target: Target, facts: dict[str, str]) -> None:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and not target.allows_eviction:
        raise StoreRefused(
            target.url,
            f"its maxmemory-policy is {policy}, which throws away jobs when memory runs out: "
            "set it to noeviction (CONFIG SET maxmemory-policy noeviction), or allow it with ?allow_eviction=1",
        )
