"""Comparing two databases: verdicts on real counts, altered in a copy."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import SMOKE, CommandLine

COMPARE = ("compare", "experiments.sqlite", "other.sqlite")
OTHER_MACHINE = "UPDATE environments SET device_name = 'another processor'"


@pytest.fixture
def both(trained: CommandLine) -> CommandLine:
    """A folder with a trained run in two databases."""
    shutil.copy(trained.folder / "experiments.sqlite", trained.folder / "other.sqlite")
    return trained


def alter(line: CommandLine, *statements: str) -> None:
    connection = sqlite3.connect(line.folder / "other.sqlite")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def exact(change: str, where: str = "length = 4") -> str:
    """Changes how many units are right in one stratum at a length."""
    return (
        f"UPDATE counts SET exact = {change} WHERE {where} AND stratum = 'carry chain 1' AND evaluation_id IN "
        "(SELECT id FROM evaluations WHERE purpose = 'report')"
    )


def test_the_same_counts_are_equal_and_neither_file_is_touched(both: CommandLine) -> None:
    before = both.files()
    same = both(*COMPARE)
    assert (same.code, same.stderr) == (0, "")
    assert "1 runs in both, 1 of them from the same kind of machine" in same.stdout
    assert "all as they should be" in " ".join(same.stdout.split())
    found = json.loads(both(*COMPARE, "--json").stdout)
    assert (found["well"], found["differences"]) == (True, [])
    assert [(run["run"], run["verdict"], run["same_machine"]) for run in found["runs"]] == [(both.run, "equal", True)]
    assert both.files() == before


def test_training_again_elsewhere_is_equal(trained: CommandLine) -> None:
    (trained.folder / "again").mkdir()
    assert trained(*SMOKE, "--seeds", "0,1", "--db", "again/experiments.sqlite").code == 0
    compared = trained("compare", "experiments.sqlite", "again/experiments.sqlite", "--json")
    assert compared.code == 0
    (config,) = json.loads(compared.stdout)["configs"]
    assert (config["equal"], config["only_first"], config["only_second"]) == (1, 0, 1)


def test_one_answer_more_is_a_fault_on_the_same_machine_and_within_the_interval_on_another(both: CommandLine) -> None:
    alter(both, exact("exact + 1"))
    for code in (1, 0):
        compared = both(*COMPARE)
        found = json.loads(both(*COMPARE, "--json").stdout)
        assert (compared.code, found["well"]) == (code, code == 0)
        assert [run["verdict"] for run in found["runs"]] == ["within"]
        (difference,) = found["differences"]
        assert (difference["length"], difference["verdict"]) == (4, "within")
        assert (difference["first"]["exact"], difference["second"]["exact"]) == (0, 1)
        assert f"coupling {both.run}, last, test set random, length 4: 0/100 in A, 1/100 in B" in compared.stdout
        alter(both, OTHER_MACHINE)


def test_what_no_interval_explains_is_different_on_any_machine(both: CommandLine) -> None:
    alter(both, exact("units"), exact("exact + 1", "length = 2"), OTHER_MACHINE)
    compared = both(*COMPARE)
    assert compared.code == 1
    found = json.loads(both(*COMPARE, "--json").stdout)
    assert [(one["length"], one["verdict"]) for one in found["differences"]] == [(4, "different"), (2, "within")]
    assert "1 not as they should be" in " ".join(compared.stdout.split())


def test_counts_that_only_moved_between_strata_or_tokens_are_not_equal(both: CommandLine) -> None:
    alter(both, "UPDATE counts SET tokens_correct = 1 - tokens_correct WHERE length = 4 AND tokens_correct IN (0, 1)")
    alter(both, "UPDATE counts SET tokens_correct = tokens_correct - 1 WHERE length = 6 AND tokens_correct > 1")
    assert json.loads(both(*COMPARE, "--json").stdout)["runs"][0]["verdict"] == "within"


def test_counts_on_another_test_set_are_different_however_close(both: CommandLine) -> None:
    alter(both, OTHER_MACHINE, f"UPDATE points SET sha256 = '{'0' * 64}' WHERE length = 4")
    compared = both(*COMPARE)
    assert (compared.code, "the test sets are not the same" in compared.stdout) == (1, True)


def test_a_run_that_diverged_in_one_of_them_is_different(both: CommandLine) -> None:
    alter(both, OTHER_MACHINE, "UPDATE runs SET status = 'diverged', error = 'x'")
    compared = both(*COMPARE)
    assert (compared.code, f"{both.run}: done in A, diverged in B" in compared.stdout) == (1, True)
    assert both("compare", "other.sqlite", "other.sqlite").code == 0


def test_runs_that_only_one_has_are_counted_and_no_fault(both: CommandLine) -> None:
    assert both(*SMOKE, "--seeds", "3", "--set", "train.steps=1").code == 0
    compared = both(*COMPARE)
    assert (compared.code, "only in A: 1 finished runs of 1 configs" in compared.stdout) == (0, True)


@pytest.mark.parametrize("change", ["UPDATE runs SET status = 'failed'", "DELETE FROM counts WHERE length < 99"])
def test_nothing_in_common_reproduces_nothing(both: CommandLine, change: str) -> None:
    alter(both, change)
    compared = both(*COMPARE)
    assert (compared.code, "Nothing to compare" in compared.stdout) == (1, True)


def test_trials_are_compared_alone(algolen: CommandLine) -> None:
    assert algolen(*SMOKE, "--seeds", "100", "--set", "train.steps=2").code == 0
    shutil.copy("experiments.sqlite", "other.sqlite")
    assert "Nothing to compare" in algolen(*COMPARE).stdout
    assert "1 runs in both" in algolen(*COMPARE, "--trials").stdout


def test_a_database_of_an_older_release_is_compared_as_it_is(algolen: CommandLine) -> None:
    connection = sqlite3.connect("old.sqlite")
    connection.executescript((Path(__file__).parents[1] / "store/schema_v1.sql").read_text())
    connection.close()
    before = algolen.files()
    assert algolen("compare", "old.sqlite", "old.sqlite").code == 0
    assert algolen.files() == before


def test_what_is_not_there_or_no_database_is_refused(both: CommandLine) -> None:
    both.write("notes.txt", "not a database\n" * 99)
    assert "no database at none.sqlite" in both("compare", "experiments.sqlite", "none.sqlite").stderr
    assert "notes.txt is not an SQLite database" in both("compare", "notes.txt", "experiments.sqlite").stderr


def test_configs_of_a_task_with_other_options_are_told_apart(trained: CommandLine) -> None:
    (trained.folder / "again").mkdir()
    other = (*SMOKE, "--set", "addition.reverse_operands=true")
    for db in ("experiments.sqlite", "again/experiments.sqlite"):
        assert trained(*SMOKE, "--db", db).code == 0
        assert trained(*other, "--db", db).code == 0
    compared = trained("compare", "experiments.sqlite", "again/experiments.sqlite")
    assert compared.code == 0
    assert "addition · reverse_operands=false" in compared.stdout
    assert "addition · reverse_operands=true" in compared.stdout
    found = json.loads(trained("compare", "experiments.sqlite", "again/experiments.sqlite", "--json").stdout)
    settings = [config["settings"] for config in found["configs"]]
    assert sorted(settings, key=str) == [{"reverse_operands": "false"}, {"reverse_operands": "true"}]
