"""What is drawn fits, at every size, and shows what must be seen."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from ropeway.cli.live.drawing import View, draw
from ropeway.cli.live.glyphs import ASCII, UNICODE, Glyphs, columns, glyphs_for, line
from ropeway.cli.live.picture import Picture, RunningPhase

from .factories import NOW, event, failure, next_run, picture, queue, running_job, worker

SIZES = [(120, 40), (200, 60), (80, 24), (60, 20), (40, 12), (30, 8), (20, 5), (10, 3), (1, 2)]


def lines_of(shown: Picture, width: int = 80, height: int = 24, glyphs: Glyphs = UNICODE, **view: Any) -> list[str]:
    encoding = glyphs.encoding
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    console = Console(file=out, width=width, height=height, color_system=None, legacy_windows=False)
    console.print(draw(shown, View(**{"interval": 1.0, **view}), width, height, glyphs), height=height)
    out.flush()
    out.seek(0)
    return out.read().splitlines()


def text_of(shown: Picture, width: int = 80, height: int = 24, **view: Any) -> str:
    return "\n".join(lines_of(shown, width, height, **view))


NASTY = picture(
    queues=tuple(queue(f"queue-{n}-日本語-{'x' * 90}", {"waiting": 10**9, "failed": 10**7}) for n in range(20)),
    running=tuple(
        running_job(
            "名前" * 40,
            worker="w" * 90,
            seconds=10**7,
            progress={"step": "\x1b[31m" + "y" * 200},
            attempt=99,
            attempts=99,
        )
        for _ in range(20)
    ),
    failures=(failure("line one\nline two\x1b[2J\r" + "z" * 500),) * 10,
    events=(event("retries-exhausted", names=("ü" * 80,), count=10**6, note="n" * 300),) * 40,
    workers=(worker("日本" * 60, running=10**5, concurrency=10**6, seconds=10**9),) * 5,
    next_runs=(next_run("日本" * 60, 10**9), next_run("n" * 200, -(10**6))),
)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize(
    "shown", [picture(), NASTY, Picture(NOW, "memory://"), picture(trouble="gone " * 50)], ids=range(4)
)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_drawing_is_exactly_as_large_as_the_terminal(width: int, height: int, shown: Picture, glyphs: Glyphs):
    lines = lines_of(shown, width, height, glyphs)

    assert len(lines) == height
    assert {cell_len(line) for line in lines} == {width}


def test_80_by_24_shows_queues_jobs_failures_and_events():
    text = text_of(picture())

    for needed in ("emails", "images", "orders", "waiting", "done/s", "p95 wait", "250ms", "completed/s"):
        assert needed in text
    for needed in ("resize_image", "40%", "ValueError: no address", "×1,000", "1 worker, 3/10 busy", "q quit"):
        assert needed in text


def test_120_by_40_shows_workers_rates_and_a_chart():
    text = text_of(picture(), 120, 40)

    for needed in (
        "workers 1",
        "web-1",
        "3/10",
        "added/s",
        "failed/s",
        "p50 wait",
        "12ms",
        "trend",
        "completed/s in the last",
    ):
        assert needed in text


def test_40_columns_show_what_matters_most():
    text = text_of(picture(), 40, 12)

    for needed in ("emails", "waiting", "active", "failed", "resize_image", "40%"):
        assert needed in text


def test_without_queues_it_says_so():
    assert "No queues yet" in text_of(Picture(NOW, "sqlite:///ropeway.db"))


def test_a_lost_store_is_said_above_and_below():
    lines = lines_of(picture(trouble="/srv/jobs.db: it cannot be opened"))

    assert "store lost" in lines[0]
    assert "/srv/jobs.db: it cannot be opened" in lines[-1]
    assert "emails" in "\n".join(lines)


def test_missed_events_are_said():
    assert "events came faster" in text_of(picture(queues=(queue(missed_events=True),)))


def test_a_pause_is_said():
    assert "paused" in lines_of(picture(), paused=True)[0]
    assert "p go on" in text_of(picture(), paused=True)


def test_paused_queues_and_queues_that_are_not_there_are_marked():
    assert "‖ emails" in text_of(picture(queues=(queue(paused=True),)))
    assert "no queue yet: letters" in text_of(picture(unknown_queues=("letters",)))
    assert "7 more queues" in text_of(picture(more_queues=7))


def test_a_selected_queue_hides_the_jobs_of_others():
    text = text_of(picture(), selected="images")

    assert "▸ images" in text
    assert "resize_image" in text
    assert "ValueError" not in text
    assert "emails" in text


def test_the_selected_queue_is_among_those_shown():
    many = picture(queues=tuple(queue(f"queue-{n:02}") for n in range(30)))

    assert "▸ queue-29" in text_of(many, selected="queue-29")
    assert "queue-00" in text_of(many)


def test_counts_of_rare_states_have_columns_only_where_there_are_any():
    assert "cancelled" not in text_of(picture(events=()), 200, 40)
    assert "cancelled" in text_of(picture(events=(), queues=(queue(counts={"cancelled": 4}),)), 200, 40)


def test_progress_that_is_no_number_is_text():
    assert "page 3 of 9" in text_of(picture(running=(running_job(progress="page 3 of 9"),)))
    assert '{"page": 3}' in text_of(picture(running=(running_job(progress={"page": 3}),)))


def test_attempts_are_shown_where_there_are_several():
    assert "2/5" in text_of(picture(running=(running_job(attempt=2, attempts=5),)))


def test_a_bar_is_known_without_colour():
    half = next(line for line in lines_of(picture(running=(running_job(progress=50),))) if "50%" in line)

    assert 0 < half.count("━") < half.count("━") + half.count("─")


def test_newest_come_first():
    lines = lines_of(picture(events=(event("added"), event("active"), event("completed"))))
    order = [
        next(n for n, line in enumerate(lines) if f" {name} " in line and "send_email" in line)
        for name in ("completed", "active")
    ]

    assert order == sorted(order)


def test_what_happened_stands_in_one_column_behind_names_of_any_length():
    told = ("phase-completed", "active", "x" * 40, "retries-exhausted")
    lines = lines_of(picture(events=tuple(event(name, names=("ship",)) for name in told)), 80, 40)
    places = [line.index("  ship") for line in lines if "  ship" in line and "xxx" not in line]

    assert len(places) == 3
    assert len(set(places)) == 1


@pytest.mark.parametrize(
    ("encoding", "glyphs"), [("utf-8", UNICODE), ("UTF8", UNICODE), ("ascii", ASCII), ("latin-1", ASCII)]
)
def test_signs_are_those_that_the_encoding_has(encoding: str, glyphs: Glyphs):
    assert glyphs_for(encoding) == glyphs


def test_ascii_stays_ascii():
    "\n".join(lines_of(NASTY, glyphs=ASCII)).encode("ascii")


def test_a_line_shows_zero_too():
    assert line([0, 1, 7], UNICODE) == "▁▂█"


def test_columns_grow_from_the_bottom():
    assert columns([0, 4, 8, 12, 16], 2, UNICODE) == ["   ▄█", " ▄███"]


def test_a_running_phase_is_named_before_its_bar():
    job = running_job("import", progress=42, phase=RunningPhase("process", 2, 3))
    long = running_job("import", progress=42, phase=RunningPhase("p" * 100, 2, 3))

    line = next(line for line in lines_of(picture(running=(job,))) if "2/3" in line)
    assert re.search(r"2/3 process .*[^ ] 42 %", line)
    assert re.search(r"2/3 p+… 42 %", text_of(picture(running=(long,))))


def test_the_next_runs_are_a_line_with_as_many_as_fit():
    runs = (next_run("pulse", 0.2), next_run("nightly", 90), next_run("weekly", 86_400 * 3), next_run("x" * 50, 10**6))

    [line] = [line for line in lines_of(picture(next_runs=runs)) if "next runs" in line]

    assert line.rstrip() == " next runs  pulse now · nightly in 1m30s · weekly in 3d00h"


def test_a_late_run_says_so():
    assert "nightly 5m00s late" in text_of(picture(next_runs=(next_run(seconds=-300),)))


def test_without_schedules_there_is_no_such_line():
    assert "next runs" not in text_of(picture(next_runs=()))


def test_of_a_selected_queue_only_its_own_runs():
    assert "weekly" not in text_of(picture(), selected="emails")
