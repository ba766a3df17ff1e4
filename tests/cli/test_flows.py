"""Flows as the command line shows and moves them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ropeway import Flow, Queue, Worker
from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.ids import short_id
from ropeway.store.contract import Store

from .conftest import Arrange, Ropeway
from .processes import Programs


def add(arrange: Arrange, flow: Flow, queue: str = "reports") -> str:
    job = arrange.on_queue(lambda found: found.add_flow(flow), queue)
    return str(job.id)


def work(arrange: Arrange, queue: str, *names: str, failing: bool = False) -> None:
    """Runs the waiting jobs of a queue: of these names, or of all."""

    async def handler(job: Any) -> Any:
        if failing:
            raise ValueError("no such source")
        return {"done": job.name}

    async def run(found: Queue) -> None:
        jobs = [job for job in await found.find("waiting") if not names or job.name in names]
        async with Worker(found, dict.fromkeys(names, handler) if names else handler):
            await asyncio.gather(*(job.result() for job in jobs), return_exceptions=True)

    arrange.on_queue(run, queue)


def report(**options: Any) -> Flow:
    fetches = [Flow("fetch", queue="etl", id=f"fetch-{number}") for number in range(3)]
    return Flow("report", id="report-42", children=fetches, **options)


def cells(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_flow_is_shown_as_a_tree(ropeway: Ropeway, arrange: Arrange):
    inner = Flow("inner", id="inner", children=[Flow("leaf", id="leaf", delay=600)])
    add(arrange, Flow("report", id="report-42", children=[inner, Flow("last", id="last", queue="etl")]))

    ran = ropeway("flows", "show", "report-42")

    assert ran.code == ExitCode.OK
    assert cells(ran.out)[1:] == [
        ["report", "report-42", "waiting-children", "reports", "0", "of", "2", "ended"],
        ["├─", "inner", "inner", "waiting-children", "reports", "0", "of", "1", "ended"],
        ["│", "└─", "leaf", "leaf", "delayed", "reports", "due", "+10m"],
        ["└─", "last", "last", "waiting", "etl"],
    ]


def test_ended_jobs_show_how_long_they_took_and_what_came_of_it(ropeway: Ropeway, arrange: Arrange):
    add(arrange, report(on_child_failure="ignore"))
    work(arrange, "etl", failing=True)
    work(arrange, "reports")

    root, *fetches = cells(ropeway("flows", "show", "report-42").out)[1:]

    assert root[:4] == ["report", "report-42", "completed", "reports"]
    assert root[4].endswith("s")
    assert root[5:] == ['{"done":"report"}']
    assert [row[6:] for row in fetches] == [["ValueError:", "no", "such", "source,", "ignore", "on", "failure"]] * 3


def test_what_is_hidden_is_counted(ropeway: Ropeway, arrange: Arrange):
    inner = Flow("inner", id="inner", children=[Flow("leaf") for _ in range(4)])
    add(arrange, Flow("report", id="report-42", children=[inner, *(Flow("fetch") for _ in range(9))]))

    by_depth = ropeway("flows", "show", "report-42", "--depth", "1").out
    by_limit = ropeway("flows", "show", "report-42", "--limit", "4").out

    assert "… 4 more" in by_depth
    assert by_depth.count("fetch") == 9
    assert "… 7 more" in by_limit
    assert "… 4 more" in by_limit


def test_a_shared_job_is_shown_in_full_once(ropeway: Ropeway, arrange: Arrange):
    shared = Flow("shared", id="shared", children=[Flow("leaf", id="leaf")])
    both = [Flow(name, id=name, children=[shared]) for name in ("left", "right")]
    add(arrange, Flow("report", id="report-42", children=both))

    shown = ropeway("flows", "show", "report-42")
    document = ropeway("flows", "show", "report-42", "--json").json

    assert [row[-2:] == ["shown", "above"] for row in cells(shown.out) if "shared" in row] == [False, True]
    assert shown.out.count("leaf") == 2
    assert [job["id"] for job in document["jobs"]] == ["report-42", "left", "shared", "leaf", "right"]


def test_a_removed_child_shows_what_its_parent_knows(ropeway: Ropeway, arrange: Arrange):
    children = [Flow("fetch", id="gone", remove_on_complete=True), Flow("other", id="there")]
    add(arrange, Flow("report", id="report-42", children=children))
    work(arrange, "reports", "fetch")

    shown = ropeway("flows", "show", "report-42")
    _, gone, there = ropeway("flows", "show", "report-42", "--json").json["jobs"]

    assert ["├─", "(removed)", "gone", "completed", "reports", '{"done":"fetch"}'] in cells(shown.out)
    assert (gone["removed"], gone["name"], gone["state"]) == (True, None, "completed")
    assert gone["result"] == {"done": "fetch"}
    assert (there["removed"], there["name"], there["state"]) == (False, "other", "waiting")


def test_json_has_all_jobs_in_a_flat_list_however_deep(ropeway: Ropeway, arrange: Arrange):
    flow = Flow("step", id="0")
    for number in range(1, 1_200):
        flow = Flow("step", id=str(number), children=[flow])
    add(arrange, flow)

    document = ropeway("flows", "show", "1199", "--depth", "5000", "--limit", "5000", "--json").json

    assert document["root"] == {"queue": "reports", "id": "1199"}
    assert [job["id"] for job in document["jobs"]] == [str(number) for number in range(1_199, -1, -1)]
    assert document["jobs"][0]["children"] == [{"queue": "reports", "id": "1198"}]
    assert document["jobs"][0]["counts"] == {"pending": 1, "completed": 0, "failed": 0, "cancelled": 0}


def test_short_ids_are_accepted_and_unknown_ones_refused(ropeway: Ropeway, arrange: Arrange):
    id = add(arrange, Flow("report", children=[Flow("fetch")]))

    assert ropeway("flows", "show", short_id(id), "--json").json["root"]["id"] == id
    assert ropeway("flows", "show", "nobody").code == ExitCode.NOT_FOUND


def test_following_prints_each_change_until_the_root_has_ended(programs: Programs, arrange: Arrange):
    add(arrange, report())
    follower = programs.start("flows", "show", "report-42", "--follow")
    as_json = programs.start("flows", "show", "report-42", "--follow", "--json")
    follower.says("0 of 3 ended")
    as_json.says("report-42")

    work(arrange, "etl")
    follower.says("reports  report-42  report  waiting")
    work(arrange, "reports")

    assert (follower.exit_code(), as_json.exit_code()) == (ExitCode.OK, ExitCode.OK)
    lines = follower.out.splitlines()
    assert lines[-1] == 'reports  report-42  report  completed  {"done":"report"}'
    assert 'etl  fetch-1  fetch  completed  {"done":"fetch"}' in lines
    documents = [json.loads(line) for line in as_json.out.splitlines()]
    assert (documents[0]["jobs"][0]["state"], documents[-1]["jobs"][0]["state"]) == ("waiting-children", "completed")


def test_following_a_flow_whose_root_goes_ends(programs: Programs, arrange: Arrange):
    add(arrange, report())
    follower = programs.start("flows", "show", "report-42", "--follow")
    follower.says("0 of 3 ended")

    arrange.on_queue(lambda queue: queue.remove("report-42"), "reports")

    assert follower.exit_code() == ExitCode.OK


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_in_a_terminal_the_tree_fits_and_is_kept_current(programs: Programs, arrange: Arrange, columns: int):
    add(arrange, report())
    terminal = programs.start_in_terminal("flows", "show", "report-42", "--follow", columns=columns)
    terminal.shows("waiting-children")

    work(arrange, "etl")
    work(arrange, "reports")

    assert terminal.exit_code() == ExitCode.OK
    assert "\x1b[32mcompleted" in terminal.text
    assert max(map(len, terminal.text.rpartition("JOB")[2].splitlines())) < columns + 20
    assert terminal.text.count("└─ fetch") >= 2


def test_ctrl_c_ends_following(programs: Programs, arrange: Arrange):
    add(arrange, report())
    terminal = programs.start_in_terminal("flows", "show", "report-42", "--follow")
    terminal.shows("waiting-children")

    terminal.types("\x03")

    assert terminal.exit_code() == ExitCode.INTERRUPTED
    assert "Traceback" not in terminal.text


def test_a_job_shows_its_parents_and_counts_its_children(ropeway: Ropeway, arrange: Arrange):
    add(arrange, report())
    work(arrange, "etl")

    parent, child = ropeway("jobs", "show", "report-42"), ropeway("jobs", "show", "fetch-1")
    document = ropeway("jobs", "show", "report-42", "--json").json

    assert ["children", "3", "completed"] in cells(parent.out)
    assert ["parents", "reports/report-42"] in cells(child.out)
    assert document["children"] == {"pending": 0, "completed": 3, "failed": 0, "cancelled": 0}


def test_jobs_that_wait_for_children_are_listed_and_counted(ropeway: Ropeway, arrange: Arrange):
    add(arrange, report())

    listed, counted = ropeway("jobs", "list", "--queue", "reports"), ropeway("queues", "list")

    assert cells(listed.out)[1][:3] == ["report-42", "report", "waiting-children"]
    assert listed.out.rstrip().endswith("3 children")
    assert "WAITING-CHILDREN" in counted.out


def test_a_flow_is_cancelled_with_its_children_if_asked_to(ropeway: Ropeway, arrange: Arrange):
    add(arrange, report())

    alone = ropeway("jobs", "cancel", "report-42")
    assert (alone.code, arrange.state_of("fetch-1", "etl")) == (ExitCode.OK, "waiting")

    again = ropeway("jobs", "cancel", "report-42", "--children", "--reason", "wrong", "--json")
    assert (again.json["done"], arrange.state_of("fetch-1", "etl")) == (1, "cancelled")


@pytest.mark.parametrize(("arguments", "child"), [([], None), (["--keep-children"], "waiting")])
def test_a_flow_is_removed_as_a_whole_unless_its_children_are_kept(
    ropeway: Ropeway, arrange: Arrange, arguments: list[str], child: str | None
):
    add(arrange, report())

    ran = ropeway("jobs", "remove", "report-42", *arguments)

    assert (ran.code, ran.out) == (ExitCode.OK, "report-42 removed\n")
    assert arrange.state_of("report-42", "reports") is None
    assert arrange.state_of("fetch-1", "etl") == child


def test_a_flow_with_an_active_job_is_removed_by_force_alone(ropeway: Ropeway, arrange: Arrange):
    add(arrange, report())

    async def claim(store: Store) -> None:
        async with Queue("etl", store=store) as queue:
            assert await Worker(queue, {}).claim() is not None

    arrange.on_store(claim)

    refused = ropeway("jobs", "remove", "report-42")
    assert refused.code == ExitCode.FAILED
    assert "report-42 was left as it is: job 'fetch-0' is active" in refused.err
    assert arrange.state_of("fetch-1", "etl") == "waiting"

    assert ropeway("jobs", "remove", "report-42", "--force").code == ExitCode.OK
    assert arrange.state_of("fetch-0", "etl") is None


def test_a_parent_and_its_child_can_be_named_together(ropeway: Ropeway, arrange: Arrange):
    add(arrange, Flow("report", id="a", children=[Flow("fetch", id="b")]))

    ran = ropeway("jobs", "remove", "a", "b")

    assert (ran.code, ran.out.split()) == (ExitCode.OK, ["a", "removed", "b", "removed"])
