"""The reference: every public name, with its signature and its own words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import ropeway
import ropeway.testing
from ropeway.client import new_jobs
from ropeway.client.attached import Attached
from ropeway.client.event_stream import EventStream
from ropeway.client.holding_back import HoldingBack
from ropeway.client.looking import Looking
from ropeway.client.moving import Moving
from ropeway.client.moving_many import MovingMany
from ropeway.client.worker_orders import WorkerOrders
from ropeway.worker.blocking_steps import StepsInPlace
from ropeway.worker.durable import Durable

from .source import alias_of, attribute_texts, attribute_types

_LONG: Final = 100
_MADE_BY_USERS: Final = {"Call", "FakeClock", "FakeStore", "JobType", "Keep", "Queue", "Worker"}
"""Classes whose constructor is for users; the others are answered by calls."""
_SPEAK_OF_THEMSELVES: Final = {"FakeStore", "JobHandle", "PhaseContext", "Queue"}
"""Classes that set attributes for users; those of the others are the worker's own."""
OURS_ALONE: Final = {
    "AddedJob": {"expected"},
    "FakeClock": {"elapsed", "controlling_loop", "move"},
    "FakeStore": {
        "add",
        "clock",
        "join",
        "join_blocking",
        "maintenance",
        "add_committed",
        "now",
        "own",
        "own_blocking",
        "prepare",
        "sibling",
    },
    "Job": {"end", "has_running_steps", "refuse_end", "run"},
    "PhaseContext": {"description", "is_over", "is_overdue"},
    "ProcessJob": {"report_phase"},
    "Queue": {"adds", "endings", "twin_store", "updates"},
}
"""What classes offer to other parts of Ropeway, and users do not call: no page shows it."""
_PARTS: Final[dict[type, tuple[type, ...]]] = {
    ropeway.Job: (ropeway.Job, Durable),
    ropeway.ProcessJob: (ropeway.ProcessJob, StepsInPlace),
    ropeway.Queue: (Attached, ropeway.Queue, Looking, WorkerOrders, EventStream, Moving, MovingMany, HoldingBack),
}
"""Classes whose methods the page shows as those of one, in its order: users know nothing of the bases."""


ALIASES: Final[dict[str, ModuleType]] = {"JobRequest": new_jobs}
"""Public names of types, and where each is written: Python itself forgets both name and words."""


def reference() -> str:
    names = sorted(ropeway.__all__, key=str.lower)
    errors = [name for name in names if _is_error(getattr(ropeway, name))]
    others = [name for name in names if name not in errors]
    parts = [_entry(ropeway, name, "##") for name in others]
    parts.append("## Errors\n\nTheir tree is on [a page of its own](errors.md).")
    parts += [_entry(ropeway, name, "###") for name in errors]
    return "\n\n".join(parts)


def testing_reference() -> str:
    names = sorted(ropeway.testing.__all__, key=str.lower)
    return "\n\n".join(_entry(ropeway.testing, name, "###") for name in names)


def _entry(module: ModuleType, name: str, level: str) -> str:
    value = getattr(module, name)
    parts = [f"{level} {name}"]
    if name in ALIASES:
        stands_for, text = alias_of(name, ALIASES[name])
        return "\n\n".join([*parts, _code(f"{name} = {stands_for}"), text])
    if name in _MADE_BY_USERS or not inspect.isclass(value):
        parts.append(_code(f"{name}{_signature(value)}"))
    parts.append(_text(value))
    if inspect.isclass(value) and not _is_error(value):
        parts += list(_attributes(value)) + list(_methods(value))
    return "\n\n".join(filter(None, parts))


def _attributes(cls: type) -> Iterator[str]:
    """Fields and properties, one line each."""
    types = attribute_types(cls)
    texts = attribute_texts(cls, in_init=cls.__name__ in _SPEAK_OF_THEMSELVES)
    properties = {name: member for name, member in _members(cls).items() if isinstance(member, property)}
    texts |= {name: _words(member.__doc__) for name, member in properties.items()}
    lines = []
    for name in dict.fromkeys([*types, *texts]):
        if _is_shown(cls, name):
            kind = f" *{types[name]}*".replace("|", "\\|") if name in types else ""
            lines.append(f"- `{name}`{kind}" + (f": {texts[name]}" if texts.get(name) else ""))
    if lines:
        yield "\n".join(lines)


def _methods(cls: type) -> Iterator[str]:
    for base in cls.__mro__[1:]:
        if base.__name__ in ropeway.__all__:
            yield f"It has all that a [{base.__name__}](#{base.__name__.lower()}) has, and:"
    for name, member in _members(cls).items():
        is_bound = not isinstance(member, staticmethod)
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not _is_shown(cls, name) or not inspect.isfunction(function):
            continue
        prefix = "async def " if inspect.iscoroutinefunction(inspect.unwrap(function)) else "def "
        shown = f"{prefix}{name}{_signature(function, bound=is_bound)}"
        yield "\n\n".join(filter(None, [f"**{cls.__name__}.{name}**", _code(shown), _text(function)]))


def _members(cls: type) -> dict[str, Any]:
    """Its own, and those of bases that are parts of it."""
    return {name: member for part in _PARTS.get(cls, (cls,)) for name, member in vars(part).items()}


def _is_shown(cls: type, name: str) -> bool:
    return not name.startswith("_") and name not in OURS_ALONE.get(cls.__name__, ())


def _signature(value: Any, *, bound: bool = False) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if bound:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    # Annotations are text already: without the marks that `inspect` puts around texts.
    shown = re.sub(r"(?<=: )'([^']*)'|(?<=-> )'([^']*)'", lambda mark: mark[1] or mark[2], str(signature))
    # Takes what is given in a wrong place, to say so.
    shown = re.sub(r"\*\w+: Never", "*", shown)
    return shown.replace(" -> None", "") if inspect.isclass(value) else shown


def _code(text: str) -> str:
    if len(text) > _LONG:
        head, inside, tail = _split(text)
        text = f"{head}(\n" + "".join(f"    {part},\n" for part in inside) + f"){tail}"
    return f"```py\n{text}\n```"


def _split(text: str) -> tuple[str, list[str], str]:
    """Before the parameters, the parameters, and what is answered."""
    start = text.index("(")
    depth, parts, begin = 0, [], start + 1
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if (text[at] == "," and depth == 1) or depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            return text[:start], [part for part in parts if part], text[at + 1 :]
    raise ValueError(text)


def _text(value: Any) -> str:
    # Of its own: a class without words would show those of its base.
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    return inspect.cleandoc(text) if text else ""


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)
