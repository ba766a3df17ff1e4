"""Files from the root of the repository that the site shows in addition to the pages. MkDocs calls `on_files`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parents[2]
SHOWN: Final = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md", "llms.txt": "llms.txt"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in SHOWN.items():
        text = from_the_pages((ROOT / source).read_text(), as_pages=page.endswith(".md"))
        files.append(File.generated(config, page, content=text))
    return files


def from_the_pages(text: str, *, as_pages: bool) -> str:
    """Rewrites links for the site: `docs/adding.md` is `adding.md` or `adding/`; links to code become its name."""
    text = re.sub(r"\[([^\]]+)\]\(ropeway/[^)]*\)", r"`\1`", text)
    return re.sub(r"\(docs/([a-z-]+)\.md", r"(\1.md" if as_pages else r"(\1/", text)
