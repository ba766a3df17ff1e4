"""Taking away many jobs at once: clean and obliterate."""

from __future__ import annotations

from msgspec.structs import replace

from ....errors import InvalidOption
from ....job.states import FINAL, STATES, state_named
from ....store.commands import Clean, Obliterate
from ....store.values import BATCH, Cleaned
from ..step import Step
from .ending import drop
from .operate import revoke


def clean(step: Step, command: Clean) -> Cleaned:
    state = state_named(command.state)
    if state == "active":
        raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
    book = step.book(command.queue)
    shelf = book.shelf(state)
    keys = shelf.keys if state in FINAL else shelf.oldest()
    batch = max(0, min(command.limit, BATCH))
    old = keys.first(batch + 1, before=(step.now - command.older_than + 1,))
    ids = [id for _, _, id in old[:batch]]
    for id in ids:
        drop(book, book.jobs[id])
    if ids:
        book.notice("cleaned", {"count": len(ids), "state": state})
    return Cleaned(ids, more=len(old) > batch)


def obliterate(step: Step, command: Obliterate) -> Cleaned:
    book = step.book(command.queue)
    active = len(book.shelf("active"))
    is_refused = active > 0 and not command.force
    ids: list[str] = []
    if not is_refused:
        for state in STATES:
            ids += [id for _, _, id in book.shelf(state).keys.first(BATCH - len(ids))]
        for id in ids:
            revoke(step, book.jobs[id], "removed")
            book.drop(id)
    book.keep_quiet()
    if is_refused or book.jobs:
        book.afterwards(book.set, replace(book.settings, paused=True))
    else:
        book.afterwards(step.place.forget, book)
    return Cleaned(ids, more=bool(book.jobs) and not is_refused, active=active if is_refused else 0)
