"""Flows from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropeway import Queue
from ropeway.cli.exit_codes import ExitCode
from ropeway.client.flow_tree import FlowNode

from .conftest import Arrange, Ropeway
from .processes import Programs

REPORT = {
    "name": "report",
    "data": {"number": 42},
    "queue": "reports",
    "id": "report-42",
    "on_child_failure": "ignore",
    "children": [
        {"name": "fetch", "data": "db", "queue": "etl", "attempts": 3, "children": [{"name": "open"}]},
        {"name": "fetch", "data": "api", "options": {"backoff": "linear:5s", "delay": 60}, "on_failure": "wait"},
    ],
}


def flow_of(arrange: Arrange, id: str = "report-42", queue: str = "reports") -> FlowNode:
    tree = arrange.on_queue(lambda found: found.flow(id), queue)
    assert isinstance(tree, FlowNode)
    return tree


def described(node: FlowNode) -> tuple[Any, ...]:
    return (node.queue, node.name, node.state, node.policy, [described(child) for child in node.children])


@pytest.mark.parametrize("place", ["report.json", "-"])
def test_a_flow_comes_from_a_file_or_standard_input(ropeway: Ropeway, arrange: Arrange, tmp_path: Path, place: str):
    (tmp_path / "report.json").write_text(json.dumps(REPORT))

    ran = ropeway("add", "--flow", place, "--json", given=json.dumps(REPORT))

    assert (ran.code, ran.json) == (ExitCode.OK, {"id": "report-42", "created": True, "deduplicated": False})
    opened: tuple[Any, ...] = ("etl", "open", "waiting", "fail", [])
    assert described(flow_of(arrange)) == (
        *("reports", "report", "waiting-children", None),
        [("etl", "fetch", "waiting-children", "ignore", [opened]), ("reports", "fetch", "delayed", "wait", [])],
    )


def test_the_root_is_in_the_named_queue_and_options_hold_for_all_that_have_none(ropeway: Ropeway, arrange: Arrange):
    flow = {"name": "report", "children": [{"name": "fetch", "attempts": 7}, {"name": "fetch"}]}

    ran = ropeway("add", "reports", "--flow", "-", "--attempts", "2", given=json.dumps(flow))

    tree = flow_of(arrange, ran.out.strip())
    assert [node.snapshot and node.snapshot.attempts for node in tree.walk()] == [2, 7, 2]


def test_a_flow_that_is_there_is_found(ropeway: Ropeway, arrange: Arrange):
    flow = {"name": "report", "id": "a", "children": [{"name": "fetch", "id": "b"}]}

    first = ropeway("add", "reports", "--flow", "-", "--json", given=json.dumps(flow))
    again = ropeway("add", "reports", "--flow", "-", "--json", given=json.dumps(flow))

    assert (first.json["created"], again.json["created"]) == (True, False)


@pytest.mark.parametrize(
    ("flow", "hint"),
    [
        ("{", "standard input is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "$: is a list"),
        ("{}", '$: has no "name"'),
        ('{"name": "a", "childs": []}', "$.childs: is unknown; did you mean 'children'?"),
        ('{"name": "a", "children": {}}', "$.children: is a dict"),
        ('{"name": "a", "children": ["b"]}', "$.children[0]: is a str"),
        ('{"name": "a", "children": [{"name": "b"}, {"name": 5}]}', "$.children[1].name: cannot be 5"),
        ('{"name": "a", "children": [{"name": "b", "attempts": 0}]}', "$.children[0]: option 'attempts'"),
        ('{"name": "a", "children": [{"name": "b", "backoff": "soon:1"}]}', "$.children[0]: 'soon:1' is no backoff"),
        ('{"name": "a", "children": [{"name": "b", "options": {"fast": 1}}]}', "$.children[0]: option 'fast'"),
        ('{"name": "a", "options": {"queue": "b"}}', "$.options.queue: is no option"),
        ('{"name": "a", "options": 5}', "$.options: cannot be 5"),
        ('{"name": "a", "on_child_failure": "panic"}', "$: option 'on_child_failure' cannot be 'panic'"),
        ('{"name": "a", "children": [{"name": "b", "queue": "no queue"}]}', "$.children[0]: 'no queue' cannot be"),
        ('{"name": "a", "children": [{"name": "b", "queue": 5}]}', "$.children[0]: option 'queue' cannot be 5"),
        ('{"name": "a", "id": "x", "children": [{"name": "b", "id": "x"}]}', "two jobs of the flow have the id 'x'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_added(
    ropeway: Ropeway, arrange: Arrange, flow: str, hint: str
):
    ran = ropeway("add", "reports", "--flow", "-", given=flow)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert hint in ran.err
    assert arrange.on_store(lambda store: store.queues()) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--flow", "-"], '$: has no "queue"'),
        (["reports", "report", "--flow", "-"], "--flow takes names"),
        (["reports", "--flow", "-", "--bulk", "-"], "no --bulk"),
        (["reports", "--flow", "-", "--id", "a"], "ids from the file"),
        (["reports", "--flow", "nowhere.json"], "cannot be read"),
        ([], "'QUEUE'"),
    ],
)
def test_arguments_that_cannot_be_meant_are_told(ropeway: Ropeway, arguments: list[str], hint: str):
    ran = ropeway("add", *arguments, given='{"name": "a"}')

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert hint in ran.err


def test_an_id_that_is_taken_is_told_and_nothing_is_added(ropeway: Ropeway, arrange: Arrange):
    ropeway("add", "reports", "fetch", "1", "--id", "b")

    ran = ropeway(
        "add", "reports", "--flow", "-", given='{"name": "a", "id": "a", "children": [{"name": "c", "id": "b"}]}'
    )

    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert "Nothing of the flow was stored." in ran.err
    assert arrange.state_of("a", "reports") is None


APP = """
from ropeway import Job, Queue, connect

