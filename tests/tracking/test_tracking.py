"""What W&B is told, read back from what its own client wrote offline."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from algolen import cli, statistics
from algolen.store import Store
from algolen.tracking.tracking import COLUMNS
from tests.conftest import SMOKE, CommandLine
from tests.tracking.logs import Log, logs
from tests.training.test_endings import BROKEN

OFFLINE = (*SMOKE, "--wandb", "offline")
DEVELOPMENT = "development exact match/length "


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(folder / "experiments.sqlite")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def swept(folder: Path, where: str = "TRUE") -> list[list[Any]]:
    """The rows that the table of the sweep should have, from the database."""
    found = rows(
        folder,
        "SELECT test_set, axis, axis_value, length, exact, units, exact_match FROM v_length_curve "
        f"WHERE purpose = 'report' AND {where} ORDER BY test_set, length, axis, axis_value",
    )
    return [[*row, *statistics.wilson(row[4], row[5])] for row in found]


def assert_holds_the_curves(log: Log, folder: Path) -> None:
    """Every curve of the only run in the database, point by point, each once."""
    for name in ("loss", "in-distribution loss"):
        stored = rows(folder, f"SELECT step, value FROM curves WHERE name = '{name}' ORDER BY step")
        assert log.curve(name) == stored
    looks = rows(
        folder,
        "SELECT c.length, c.step, 1.0 * SUM(c.exact) / SUM(c.units) FROM counts c JOIN evaluations e "
        "ON e.id = c.evaluation_id WHERE e.purpose = 'development' GROUP BY c.length, c.step ORDER BY c.length, c.step",
    )
    lengths = sorted({length for length, _, _ in looks})
    assert [(length, *point) for length in lengths for point in log.curve(f"{DEVELOPMENT}{length}")] == looks
    assert lengths == [5, 6, 8]


@pytest.fixture(scope="module")
def offline_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the smoke preset was trained and logged offline; do not write to it."""
    folder = tmp_path_factory.mktemp("offline")
    with contextlib.chdir(folder):
        assert cli.run(OFFLINE) == 0
    return folder


@pytest.fixture(scope="module")
def log(offline_run: Path) -> Log:
    (found,) = logs(offline_run)
    return found


def test_a_run_is_named_grouped_and_described(log: Log, offline_run: Path) -> None:
    ((run_id, hash, config),) = rows(
        offline_run, "SELECT runs.id, hash, config_json FROM runs JOIN configs ON hash = config_hash"
    )
    assert log.run.run_id == run_id
    assert log.run.project == "algolen"
    assert log.run.display_name == "addition coupling seed 0"
    assert log.run.run_group == f"addition coupling {hash}"
    assert log.run.job_type == "train"
    assert set(log.run.tags) == {"addition", "coupling"}
    told = {name: value for name, value in log.config.items() if name != "_wandb"}
    assert told == {**json.loads(config), "seed": 0, "hash": hash}


def test_the_curves_are_those_of_the_database_against_the_step(log: Log, offline_run: Path) -> None:
    assert log.step_metrics == {"*": "step"}
    assert len(log.curve("loss")) == 60
    assert_holds_the_curves(log, offline_run)


def test_the_table_of_the_sweep_has_the_counts_of_the_database(log: Log, offline_run: Path) -> None:
    columns, data = log.table("sweep")
    assert tuple(columns) == COLUMNS
    assert data == swept(offline_run)
    assert [row[3] for row in data] == [2, 4, 6, 8]


def test_the_chart_shows_exact_match_over_length(log: Log, offline_run: Path) -> None:
    panel = log.config["_wandb"]["visualize"]["exact match over length"]["panel_config"]
    assert panel["panelDefId"] == "wandb/line/v0"
    assert panel["fieldSettings"] == {"x": "length", "y": "exact match", "stroke": "test set"}
    columns, data = log.table("exact match over length_table")
    assert columns == ["length", "exact match", "test set"]
    assert data == [[row[3], row[6], "random"] for row in swept(offline_run)]


def test_the_summary_says_how_it_ended_and_how_far_it_holds(log: Log) -> None:
    assert log.exit_code == 0
    assert log.summary["status"] == "done"
    assert log.summary["horizon/random"] is None
    assert log.summary["tested to/random"] == 8


