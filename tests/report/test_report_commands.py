"""`algolen report` and `algolen runs` as commands."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from report_examples import BAD, GOOD, Filled
from typer.testing import CliRunner, Result

from algolen.cli.report import report
from algolen.cli.runs import runs
from algolen.errors import UserError


def call(filled: Filled, *arguments: str) -> Result:
    app = typer.Typer()
    app.command("report")(report)
    app.command("runs")(runs)
    environment = {"ALGOLEN_DB": str(filled.store.path), "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    result = CliRunner().invoke(app, arguments, env=environment)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def some(filled: Filled) -> Filled:
    hash = filled.config(pe="coupling")
    filled.run(hash, 0, GOOD)
    filled.run(hash, 1, BAD)
    filled.run(hash, 2, status="failed")
    filled.run(filled.config(task="copy", pe="nope"), 0, {5: 1.0})
    return filled


def test_a_report_in_a_pipe_has_no_escapes_and_fits_80_columns(some: Filled) -> None:
    output = call(some, "report", "--task", "addition").output
    assert "coupling" in output
    assert "copy" not in output
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 80


def test_csv_has_one_line_a_run_and_length_and_one_for_a_run_that_failed(some: Filled) -> None:
    lines = list(csv.DictReader(io.StringIO(call(some, "report", "--csv").output)))
    assert len(lines) == 2 * len(GOOD) + 1 + 1
    assert [line["length"] for line in lines if line["status"] == "failed"] == [""]
    at_30 = next(line for line in lines if line["seed"] == "0" and line["length"] == "30")
    assert (at_30["units"], at_30["exact"], at_30["exact_match"], at_30["token_accuracy"]) == (
        "1000",
        "970",
        "0.97",
        "0.97",
    )
    assert (at_30["task"], at_30["pe"], at_30["test_set"], at_30["checkpoint"]) == (
        "addition",
        "coupling",
        "random",
        "last",
    )


def test_a_run_that_was_lost_is_one_line_of_csv_beside_however_many_tables(some: Filled) -> None:
    hash = some.config(pe="rope")
    for seed in (0, 9):
        some.run(hash, 0, GOOD, test_seed=seed)
    some.run(hash, 1, status="diverged")
    lines = list(csv.DictReader(io.StringIO(call(some, "report", "--pe", "rope", "--csv").output)))
    assert [line["run"] for line in lines if line["status"] == "diverged"] == [f"{hash}-1"]
    assert {line["settings"] for line in lines if line["length"]} == {"test seed=0", "test seed=9"}
    assert {(line["label"], line["recipe"], line["task_options"]) for line in lines} == {("rope", "", "reverse=true")}


@pytest.mark.parametrize("given", [("--json", "--csv"), ("--csv", "--markdown")])
def test_two_formats_at_once_are_refused(some: Filled, given: tuple[str, str]) -> None:
    with pytest.raises(UserError, match=" and ".join(given)):
        call(some, "report", *given)


@pytest.mark.parametrize("given", ["--json", "--csv", "--markdown"])
def test_what_is_left_out_is_said_beside_what_machines_read(some: Filled, given: str) -> None:
    some.run(some.config(pe="coupling"), 5, status="interrupted")
    some.run(some.config(pe="coupling"), 100, GOOD)
    result = call(some, "report", given)
    assert "Left out: 1 run (1 interrupted)." in result.stderr
    assert "Left out: 1 trial " in result.stderr
    assert "Left out" not in result.stdout


def test_looks_while_training_are_not_reported(some: Filled) -> None:
    for trials in ((), ("--trials",)):
        with pytest.raises(UserError, match="never reported"):
            call(some, "report", "--checkpoint", "training", *trials)


def test_json_of_a_report_reads_back(some: Filled) -> None:
    assert [row["task"] for row in json.loads(call(some, "report", "--json").output)] == ["addition", "copy"]


def test_runs_are_listed_with_how_they_ended(some: Filled) -> None:
    output = call(some, "runs").output
    assert max(map(len, output.splitlines())) <= 80
    assert sum("done" in line for line in output.splitlines()) == 3
    assert "300/5,000" in output
    assert output.splitlines()[-1].endswith("-2 failed: went wrong")
    assert len(json.loads(call(some, "runs", "--json", "--status", "failed").output)) == 1


def test_what_runs_shows_of_an_id_finds_that_run(some: Filled) -> None:
    for line in call(some, "runs", "--status", "done").output.splitlines()[2:]:
        assert some.store.run(line.split()[0]).status == "done"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "additon"], "did you mean 'addition'"),
        (["--status", "dnoe"], "did you mean 'done'"),
        (["--pe", "couplin"], "did you mean 'coupling'"),
        (["--status", "running"], "holds no runs with status running"),
    ],
    ids=str,
)
def test_filters_of_runs_that_match_nothing_get_one_line(some: Filled, arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(some, "runs", *arguments)


def test_a_report_needs_no_torch_and_its_command_is_imported_without_the_store(some: Filled) -> None:
    code = (
        "import sys; from pathlib import Path; from algolen.cli.report import report; "
        "assert 'sqlite_utils' not in sys.modules and 'rich.table' not in sys.modules; "
        "report(db=Path(sys.argv[1])); assert 'torch' not in sys.modules"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(some.store.path)], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "trained on lengths" in done.stdout
