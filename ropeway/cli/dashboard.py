"""`ropeway dashboard`: the server with its pages, and a browser that shows them."""

from __future__ import annotations

import click

from . import loops
from .helping import examples
from .logs import set_up_logs
from .options import url_option
from .serve import run_server


@click.command(
    epilog=examples("ropeway dashboard", "ropeway dashboard --read-only", "ropeway dashboard --port 0 --no-browser")
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8787, show_default=True, help="0 takes a free one.")
@click.option("--read-only", is_flag=True, help="The pages show, and change nothing.")
@click.option("--environment", metavar="NAME", help="Shown on every page, such as production.")
@click.option("--browser/--no-browser", "browse", default=True, show_default=True, help="Open the browser.")
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON.")
@url_option
def dashboard(
    url: str | None, port: int, read_only: bool, environment: str | None, browse: bool, as_json: bool
) -> None:
    """Serve the dashboard of a store, and open it in the browser.

    It is for this machine alone. For other machines and for programs there is `ropeway serve`, of which it is a part.
    """
    set_up_logs("json" if as_json else "pretty", "info")
    loops.run(
        run_server(
            url,
            "127.0.0.1",
            port,
            (),
            (),
            dashboard=True,
            read_only=read_only,
            environment=environment,
            browse=browse,
            heartbeat=5,
            timeout=30,
            attempts=3,
            drop_exhausted=False,
            no_auth=False,
            certificate=None,
            key=None,
            proxies=(),
            root_path="",
        ),
        "auto",
    )
