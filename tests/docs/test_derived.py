"""What the pages say of the code is what the code says."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import ropeway
import ropeway.testing
from docs.derived.api import OURS_ALONE
from docs.derived.sections import PAGES, SECTIONS, named, renewed

WITH_SECTIONS = [page for page in sorted(PAGES.glob("*.md")) if named(page.read_text())]


@pytest.mark.parametrize("page", WITH_SECTIONS, ids=lambda page: page.stem)
def test_the_derived_sections_of_a_page_are_current(page: Path):
    text = page.read_text()

    assert renewed(text) == text, "run python -m docs.derived"


def test_every_section_stands_in_a_page():
    assert {name for page in WITH_SECTIONS for name in named(page.read_text())} == set(SECTIONS)


@pytest.mark.parametrize("kind", OURS_ALONE)
def test_what_is_ours_alone_is_there_and_not_in_the_reference(kind: str):
    page = (PAGES / "api.md").read_text()
    module = ropeway.testing if kind in ropeway.testing.__all__ else ropeway
    entry = page.partition(f"# {kind}\n")[2].partition("\n## ")[0].partition("\n### ")[0]

    assert entry
    for name in OURS_ALONE[kind]:
        assert hasattr(getattr(module, kind), name)
        assert f"**{kind}.{name}**" not in entry
        assert f"- `{name}`" not in entry


def calls_of(kind: str) -> Iterator[str]:
    """What can be called on a public class, by its own name or that of the public class that it comes from."""
    cls = getattr(ropeway, kind)
    owner = kind
    for base in cls.__mro__ if inspect.isclass(cls) and not issubclass(cls, BaseException) else ():
        owner = base.__name__ if base.__name__ in ropeway.__all__ else owner
        if base.__module__.startswith("ropeway."):
            own = OURS_ALONE.get(owner, ())
            found = [name for name, member in vars(base).items() if inspect.isfunction(member)]
            yield from (f"**{owner}.{name}**" for name in found if not name.startswith("_") and name not in own)


def test_every_call_of_a_public_class_is_in_the_reference():
    """Also those that come from bases that are not public."""
    page = (PAGES / "api.md").read_text()

    assert [call for kind in ropeway.__all__ for call in calls_of(kind) if call not in page] == []
