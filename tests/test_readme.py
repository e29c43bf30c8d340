"""README.md: what it shows is what there is, and what it tells to type works."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
from pathlib import Path

import pytest
import torch

from algolen import cli, registry
from algolen.random import Random
from algolen.sweep import study as studies
from tests.conftest import CommandLine

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "examples/run.toml"]
COMMANDS = {command.name or command.callback.__name__ for command in cli.app.registered_commands if command.callback}
FOREIGN = {"--index-url"}
"""Options in README that are not ours."""

BLOCKS = re.findall(r"^```(sh|console)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
TYPED = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for kind, block in BLOCKS
    for line in block.replace("\\\n", "").splitlines()
    if kind == "sh" or line.startswith("$ ")
]


def helped(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.run([command, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_files_are_shown_as_they_are(path: Path) -> None:
    shown = re.search(rf"^`examples/{path.name}`:\n\n```\w+\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert shown[1] == path.read_text()


def test_every_command_task_and_encoding_is_in_the_readme() -> None:
    known = registry.load()
    for name in COMMANDS:
        assert f"`algolen {name}" in README, name
    for name in (*known.tasks, *known.encodings):
        assert f"`{name}`" in README, name


def test_every_command_and_option_of_the_readme_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    options = {name: set(re.findall(r"--[a-z][a-z-]+", helped(name, capsys))) for name in COMMANDS}
    for line in TYPED:
        if line.startswith("algolen "):
            command = line.split()[1]
            assert command in COMMANDS, line
            assert set(re.findall(r"--[a-z][a-z-]+", line)) <= options[command], line
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert mentioned <= set.union(*options.values()) | FOREIGN
    for name in re.findall(r"`algolen ([a-z]+)", README):
        assert name in COMMANDS


def test_every_make_target_of_the_readme_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {f"reproduce-{name}" for name in studies.names()}
    assert {line.split()[1] for line in TYPED if line.startswith("make ")} <= targets
    assert set(re.findall(r"`make ([a-z-]+)", README)) <= targets


def test_every_path_of_the_readme_is_there() -> None:
    for path in re.findall(r"`((?:algolen|tasks|examples|tests|benchmarks)/[\w./-]*)`", README):
        assert (ROOT / path).exists(), path


def test_the_commands_of_the_readme_work_in_their_order_and_leave_what_ships_as_it_is(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (algolen.folder / "examples").symlink_to(ROOT / "examples")
    shipped = Path(shutil.copy(ROOT / "experiments.sqlite", algolen.folder))
    ran = 0
    for line in TYPED:
        command, *arguments = shlex.split(line)
        if command == "sqlite3":
            with sqlite3.connect(arguments[-2]) as database:
                assert database.execute(arguments[-1]).fetchall(), line
        elif command == "export":
            monkeypatch.setenv(*arguments[0].split("="))
        elif command == "algolen":
            if arguments[0] == "train" and "smoke" not in arguments and "--dry-run" not in arguments:
                arguments.append("--dry-run")  # it takes minutes
            if "RUN" in arguments:
                with sqlite3.connect(os.environ["ALGOLEN_DB"]) as database:
                    run = database.execute("SELECT run FROM v_runs WHERE pe = 'coupling'").fetchone()[0]
                arguments[arguments.index("RUN")] = run
            result = algolen(*arguments)
            assert result.code == 0, f"{line}\n{result.stderr}"
        else:
            assert command in ("make", "source"), line
            continue
        ran += 1
    assert ran > 12
    assert shipped.read_bytes() == (ROOT / "experiments.sqlite").read_bytes()


def test_samples_are_shown_as_they_are(algolen: CommandLine) -> None:
    (algolen.folder / "examples").symlink_to(ROOT / "examples")
    shown = re.findall(r"^\$ (algolen sample .*)\n((?:(?!\$ |```|…).*\n)*)", README, re.MULTILINE)
    assert len(shown) == 4
    for line, output in shown:
        assert algolen(*shlex.split(line)[1:]).stdout.rstrip() == output.rstrip()


def test_the_example_encoding_refuses_ids_that_do_not_grow(algolen: CommandLine) -> None:
    plugin = ROOT / "examples/distance.py"
    refused = algolen(
        "train", "--task", "addition", "--pe", "coupling+distance", "--preset", "smoke", "--plugin", plugin
    )
    assert refused.code == 2
    assert "leave the id map out" in refused.stderr


@pytest.mark.parametrize("letters", [2, 10, 26])
def test_the_example_task_agrees_with_its_oracle(letters: int) -> None:
    copying = registry.load([ROOT / "examples/copying.py"]).task("copying")(letters=letters)
    lengths_B = torch.arange(1, 65) % 9 + 1
    batch = copying.sample(lengths_B, Random.of(0, "test", examples_B=torch.arange(64)))
    for row, length in enumerate(lengths_B.tolist()):
        symbols = copying.decode(batch.tokens_BT[row][batch.valid_BT[row]].tolist())
        places = batch.scored_BT[row].nonzero()[:, 0].tolist()
        targets = copying.decode(batch.targets_BT[row, places].tolist())
        assert dict(zip(places, targets, strict=True)) == copying.oracle(symbols)
        assert len(symbols) == copying.tape_length(length)
        assert len(places) == length + 1


@pytest.mark.parametrize("length", [1, 7])
def test_the_example_task_draws_an_example_alike_in_any_batch(length: int) -> None:
    copying = registry.load([ROOT / "examples/copying.py"]).task("copying")()
    alone = copying.sample(torch.tensor([length]), Random.of(0, "test", examples_B=torch.tensor([5])))
    among = copying.sample(torch.tensor([12, length]), Random.of(0, "test", examples_B=torch.tensor([4, 5])))
    tape = alone.tape_length
    assert torch.equal(alone.tokens_BT[0], among.tokens_BT[1, :tape])
    assert torch.equal(alone.structure.coupled_BTA[0], among.structure.coupled_BTA[1, :tape])  # type: ignore[index]
