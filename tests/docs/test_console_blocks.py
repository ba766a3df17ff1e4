"""Commands on the pages exist, and take the arguments that they are given there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from ropeway.cli.main import cli

from .pages import ROOT, blocks

NOT_OURS = {"docker", "eval", "export", "fuser", "sqlite3"}
"""Programs of others, which need not be installed here."""
COMMANDS = [
    pytest.param(line.removeprefix("$ "), id=f"{block.page.stem}: {line.removeprefix('$ ')}")
    for block in blocks("console")
    for line in block.text.splitlines()
    if line.startswith("$ ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_a_page_is_right(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "letter.json").write_text("{}")
    (tmp_path / "letters.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    check(shlex.split(command))


def test_the_services_on_the_pages_start_workers():
    units = [
        line.partition("=")[2] for block in blocks("ini") for line in block.text.splitlines() if "ExecStart" in line
    ]
    images = [line.removeprefix("CMD ") for block in blocks("dockerfile") for line in block.text.splitlines()]
    pods = [yaml.safe_load(block.text) for block in blocks("yaml")]

    assert units
    assert pods
    for unit in units:
        _, *arguments = shlex.split(unit)
        check(["ropeway", *arguments])
    for command in images:
        if command.startswith("["):
            check(yaml.safe_load(command))
    for pod in pods:
        for container in pod["spec"]["template"]["spec"]["containers"]:
            check(container["args"])


def check(command: list[str]) -> None:
    match command:
        case ["pip", "install", package]:
            check_package(package)
        case ["ropeway", *arguments] | ["python", "-m", "ropeway", *arguments]:
            check_arguments(cli, "ropeway", arguments)
        case ["python", script] if script.endswith(".py"):
            assert any(block.text.startswith(f"# {script}\n") for block in blocks("python")), f"no page has {script}"
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case [program, *_]:
            assert program in NOT_OURS, f"{program} is neither ours nor known"


def check_package(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, _, extra = package.removesuffix("]").partition("[")
    assert name == project["name"]
    assert not extra or extra in project["optional-dependencies"]


def check_arguments(command: click.Command, name: str, arguments: list[str]) -> None:
    """Reads them as the program would, and runs nothing."""
    parent: click.Context | None = None
    while isinstance(command, click.Group):
        parent = click.Context(command, parent, info_name=name)
        found, inner, arguments = command.resolve_command(parent, arguments)
        assert found is not None
        assert inner is not None
        name, command = found, inner
    command.make_context(name, arguments, parent=parent).close()
