"""`ropeway doctor`: finds problems, and says what to do about them."""

from __future__ import annotations

import asyncio

import click

from ..doctor.examining import examine
from ..showing import plural
from ..store.inspection import Finding
from ..store.url import connect
from .escaping import one_line
from .exit_codes import ExitCode
from .helping import examples
from .options import json_option, url_option
from .tables import LEVEL_COLOURS
from .text import as_json as json_text


@click.command(
    epilog=examples(
        "ropeway doctor",
        "ropeway doctor --url sqlite:////srv/jobs.db",
        "ropeway doctor --json | jq '.findings[] | select(.level == \"problem\")'",
    )
)
@url_option
@json_option
def doctor(url: str | None, as_json: bool) -> int:
    """Check the store and its queues, and say what to do.

    It makes, migrates and changes nothing. The exit code is 1 if there is a problem; a warning may be meant, such as a
    paused queue.
    """
    store = connect(url)
    findings = asyncio.run(examine(store))
    has_problem = any(finding.level == "problem" for finding in findings)
    if as_json:
        click.echo(json_text({"store": store.url, "ok": not has_problem, "findings": findings}))
    else:
        _show(store.url, findings)
    return ExitCode.FAILED if has_problem else ExitCode.OK


def _show(url: str, findings: list[Finding]) -> None:
    click.echo(url)
    for finding in findings:
        level = click.style(f"{finding.level:<8}", fg=LEVEL_COLOURS[finding.level])
        click.echo(f"  {level} {one_line(finding.check)}: {one_line(finding.what)}")
        if finding.remedy:
            click.echo(f"           {one_line(finding.remedy)}")
    wrong = sum(finding.level == "problem" for finding in findings)
    unsure = sum(finding.level == "warning" for finding in findings)
    if wrong or unsure:
        click.echo(f"{plural(wrong, 'problem')}, {plural(unsure, 'warning')}")
    else:
        click.echo("All is well.")
