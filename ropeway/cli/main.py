"""The `ropeway` command group."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import click

from .. import __version__
from .exit_codes import MEANINGS
from .failures import ClosedPipe, guarded
from .helping import examples
from .sink import finish
from .streams import open_closed_streams

COMMANDS: Final = {
    "worker": "Run the jobs of an app's queues.",
    "add": "Add a job, a file of jobs or a flow.",
    "jobs": "List, show, retry, signal, cancel, promote, change, redrive and remove jobs.",
    "flows": "Show flows: jobs that wait for other jobs.",
    "schedules": "List, show, make, pause, resume, run and remove schedules.",
    "webhooks": "List, show and send again deliveries of webhooks, enable URLs, deliver.",
    "workers": "List, pause, resume and drain workers.",
    "queues": "List, pause, resume, limit, clean, drain and obliterate queues.",
    "dashboard": "Serve the dashboard of a store, and open it in the browser.",
    "serve": "Serve a store over HTTP: a broker for workers in any language, and the dashboard.",
    "tokens": "Create, list and revoke the tokens of `ropeway serve`.",
    "events": "Show what happened in a queue, and what happens.",
    "metrics": "Print the numbers of all queues for Prometheus.",
    "top": "Show queues, running jobs, workers, failures and events as they change.",
    "doctor": "Check the store and its queues, and say what to do.",
    "migrate": "Bring the store to this version of Ropeway.",
    "bench": "Measure the store on this machine.",
    "completion": "Print the completion script of a shell.",
}
"""Commands by name, each in the file `name.py`, with the first line of its help."""

NAME: Final = "ropeway"


class Commands(click.Group):
    """Imports the file of a command when it is called, so that it starts without importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, stub and getattr(import_module(f".{name}", __package__), str(name)), rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as closed:
            raise ClosedPipe from closed

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Sets the program name to `ropeway`, and reports errors without a traceback."""
        wishes = extra.setdefault("obj", {"debug": bool(os.environ.get("ROPEWAY_DEBUG"))})
        run = partial(super().main, args, NAME, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if reconfigure := getattr(stream, "reconfigure", None):
                # A character that the terminal's encoding lacks must not end the command.
                reconfigure(errors="backslashreplace")
        code = guarded(run, lambda: wishes["debug"])
        finish()
        sys.exit(code)


@click.group(
    cls=Commands,
    commands={name: click.Command(name, help=text) for name, text in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n\n".join(
        [
            examples(
                'ropeway add emails send_email \'{"to": "a@example.com"}\'',
                "ropeway worker app:queue --concurrency 20",
                "ropeway jobs list --state failed",
            ),
            "\n".join(["\b", "Exit codes:", *(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())]),
        ]
    ),
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error (or set ROPEWAY_DEBUG).")
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Look at queues, add jobs and run workers."""
    if debug:
        context.obj["debug"] = True
    if os.environ.get("NO_COLOR"):
        context.color = False
