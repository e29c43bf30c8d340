"""A study that takes seconds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import CommandLine

TINY = """
title = "A study for tests"
preset = "smoke"
task = "addition"
seeds = "0-1"
test_lengths = "2,4"
examples = 20

[train]
steps = 6
check_every = 3

[[trial]]
name = "slow"
set = ["train.learning_rate=1e-3"]

[[trial]]
name = "fast"
set = ["train.learning_rate=3e-3"]

[[run]]
pe = "nope"
trial = "slow"
quick = true

[[run]]
pe = "coupling"
trial = "fast"
seeds = "0"
set = ["coupling.ids=50"]
"""


@pytest.fixture
def tiny(algolen: CommandLine) -> CommandLine:
    """The command line in a folder with a study, tiny.toml, of three runs."""
    algolen.write("tiny.toml", TINY)
    return algolen


@pytest.fixture
def rows(algolen: CommandLine) -> Callable[..., list[tuple[Any, ...]]]:
    """Asks the database of the working directory."""

    def ask(sql: str, db: str = "experiments.sqlite") -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(algolen.folder / db, timeout=30)
        try:
            found = connection.execute(sql).fetchall()
            connection.commit()
            return found
        finally:
            connection.close()

    return ask
