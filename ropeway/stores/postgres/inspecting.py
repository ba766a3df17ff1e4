"""What can be said of a server and its schema without making or migrating it."""

from __future__ import annotations

import asyncio

from ...errors import RopewayError, StoreVersion
from ...store.inspection import Finding, Inspection
from .checks import schema_version
from .connection import open_link
from .statements import migrations
from .target import Target


def inspect(target: Target) -> Inspection:
    return asyncio.run(_inspect(target))


async def _inspect(target: Target) -> Inspection:
    scripts = list(migrations(target.schema))
    try:
        link = await open_link(target)
        try:
            version = await schema_version(link, target)
        finally:
            link.abort()
    except RopewayError as error:
        finding = Finding("server", "problem", str(error), "mend what it says, and look again")
        return Inspection(exists=not isinstance(error, StoreVersion), newest=len(scripts), findings=[finding])
    findings = [Finding("server", "ok", "it can be reached, and takes writes")]
    if version is None:
        if not target.migrates:
            what = f"there is no schema {target.schema!r} yet, and with migrate=off no job makes it"
            findings.append(Finding("schema", "warning", what, "run `ropeway migrate`"))
        return Inspection(exists=False, newest=len(scripts), migrations=scripts, findings=findings)
    findings.append(_schema(target, version, len(scripts)))
    return Inspection(True, len(scripts), version, scripts[version:], findings)


def _schema(target: Target, version: int, newest: int) -> Finding:
    if version > newest:
        what = f"the schema {target.schema!r} has version {version}, this Ropeway knows {newest}"
        return Finding("schema", "problem", what, "upgrade Ropeway here too, or use another schema")
    if version < newest:
        what = f"the schema {target.schema!r} has version {version}, this Ropeway makes version {newest} of it"
        remedy = "run `ropeway migrate`" + ("; workers do it too when they start" if target.migrates else "")
        return Finding("schema", "warning", what, remedy)
    return Finding("schema", "ok", f"version {version}, the newest")
