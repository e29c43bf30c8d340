"""Studies tell W&B too, however many processes share them."""

from __future__ import annotations

import sqlite3

import pytest

from tests.conftest import CommandLine
from tests.sweep.conftest import TINY
from tests.tracking.logs import logs

STUDY = ("study", "tiny.toml", "--device", "cpu", "--wandb", "offline")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_every_run_of_a_study_is_logged_once_with_its_own_settings(algolen: CommandLine, processes: str) -> None:
    algolen.write("tiny.toml", TINY)
    result = algolen(*STUDY, "--wandb-project", "lengths", "--processes", processes)
    assert result.code == 0, result.stderr
    connection = sqlite3.connect(algolen.folder / "experiments.sqlite")
    stored = set(connection.execute("SELECT id, pe, seed FROM runs JOIN configs ON hash = config_hash"))
    curves = set(connection.execute("SELECT run_id, step, value FROM curves WHERE name = 'loss'"))
    connection.close()
    found = logs(algolen.folder)
    assert len(found) == len(stored) == 3
    assert {(log.run.run_id, log.config["pe"], log.config["seed"]) for log in found} == stored
    assert {(log.run.run_id, *point) for log in found for point in log.curve("loss")} == curves
    assert {(log.run.project, log.exit_code) for log in found} == {("lengths", 0)}
    for log in found:
        assert log.folder.name in result.stderr


def test_that_nothing_was_left_to_log_is_said_once_however_many_processes_there_are(algolen: CommandLine) -> None:
    algolen.write("tiny.toml", TINY)
    assert algolen(*STUDY[:4]).code == 0
    result = algolen(*STUDY, "--processes", "2")
    assert result.code == 0
    assert result.stderr.count("W&B: ") == result.stderr.count("W&B: nothing was trained or tested") == 1


def test_a_study_refuses_a_mode_of_wandb_that_there_is_not_before_anything_is_written(algolen: CommandLine) -> None:
    algolen.write("tiny.toml", TINY)
    result = algolen("study", "tiny.toml", "--wandb", "offlin")
    assert result.code == 2
    assert "offline" in result.stderr
    assert not (algolen.folder / "experiments.sqlite").exists()