def test_nothing_of_the_machine_or_the_code_is_logged(log: Log) -> None:
    assert log.run.host == ""
    assert not any((log.folder / "tmp" / "code").iterdir())
    files = {path.name for path in (log.folder / "files").rglob("*") if path.is_file()}
    assert all(name.endswith(".table.json") for name in files), files


def test_results_are_the_same_with_and_without_w_and_b(offline_run: Path, smoke_run: Path) -> None:
    for table in ("counts", "points", "curves", "evaluations"):
        found = sorted(map(repr, rows(offline_run, f"SELECT * FROM {table}")))
        assert found == sorted(map(repr, rows(smoke_run, f"SELECT * FROM {table}")))
        assert found
    for kind in ("last", "best"):
        ours, theirs = (
            load_file(next(folder.glob(f"runs/*/{kind}.safetensors"))) for folder in (offline_run, smoke_run)
        )
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_every_seed_is_a_run_of_one_group_and_one_command_sends_them_all(algolen: CommandLine) -> None:
    done = algolen(*OFFLINE, "--seeds", "0,2", "--wandb-project", "lengths")
    assert done.code == 0
    found = logs(algolen.folder)
    assert {log.run.project for log in found} == {"lengths"}
    assert len({log.run.run_group for log in found}) == 1
    assert sorted(log.config["seed"] for log in found) == [0, 2]
    (line,) = [line for line in done.stderr.splitlines() if "wandb sync" in line]
    assert {str(log.folder.relative_to(algolen.folder)) for log in found} == set(
        line.partition("wandb sync ")[2].split()
    )
    assert "W&B  offline, project lengths" in done.stderr
    assert {path.name for path in algolen.folder.iterdir()} == {"experiments.sqlite", "runs", "wandb"}


def test_off_is_off(algolen: CommandLine) -> None:
    said = algolen(*SMOKE, "--wandb", "off")
    assert said.code == 0
    assert "W&B" not in said.stderr
    assert not (algolen.folder / "wandb").exists()


def test_a_finished_run_is_logged_again_only_with_more_tests_and_then_in_full(trained: CommandLine) -> None:
    assert "W&B: nothing was trained or tested, so nothing is logged" in trained(*OFFLINE).stderr
    assert logs(trained.folder) == []
    assert trained(*OFFLINE, "--test-lengths", "3,5").code == 0
    (log,) = logs(trained.folder)
    assert_holds_the_curves(log, trained.folder)
    assert log.table("sweep")[1] == swept(trained.folder)
    assert [row[3] for row in log.table("sweep")[1]] == [2, 3, 4, 5, 6, 8]


def test_kinds_and_axes_have_rows_lines_and_horizons_of_their_own(trained: CommandLine) -> None:
    done = trained(*OFFLINE, "--test-lengths", "2,3", "--test-sets", "random,edge", "--axis", "operands=2,3")
    assert done.code == 0, done.stderr
    (log,) = logs(trained.folder)
    assert [row for row in log.table("sweep")[1] if row[1]] == sorted(
        swept(trained.folder, "axis = 'operands'"), key=key
    )
    series = {f"{kind}, operands {value}" for kind in ("random", "edge") for value in (2, 3)}
    assert {row[2] for row in log.table("exact match over length_table")[1]} == series | {"random"}
    assert {name for name in log.summary if name.startswith("horizon/")} == {
        f"horizon/{s}" for s in series | {"random"}
    }


def key(row: list[Any]) -> tuple[Any, ...]:
    """The order of the table."""
    return row[0], row[3], row[1], row[2]


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        ("raise RuntimeError('no more')", "failed", "RuntimeError: no more"),
        ("return h_BTD * float('nan')", "diverged", "the loss was not finite at step 10"),
    ],
)
def test_a_run_that_ends_badly_is_told_as_what_it_is(algolen: CommandLine, what: str, status: str, reason: str) -> None:
    # Not the very file of other tests: a plug-in is loaded once, and this one counts its batches.
    plugin = algolen.write("broken.py", BROKEN.replace("WHAT", what) + "\n# logged\n")
    ended = algolen(*OFFLINE, "--pe", "broken", "--plugin", plugin)
    assert ended.code == 1
    (log,) = logs(algolen.folder)
    assert log.exit_code == 1
    assert (log.summary["status"], log.summary["reason"]) == (status, reason)
    with Store.open(algolen.folder / "experiments.sqlite") as store:
        assert [run.status for run in store.runs()] == [status]