store = connect()
reports, etl = Queue("reports", store=store), Queue("etl", store=store)

@etl.task(attempts=4)
async def fetch(source: str) -> str:
    return source.upper()

@reports.task
async def report(job: Job) -> list[str]:
    return sorted((await job.children_results()).values())

queues = [reports, etl]
"""


def test_the_result_of_the_root_is_waited_for(ropeway: Ropeway, programs: Programs, tmp_path: Path):
    (tmp_path / "app.py").write_text(APP)
    fetches = [{"name": "fetch", "queue": "etl", "data": {"source": source}} for source in ("db", "api")]
    (tmp_path / "report.json").write_text(json.dumps({"name": "report", "data": {}, "children": fetches}))
    programs.start("worker", "app:queues").says("etl")

    ran = ropeway("add", "reports", "--flow", "report.json", "--wait", "30s", "--json")

    assert (ran.code, ran.json["result"]) == (ExitCode.OK, ["API", "DB"])


def test_with_an_app_its_tasks_check_the_data_and_add_their_options(
    programs: Programs, arrange: Arrange, tmp_path: Path
):
    (tmp_path / "app.py").write_text(APP)
    child = {"name": "fetch", "queue": "etl", "data": {"source": "db"}}
    (tmp_path / "right.json").write_text(json.dumps({"name": "report", "id": "a", "data": {}, "children": [child]}))
    (tmp_path / "wrong.json").write_text(json.dumps({"name": "report", "children": [{**child, "data": {"sauce": 1}}]}))
    (tmp_path / "other.json").write_text(json.dumps({"name": "report", "children": [{**child, "name": "fetsh"}]}))

    right, wrong, other = (
        programs.start("add", "reports", "--flow", f"{name}.json", "--app", "app:queues")
        for name in ("right", "wrong", "other")
    )

    assert (right.exit_code(), wrong.exit_code(), other.exit_code()) == (ExitCode.OK, ExitCode.USAGE, ExitCode.USAGE)
    assert "$.children[0]: " in wrong.err
    assert "did you mean 'fetch'?" in other.err
    [fetched] = flow_of(arrange, "a").children
    assert fetched.snapshot is not None
    assert fetched.snapshot.attempts == 4
    counts = arrange.on_queue(Queue.counts, "reports")
    assert sum(counts.values()) == 1
