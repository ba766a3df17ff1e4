"""`ropeway top` in a real terminal, which it leaves as it found it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from .terminal import Terminal

Start = Callable[..., Terminal]
SECOND_SCREEN, FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture
def start(open_terminal: Start, url: str) -> Start:
    def start(*arguments: str, **options: object) -> Terminal:
        return open_terminal("-m", "ropeway", "top", "--url", url, "--interval", "0.2", *arguments, **options)

    return start


def assert_given_back(terminal: Terminal) -> None:
    output = terminal.output
    assert terminal.current_manners() == terminal.manners
    assert output.rindex(FIRST_SCREEN) > output.rindex(SECOND_SCREEN)
    assert output.rindex(CURSOR_SHOWN) > output.rindex(CURSOR_HIDDEN)
    assert "Traceback" not in output


def test_q_quits(start: Start):
    terminal = start()
    terminal.until_shown("emails")
    terminal.press("q")

    assert terminal.exit_code() == 0
    assert_given_back(terminal)


def test_ctrl_c_ends_it(start: Start):
    terminal = start()
    terminal.until_shown("emails")
    terminal.press("\x03")

    assert terminal.exit_code() == 130
    assert_given_back(terminal)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it(start: Start, number: signal.Signals, code: int):
    terminal = start()
    terminal.until_shown("emails")
    terminal.process.send_signal(number)

    assert terminal.exit_code() == code
    assert_given_back(terminal)


@pytest.mark.parametrize(("width", "height"), [(120, 40), (60, 20), (40, 12), (20, 5)])
def test_it_follows_the_size_of_the_terminal(start: Start, width: int, height: int):
    terminal = start()
    terminal.until_shown("q quit")
    terminal.resize(width, height)
    terminal.until(lambda: len(terminal.screen) == height and terminal.shows("emails"), "a frame of the new size")

    assert {cell_len(line) for line in terminal.screen} == {width}


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(start: Start):
    terminal = start()
    terminal.until_shown("emails")
    terminal.press("\x1a")
    terminal.until(terminal.is_stopped, "the stop")
    assert_given_back(terminal)
    frames = terminal.output.count("emails")

    terminal.process.send_signal(signal.SIGCONT)
    terminal.until(lambda: terminal.output.count("emails") > frames, "another frame")
    terminal.press("q")

    assert terminal.exit_code() == 0
    assert_given_back(terminal)


def test_p_pauses_and_goes_on(start: Start):
    terminal = start()
    terminal.until_shown("p pause")
    terminal.press("p")
    terminal.until_shown("p go on")
    terminal.press("p")
    terminal.until_shown("p pause")


def test_arrows_choose_a_queue(start: Start):
    terminal = start()
    terminal.until_shown("emails")
    terminal.press("\x1b[B")
    terminal.until_shown("▸ emails")
    terminal.press("\t")
    terminal.until_shown("▸ images")
    terminal.press("\x1b[A")
    terminal.until_shown("▸ emails")
    terminal.press("a")
    terminal.until(lambda: not terminal.shows("▸"), "all queues")


def test_new_queues_appear(start: Start, url: str, open_terminal: Start):
    terminal = start()
    terminal.until_shown("emails")
    open_terminal(
        "-c", f"from asyncio import run; from ropeway import Queue; run(Queue('letters', {url!r}).add('print'))"
    )

    terminal.until_shown("letters")


def test_a_store_that_is_lost_is_said_until_it_is_back(start: Start, tmp_path: Path):
    terminal = start()
    terminal.until_shown("emails")
    (tmp_path / "jobs.db").rename(tmp_path / "away.db")
    terminal.until_shown("store lost")
    assert terminal.shows("emails")
    (tmp_path / "away.db").rename(tmp_path / "jobs.db")
    terminal.until(lambda: not terminal.shows("store lost"), "its return")


def test_without_colours_there_are_none(start: Start):
    terminal = start(env={"NO_COLOR": "1"})
    terminal.until_shown("emails")

    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7])m", terminal.output)


def test_where_the_encoding_has_no_blocks_it_is_ascii(start: Start):
    terminal = start(env={"PYTHONIOENCODING": "ascii"})
    terminal.until_shown("emails")

    assert terminal.output.isascii()


def test_in_a_terminal_too_it_can_be_lines(start: Start):
    terminal = start("--plain")
    terminal.until(lambda: "emails waiting=3" in terminal.output, "a line")
    terminal.press("\x03")

    assert terminal.exit_code() == 130
    assert "\x1b" not in terminal.output
