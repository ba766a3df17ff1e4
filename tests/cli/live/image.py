"""Draws docs/images/top.svg: the live view of a run of the tour. `make picture` calls it; it takes a minute and a half.

Two shops share the work, so that there is more than one worker to see.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from ropeway import Queue
from ropeway.cli.live.drawing import View, draw
from ropeway.cli.live.gathering import Gatherer
from ropeway.cli.live.glyphs import UNICODE
from ropeway.cli.live.picture import Picture

ROOT: Final = Path(__file__).parents[3]
IMAGE: Final = ROOT / "docs" / "images" / "top.svg"
SIZE: Final = (116, 34)
INTERVAL: Final = 0.8
LOOKS: Final = 110

THEME: Final = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [
        (22, 27, 34),
        (255, 123, 114),
        (87, 190, 108),
        (227, 179, 65),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (201, 209, 217),
    ],
    [
        (72, 79, 88),
        (255, 161, 152),
        (126, 231, 135),
        (255, 214, 102),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (240, 246, 252),
    ],
)


async def take_picture() -> Picture:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ropeway.db"
        async with Queue("emails", url):
            # Whoever looks does not make the store.
            pass
        tours = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "examples.tour", "--lines", "--url", url, "--name", name),
                cwd=ROOT,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            for name in ("shop-1", "shop-2")
        ]
        try:
            return await _watch(url)
        finally:
            for tour in tours:
                tour.terminate()
                await tour.wait()


async def _watch(url: str) -> Picture:
    gatherer = Gatherer(url, step=INTERVAL)
    try:
        for _ in range(LOOKS):
            picture = await gatherer.look()
            await asyncio.sleep(INTERVAL)
        # A moment at which there is something to see.
        while not _is_lively(picture):
            await asyncio.sleep(INTERVAL)
            picture = await gatherer.look()
        return picture
    finally:
        await gatherer.close()


def _is_lively(picture: Picture) -> bool:
    bars = sum(isinstance(job.progress, int) and 10 <= job.progress <= 90 for job in picture.running)
    return bars >= 3 and len(picture.running) >= 7 and picture.queues[0].counts["waiting"] > 0


def draw_image(picture: Picture) -> str:
    width, height = SIZE
    shown = msgspec.structs.replace(picture, store="sqlite:///ropeway.db")
    console = Console(
        file=io.StringIO(), record=True, width=width, height=height, color_system="truecolor", force_terminal=True
    )
    console.print(draw(shown, View(interval=INTERVAL), width, height, UNICODE), height=height)
    return console.export_svg(title="ropeway top", theme=THEME, unique_id="top")


if __name__ == "__main__":
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    IMAGE.write_text(draw_image(asyncio.run(take_picture())))
