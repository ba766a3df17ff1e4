"""Output of the commands that list things: a table, JSON, or a line that says that there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from .tables import Column, show_table
from .text import as_json


def show_list(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], empty: str, document: Mapping[str, object] | None
) -> None:
    """Prints `document` as JSON if there is one, otherwise the rows; without any it says `empty`, on stderr."""
    if document is not None:
        click.echo(as_json(document))
    elif rows:
        show_table(columns, rows)
    else:
        click.echo(empty, err=True)
