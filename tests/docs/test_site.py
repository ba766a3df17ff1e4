"""The site builds without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import PAGES, ROOT

# It is built once.
pytestmark = pytest.mark.xdist_group("site")

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?(https?://[^"'\s>]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_on_the_site(site: Path):
    pages = {page.stem for page in PAGES if page.parent == ROOT / "docs"} - {"index"}

    assert {page for page in pages if not (site / page / "index.html").exists()} == set()


def test_the_site_loads_nothing_from_elsewhere(site: Path):
    assert {url for page in site.rglob("*.html") for url in LOADED.findall(page.read_text())} == set()


def test_the_site_serves_the_text_for_language_models(site: Path):
    links = LINK.findall((site / "llms.txt").read_text())

    assert links
    assert [link for link in links if not (site / link / "index.html").exists()] == []


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "llms.txt"], ids=lambda p: p.name
)
def test_links_of_files_outside_the_site_lead_somewhere(page: Path):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []
