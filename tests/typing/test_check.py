"""That the check of right and wrong uses notices both kinds of failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import right
from .check import differences, from_page, main, marked


def test_a_wrong_use_that_is_accepted_is_a_failure():
    assert differences("mypy", {("wrong.py", 3)}, set()) == ["mypy accepts wrong.py:3, which is marked as wrong"]


def test_a_right_use_that_is_refused_is_a_failure():
    assert differences("mypy", set(), {("right.py", 7)}) == ["mypy refuses right.py:7, which is not marked"]


def test_the_marked_lines_are_found(tmp_path: Path):
    (tmp_path / "uses.py").write_text("fine()\nbroken()  # wrong\n")
    assert marked((tmp_path / "uses.py",)) == {("uses.py", 2)}


def test_a_line_of_a_page_keeps_its_number(tmp_path: Path):
    (tmp_path / "Page.md").write_text("# Page\n\n```python\nfirst()\n```\n\n```python\nawait second()\n```\n")

    lines = from_page(tmp_path / "Page.md", tmp_path).read_text().splitlines()

    assert [lines[0], lines[3], lines[7]] == ["async def page() -> None:", "    first()", "    await second()"]


@pytest.mark.parametrize("also", [set(), {("right.py", 1)}], ids=["one is missing", "one too many"])
def test_the_check_fails_when_a_checker_disagrees(also: set[tuple[str, int]]):
    reported = marked() | also if also else set(list(marked())[1:])
    with pytest.raises(SystemExit) as ended:
        main((lambda _: reported,))
    assert ended.value.code


def test_the_check_passes_when_the_checkers_report_what_is_marked():
    with pytest.raises(SystemExit) as ended:
        main((marked,))
    assert not ended.value.code


def test_the_right_uses_can_be_imported():
    assert {"resize", "fetch", "shrink-all", "crunch"} <= right.queue.tasks.keys()
