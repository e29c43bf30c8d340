"""How little a command imports: `--help` and `report` are answered without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from algolen import cli
from tests.conftest import SMOKE, CommandLine

HEAVY = ("torch", "wandb", "ray", "matplotlib", "scipy", "pandas", "safetensors")

IMPORTS = """
import json, sys
from algolen.cli import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]), file=sys.stderr)
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


def commands() -> list[str]:
    return [command.name or command.callback.__name__ for command in cli.app.registered_commands if command.callback]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["report"],
        ["report", "--json"],
        ["report", "--csv"],
        ["runs"],
        ["compare", "experiments.sqlite", "experiments.sqlite"],
        ["show", "", "--toml"],
        ["train", "-h"],
    ],
    ids=" ".join,
)
def test_what_needs_no_model_imports_nothing_heavy(trained: CommandLine, arguments: list[str]) -> None:
    found = python(trained.folder, "-c", IMPORTS, *(argument or trained.run for argument in arguments))
    code, modules = json.loads(found.stderr.splitlines()[-1])
    assert (code, [name for name in HEAVY if name in modules]) == (0, [])
    assert len(found.stdout) > 100
    # sqlite-utils imports numpy where it is installed; nothing else may.
    assert "numpy" not in modules or "sqlite_utils" in modules


def test_the_package_is_a_program(tmp_path: Path) -> None:
    found = python(tmp_path, "-m", "algolen", "--help")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("Usage: algolen [OPTIONS] COMMAND")


def test_the_program_exits_with_the_code_of_the_command(tmp_path: Path) -> None:
    found = python(tmp_path, "-m", "algolen", "report")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "algolen: no database at experiments.sqlite; `algolen train` makes one\n"


def test_the_commands_are_those_of_the_manual() -> None:
    assert set(commands()) >= {
        "train",
        "study",
        "report",
        "runs",
        "show",
        "eval",
        "compare",
        "sample",
        "tasks",
        "encodings",
        "doctor",
    }


@pytest.mark.parametrize("command", commands())
def test_every_command_says_what_it_does_and_what_every_option_is(algolen: CommandLine, command: str) -> None:
    shown = algolen(command, "--help")
    assert (shown.code, shown.stderr) == (0, "")
    assert f"Usage: algolen {command}" in shown.stdout
    summary = shown.stdout.split("\n\n")[1].strip()
    assert len(summary) > 20, "the docstring of the command is its summary"
    parameters = [parameter for parameter in _parameters(command) if parameter.name != "help"]
    assert [parameter.name for parameter in parameters if not parameter.help] == []


def _parameters(command: str) -> list[object]:
    import typer

    return typer.main.get_command(cli.app).commands[command].params


def test_help_lists_every_command_on_one_screen(algolen: CommandLine) -> None:
    shown = algolen("--help").stdout
    assert all(f"\n  {command} " in shown for command in commands())
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80


def test_the_program_alone_shows_its_help(algolen: CommandLine) -> None:
    alone = algolen()
    assert alone.stdout + alone.stderr == algolen("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "first"), [("show {run} --json", "{"), ("tasks", "task"), ("runs", "config-seed")]
)
def test_a_closed_pipe_is_no_error_of_ours(trained: CommandLine, arguments: str, first: str) -> None:
    command = f"{sys.executable} -m algolen {arguments.format(run=trained.run)} | true; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], cwd=trained.folder, capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.stderr) == ("141\n", "")
    command = f"{sys.executable} -m algolen {arguments.format(run=trained.run)} | head -1"
    found = subprocess.run(["bash", "-c", command], cwd=trained.folder, capture_output=True, text=True, timeout=120)
    assert (found.stdout.split()[0], found.stderr) == (first, "")


def test_dry_runs_import_no_services(algolen: CommandLine) -> None:
    found = python(algolen.folder, "-c", IMPORTS, *SMOKE, "--dry-run")
    code, modules = json.loads(found.stderr.splitlines()[-1])
    assert (code, [name for name in ("wandb", "ray", "matplotlib") if name in modules]) == (0, [])
