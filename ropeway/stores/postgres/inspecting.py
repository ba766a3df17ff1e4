"""Inspection of a server and its schema, which changes nothing: for `ropeway doctor` and `ropeway migrate`."""

from __future__ import annotations

import asyncio

from ...errors import RopewayError, StoreVersion
from ...store.inspection import Finding, Inspection
from .connection import open_link
from .schema import NOTHING, Found, find_schema, newest
from .target import Target


def inspect(target: Target) -> Inspection:
    return asyncio.run(_inspect(target))


async def _inspect(target: Target) -> Inspection:
    try:
        link = await open_link(target)
        try:
            found = await find_schema(link, target)
        finally:
            link.abort()
    except RopewayError as error:
        finding = Finding("server", "problem", str(error), "mend what it says, and look again")
        return Inspection(exists=not isinstance(error, StoreVersion), newest=newest(), findings=[finding])
    findings = [Finding("server", "ok", "it can be reached, and takes writes")]
    if found is None:
        if not target.migrates:
            what = f"there is no schema {target.schema!r} yet, and with migrate=off no job makes it"
            findings.append(Finding("schema", "warning", what, "run `ropeway migrate`"))
        scripts = NOTHING.scripts(target.schema)
        return Inspection(exists=False, newest=newest(), migrations=scripts, findings=findings)
    findings.append(_schema(target, found))
    return Inspection(True, newest(), found.version, found.scripts(target.schema), findings)


def _schema(target: Target, found: Found) -> Finding:
    remedy = "run `ropeway migrate`" + ("; workers do it too when they start" if target.migrates else "")
    if found.is_too_new:
        what = f"the schema {target.schema!r} has version {found.version}, this Ropeway knows {newest()}"
        return Finding("schema", "problem", what, "upgrade Ropeway here too, or use another schema")
    if found.is_older:
        what = f"the schema {target.schema!r} has version {found.version}, this Ropeway makes version {newest()} of it"
        return Finding("schema", "warning", what, remedy)
    if not found.has_functions:
        what = f"the schema {target.schema!r} lacks the functions of this release of Ropeway"
        return Finding("schema", "warning", what, remedy)
    if found.version > newest():
        return Finding("schema", "ok", f"version {found.version}, of a newer Ropeway, which this one can use")
    return Finding("schema", "ok", f"version {found.version}, the newest")
