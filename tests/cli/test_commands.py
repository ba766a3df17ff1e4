"""What holds for every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

import ropeway as package
from ropeway.cli.exit_codes import MEANINGS, ExitCode
from ropeway.cli.main import COMMANDS, cli
from ropeway.client.workers import WORKER_RECORDS
from ropeway.store.values import Record

from .conftest import Arrange, Ropeway


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        _, command, _ = cli.resolve_command(context, [name])
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {part}", each) for part, each in command.commands.items())


EVERY_COMMAND = list(commands())


@pytest.mark.parametrize(("name", "command"), EVERY_COMMAND, ids=lambda each: each if isinstance(each, str) else "")
def test_every_command_has_help_with_examples(ropeway: Ropeway, name: str, command: click.Command):
    ran = ropeway(*name.split(), "--help")

    assert ran.code == ExitCode.OK
    assert "Examples:" in ran.out
    assert f"ropeway {name.split(' ', maxsplit=1)[0]}" in ran.out.partition("Examples:")[2]
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(("name", "command"), EVERY_COMMAND, ids=lambda each: each if isinstance(each, str) else "")
def test_every_command_that_answers_can_answer_in_json(name: str, command: click.Command):
    options = {option for parameter in command.params for option in parameter.opts}

    assert "--json" in options or isinstance(command, click.Group) or name in ("completion", "metrics")


@pytest.mark.parametrize(("name", "command"), EVERY_COMMAND, ids=lambda each: each if isinstance(each, str) else "")
def test_the_list_of_commands_says_what_their_help_says(name: str, command: click.Command):
    if name in COMMANDS:
        assert (command.help or "").startswith(COMMANDS[name])


def test_help_names_all_commands_and_exit_codes_and_imports_none_of_them(ropeway: Ropeway):
    ran = ropeway("--help")

    assert all(name in ran.out for name in COMMANDS)
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []
    assert all(meaning in ran.out for meaning in MEANINGS.values())
    assert set(MEANINGS) == set(ExitCode)


def test_the_version_is_the_packages(ropeway: Ropeway):
    assert ropeway("--version").out == f"ropeway {package.__version__}\n"


def test_no_command_at_all_shows_help(ropeway: Ropeway):
    ran = ropeway()

    assert ran.code == ExitCode.USAGE
    assert "Usage: ropeway" in ran.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["jbos"], "'jobs'"),
        (["jobs", "lits"], "'list'"),
        (["jobs", "list", "--sate", "failed"], "--state"),
        (["jobs", "list", "--state", "faild"], "the states are waiting"),
        (["jobs", "list", "--limit", "many"], "--limit"),
        (["queues", "clean", "letters", "--older-than", "soon"], "is not a duration"),
        (["queues", "list", "--url", "mongodb://here"], "it knows "),
        (["queues", "list", "--url", "sqlite://wrong"], "use sqlite:///file.db"),
        (["events"], "QUEUE"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_is_told_in_one_line(ropeway: Ropeway, arguments: list[str], hint: str):
    ran = ropeway(*arguments)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert hint in ran.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["queues", "list"], ExitCode.OK),
        (["jobs", "list"], ExitCode.OK),
        (["jobs", "show", "a"], ExitCode.NOT_FOUND),
        (["queues", "resume", "letters"], ExitCode.NOT_FOUND),
        (["queues", "drain", "letters", "--yes"], ExitCode.NOT_FOUND),
        (["events", "letters", "--follow"], ExitCode.NOT_FOUND),
    ],
    ids=str,
)
def test_looking_for_a_store_that_is_not_there_makes_none(ropeway: Ropeway, arguments: list[str], code: ExitCode):
    ran = ropeway(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert ran.err.count("\n") == (1 if code else 2)
    assert "ropeway.db" in ran.err
    assert ropeway("migrate", "--check").code == ExitCode.FAILED


def test_a_store_that_cannot_be_read_is_told_in_one_line(ropeway: Ropeway, arrange: Arrange, tmp_path: object):
    ran = ropeway("queues", "list", "--url", f"sqlite:///{tmp_path}")

    assert ran.code == ExitCode.STORE
    assert "it is a folder" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["queues", "resume", "lettres"],
        ["queues", "clean", "lettres", "--yes"],
        ["queues", "drain", "lettres", "--yes"],
        ["queues", "obliterate", "lettres", "--yes"],
        ["events", "lettres"],
        ["jobs", "list", "--queue", "lettres"],
        ["jobs", "show", "a", "--queue", "lettres"],
        ["jobs", "cancel", "--queue", "lettres", "--yes"],
    ],
    ids=" ".join,
)
def test_an_unknown_queue_is_not_found_and_the_near_one_is_named(
    ropeway: Ropeway, arrange: Arrange, arguments: list[str]
):
    arrange.job()

    ran = ropeway(*arguments)

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "did you mean 'letters'?" in ran.err


@pytest.mark.parametrize(
    "arguments", [["queues", "list"], ["queues", "pause", "letters"], ["jobs", "list"], ["doctor"]], ids=" ".join
)
def test_a_worker_of_another_version_is_in_nobodys_way(ropeway: Ropeway, arrange: Arrange, arguments: list[str]):
    arrange.job("completed")
    arrange.on_store(lambda store: store.remember(Record(WORKER_RECORDS, "new", '{"id":"new","new_schema":1}')))

    ran = ropeway(*arguments)

    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert "letters" in ran.out


def test_debug_shows_where_an_error_came_from(ropeway: Ropeway, monkeypatch: pytest.MonkeyPatch):
    assert "Traceback" not in ropeway("jobs", "show", "a").err
    assert "Traceback" in ropeway("--debug", "jobs", "show", "a").err
    monkeypatch.setenv("ROPEWAY_DEBUG", "1")
    assert "Traceback" in ropeway("jobs", "show", "a").err


def test_a_fault_of_ours_is_one_line_too(ropeway: Ropeway, arrange: Arrange, monkeypatch: pytest.MonkeyPatch):
    arrange.job()
    monkeypatch.setattr("ropeway.cli.queues.listing.known_queues", lambda *_: 1 / 0)

    ran = ropeway("queues", "list")

    assert ran.code == ExitCode.FAILED
    assert ran.err == "Error: ZeroDivisionError: division by zero (a fault in Ropeway; ROPEWAY_DEBUG=1 shows where)\n"
