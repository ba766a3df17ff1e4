"""Writes the derived sections of all pages anew, and names the pages that changed."""

from __future__ import annotations

from .sections import PAGES, renewed


def main() -> None:
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        if (now := renewed(text)) != text:
            page.write_text(now)
            print(page.relative_to(PAGES.parent))  # noqa: T201 - what it did


main()
