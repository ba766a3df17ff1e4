"""`python -m ropeway` is the command line."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from .cli.main import cli  # noqa: PLC0415 - an extra, which not every installation has
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        sys.exit('The command line is not installed: pip install "ropeway[cli]"')
    cli()


if __name__ == "__main__":
    main()
