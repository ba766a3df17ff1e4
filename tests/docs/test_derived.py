"""What the pages say of the code is what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.derived.sections import PAGES, SECTIONS, named, renewed

WITH_SECTIONS = [page for page in sorted(PAGES.glob("*.md")) if named(page.read_text())]


@pytest.mark.parametrize("page", WITH_SECTIONS, ids=lambda page: page.stem)
def test_the_derived_sections_of_a_page_are_current(page: Path):
    text = page.read_text()

    assert renewed(text) == text, "run python -m docs.derived"


def test_every_section_stands_in_a_page():
    assert {name for page in WITH_SECTIONS for name in named(page.read_text())} == set(SECTIONS)
