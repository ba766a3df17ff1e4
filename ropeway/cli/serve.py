"""`ropeway serve`: the broker over HTTP."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import Any, Final

import click

from ..job.codec import decode
from ..job.durations import milliseconds
from ..logger import log
from . import loops
from .helping import examples
from .live.signals import ending
from .logs import LEVELS, LogFormat, set_up_logs
from .loops import LOOPS, LoopName
from .options import duration, url_option
from .stores import refuse_memory

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog=examples(
        "ropeway serve",
        "ropeway tokens create --role admin",
        "ropeway serve --host 0.0.0.0 --allowed-host jobs.example.com",
        "curl http://127.0.0.1:8787/v1/stats",
    )
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8787, show_default=True)
@click.option("--allowed-host", "hosts", multiple=True, metavar="NAME", help="A name it is called by; can be repeated.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Another site whose pages may call it.")
@click.option("--trusted-proxy", "proxies", multiple=True, metavar="IP", help="Whose X-Forwarded-For is believed.")
@click.option("--root-path", default="", metavar="PREFIX", help="The prefix that a proxy in front of it strips.")
@click.option("--heartbeat", type=duration, default="5", show_default=True, help="How often workers report.")
@click.option("--timeout", type=duration, default="30", show_default=True, help="How long a job stays without that.")
@click.option("--attempts", type=click.IntRange(1), default=3, show_default=True, help="Of jobs that say nothing else.")
@click.option("--drop-exhausted", is_flag=True, help="Remove jobs whose attempts are used up.")
@click.option("--schemas", type=_FILE, help="A JSON file: JSON Schemas of payloads, by type or queue.")
@click.option("--certificate", type=_FILE, help="For HTTPS: a PEM file.")
@click.option("--key", type=_FILE, help="For HTTPS: the key of the certificate.")
@click.option("--insecure-no-auth", "no_auth", is_flag=True, help="No tokens, even if there are some: loopback only.")
@click.option(
    "--dashboard/--no-dashboard", default=True, show_default=True, help="Pages for people, at the same address."
)
@click.option("--read-only", is_flag=True, help="The pages show, and change nothing.")
@click.option("--environment", metavar="NAME", help="Shown on every page, such as production.")
@click.option("--log-format", type=click.Choice(["pretty", "json"]), default="pretty", show_default=True)
@click.option("--json", "log_format", flag_value="json", help="The same as --log-format json.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option(
    "--loop", type=click.Choice(LOOPS), default="auto", show_default=True, help="auto: uvloop, if it is installed."
)
@url_option
def serve(log_format: LogFormat, log_level: str, loop: LoopName, **given: Any) -> None:
    """Serve a store over HTTP: a broker for workers in any language, and the dashboard.

    Without tokens it listens to this machine alone, and callers need none. Make tokens by `ropeway tokens create`.
    """
    loops.check(loop)
    set_up_logs(log_format, log_level)
    loops.run(run_server(**given), loop)


async def run_server(
    url: str | None, host: str, port: int, hosts: tuple[str, ...], origins: tuple[str, ...], **given: Any
) -> None:
    try:
        from ..server.application import broker  # noqa: PLC0415 - it needs the extra
        from ..server.dashboard.application import Dashboard, Options  # noqa: PLC0415
        from ..server.limits import Limits  # noqa: PLC0415
        from ..server.serving import Address, refuse_open_doors, serving  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise click.UsageError(f"{missing.name} is not installed: pip install 'ropeway[server]'") from missing
    refuse_memory(url)
    no_auth = given["no_auth"]
    limits = Limits(
        heartbeat=milliseconds(given["heartbeat"]) / 1000,
        timeout=milliseconds(given["timeout"]) / 1000,
        attempts=given["attempts"],
        drop_exhausted=given["drop_exhausted"],
    )
    schemas = None if given.get("schemas") is None else _read_schemas(given["schemas"])
    app = broker(url, hosts=hosts, origins=origins, limits=limits, no_auth=no_auth, schemas=schemas)
    if given["dashboard"]:
        app.pages = Dashboard(app, Options(given["read_only"], environment=given["environment"]))
    address = Address(host, port)
    try:
        has_tokens = await app.authenticator.has_tokens()
        refuse_open_doors(address, has_tokens=has_tokens, no_auth=no_auth)
    except BaseException:
        await app.store.close()
        raise
    tls = {"ssl_certfile": given["certificate"], "ssl_keyfile": given["key"]} if given["certificate"] else {}
    root = f"/{given['root_path'].strip('/')}".rstrip("/")
    with ending() as end:
        async with serving(app, address, trusted_proxies=given["proxies"], root_path=root, **tls) as found:
            who = "with tokens" if has_tokens and not no_auth else "without tokens, for this machine alone"
            log.info("serving %s at %s (%s)", app.store.url, found.url, who)
            if given.get("browse"):
                # Some browsers return only when they are closed: the server must be able to end before.
                threading.Thread(target=webbrowser.open, args=(found.url,), daemon=True).start()
            await end
    log.info("stopped")


def _read_schemas(path: Path) -> Any:
    try:
        return decode(path.read_text())
    except (OSError, ValueError) as wrong:
        raise click.BadParameter(f"{path} cannot be read as JSON: {wrong}", param_hint="--schemas") from None
