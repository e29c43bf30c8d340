"""What all tests stand on: one thread, plain output, and the command line in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from algolen import cli

# The threads of several tests would wait for each other.
torch.set_num_threads(1)

# Tables and messages must not depend on the terminal.
os.environ.update(NO_COLOR="1", TERM="dumb", COLUMNS="80")
for _name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "ALGOLEN_DB"):
    os.environ.pop(_name, None)

SMOKE = ("train", "--task", "addition", "--pe", "coupling", "--preset", "smoke", "--device", "cpu")
"""The training of the `trained` folder: seconds, and seed 0."""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class CommandLine:
    """`algolen` in a working directory: call it with arguments."""

    folder: Path
    read: Callable[[], tuple[str, str]]

    def __call__(self, *arguments: str | Path) -> Result:
        code = cli.run([str(argument) for argument in arguments])
        return Result(code, *self.read())

    @property
    def run(self) -> str:
        """The id of the trained run."""
        return min(path.name for path in (self.folder / "runs").iterdir())

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the working directory."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def files(self) -> dict[str, bytes | None]:
        """Everything in the working directory, with its bytes; None for folders."""
        found = sorted(self.folder.rglob("*"))
        return {str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else None for path in found}


@pytest.fixture
def algolen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALGOLEN_DB", raising=False)
    capsys.readouterr()
    return CommandLine(tmp_path, capsys.readouterr)


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the smoke preset was trained once; do not write to it."""
    folder = tmp_path_factory.mktemp("smoke")
    with contextlib.chdir(folder):
        assert cli.run(SMOKE) == 0
    return folder


@pytest.fixture
def trained(algolen: CommandLine, smoke_run: Path) -> CommandLine:
    """The command line in a folder with a trained run."""
    shutil.copytree(smoke_run, algolen.folder, dirs_exist_ok=True)
    return algolen
