"""Reads address and credentials out of a client of redis-py."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidOption
from ...showing import shown
from .target import PORTS, SCHEMES, Kind, Target


def target_of(client: Any) -> Target:
    """The target of a client: of one server, a cluster or a Sentinel service; sync or asyncio."""
    pool, nodes = getattr(client, "connection_pool", None), getattr(client, "nodes_manager", None)
    if nodes is not None:
        said = getattr(client, "connection_kwargs", None) or getattr(nodes, "connection_kwargs", None)
        seeds = [(node.host, node.port) for node in nodes.startup_nodes.values()]
        return _target(client, "cluster", said, seeds)
    said = getattr(pool, "connection_kwargs", None)
    sentinels = getattr(pool, "sentinel_manager", None)
    if sentinels is None:
        return _target(client, "server", said, [])
    if not getattr(pool, "is_master", True):
        raise InvalidOption("url", f"cannot be {shown(client)}: it reads from replicas; use `master_for`")
    seeds = [_place(sentinel.connection_pool.connection_kwargs, "sentinel") for sentinel in sentinels.sentinels]
    return _target(client, "sentinel", said, seeds, str(getattr(pool, "service_name", "")))


def _target(client: Any, kind: Kind, said: Any, seeds: list[tuple[str, int]], service: str = "") -> Target:
    if not isinstance(said, dict) or said.get("credential_provider") is not None:
        raise InvalidOption("url", f"cannot be {shown(client)}: use a client with a plain password, or a URL")
    connection = said.get("connection_class") or getattr(client, "connection_pool", client)
    connection = getattr(connection, "connection_class", connection)
    uses_tls = bool(said.get("ssl")) or "SSL" in getattr(connection, "__name__", "")
    path, database = said.get("path"), said.get("db") or 0
    places = seeds or [_place(said, kind)]
    return Target(
        _url(kind, uses_tls, places, service, database, path),
        *places[0],
        path=path,
        username=said.get("username"),
        password=said.get("password"),
        database=database,
        uses_tls=uses_tls,
        ca_file=said.get("ssl_ca_certs"),
        cert_file=said.get("ssl_certfile"),
        key_file=said.get("ssl_keyfile"),
        kind=kind,
        seeds=tuple(places),
        service=service,
    )


def _place(said: dict[str, Any], kind: Kind) -> tuple[str, int]:
    return said.get("host") or "localhost", int(said.get("port") or PORTS[kind])


def _url(
    kind: Kind, uses_tls: bool, places: list[tuple[str, int]], service: str, database: int, path: str | None
) -> str:
    """A URL for messages, without credentials."""
    scheme = next(scheme for scheme, meant in SCHEMES.items() if meant == (kind, uses_tls))
    if path:
        return f"{scheme}:///{database}?unix={path}"
    hosts = ",".join(f"{host}:{port}" for host, port in places)
    return f"{scheme}://{hosts}/{f'{service}/' if service else ''}{database}"
