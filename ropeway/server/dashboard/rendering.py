"""Templates: everything is escaped, and every link knows the prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from ... import __version__
from ...client.snapshot import attempts_of
from ...job.states import FINAL, OPEN, STATES
from ...showing import plural
from . import formats
from .event_details import event_details
from .graphs import short_id
from .redacting import Redact, redacted

if TYPE_CHECKING:
    from .visits import Visit

SECTIONS: Final = (
    ("o", "Overview", "/"),
    ("q", "Queues", "/queues"),
    ("j", "Jobs", "/jobs"),
    ("f", "Failures", "/failures"),
    ("l", "Flows", "/flows"),
    ("s", "Schedules", "/schedules"),
    ("w", "Workers", "/workers"),
    ("e", "Events", "/events"),
    ("d", "Doctor", "/doctor"),
)
"""The navigation: the key after `g`, the name and the path."""


class Renderer:
    def __init__(self, redact: Redact | None) -> None:
        self._environment: Final = Environment(
            loader=PackageLoader(__name__.rpartition(".")[0]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters = (formats.number, formats.duration, formats.exact, formats.iso, formats.short, formats.pretty)
        self._environment.filters.update({each.__name__: each for each in filters})
        self._environment.filters["attempts"] = attempts_of
        self._environment.filters["compact"] = formats.compact
        self._environment.filters["segment"] = lambda text: quote(str(text), safe="")
        self._environment.globals.update(
            plural=plural,
            short_id=short_id,
            event_details=event_details,
            redacted=lambda kind, value: redacted(redact, kind, value),
            query=lambda **given: urlencode({name: value for name, value in given.items() if value not in (None, "")}),
            version=__version__,
            sections=SECTIONS,
            STATES=STATES,
            OPEN=OPEN,
            FINAL=FINAL,
        )

    def render(self, visit: Visit, template: str, facts: dict[str, Any]) -> str:
        given = {
            "visit": visit,
            "root": visit.root,
            "principal": visit.principal,
            "may_operate": visit.may_operate,
            "note": visit.arg("note"),
            "environment": visit.dashboard.options.environment,
            "read_only": visit.dashboard.options.read_only,
            "store": visit.store.url,
            "live": "",
            "section": "",
            **facts,
        }
        return self._environment.get_template(template).render(given)
