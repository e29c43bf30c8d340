"""Trials: kept apart from what is reported, scored on development sets, and compared with what the file has chosen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from algolen.recording import point_key
from algolen.store import Store
from algolen.sweep import study as studies
from algolen.sweep.plan import plan, runs
from algolen.sweep.trials import choices
from tests import building
from tests.conftest import SMOKE, CommandLine

STUDY = ("study", "tiny.toml", "--device", "cpu")
SHIPPED = Path(__file__).resolve().parents[2] / "experiments.sqlite"
Rows = Callable[..., list[tuple[Any, ...]]]


def score(rows: Rows, run: str, units: int, exact: int) -> None:
    """Has a trial have answered so many of the units of every length."""
    ours = f"evaluation_id IN (SELECT id FROM evaluations WHERE checkpoint = 'last' AND run_id = '{run}')"
    rows(f"DELETE FROM counts WHERE {ours}")
    rows(
        f"INSERT INTO counts SELECT evaluation_id, step, test_set, length, axis, axis_value, '', {units}, {exact}, "
        f"{units}, {exact} FROM points WHERE {ours}"
    )


def test_trials_are_compared_and_a_choice_that_was_not_the_best_is_said(tiny: CommandLine, rows: Rows) -> None:
    assert tiny(*STUDY, "--trials").code == 0
    nope, coupling = json.loads(tiny(*STUDY, "--trials", "--json").stdout)
    for run, exact in ((nope, 3), (coupling, 8)):
        score(rows, run["runs"]["slow"][0], 20, exact)
        score(rows, run["runs"]["fast"][0], 20, 5)
    nope, coupling = json.loads(tiny(*STUDY, "--trials", "--json").stdout)
    assert (nope["scores"], nope["best"], nope["agrees"]) == ({"slow": 0.15, "fast": 0.25}, ["fast"], False)
    assert (coupling["scores"], coupling["best"], coupling["agrees"]) == ({"slow": 0.4, "fast": 0.25}, ["slow"], False)
    table = tiny(*STUDY, "--trials")
    assert table.code == 0
    assert "0.1500   0.2500*  slow" in table.stdout and "0.4000*  0.2500   fast" in table.stdout
    assert "nope: fast scored best, but tiny.toml has chosen slow" in table.stdout
    assert "mean exact match over the test lengths" in " ".join(table.stdout.split())
    score(rows, nope["runs"]["slow"][0], 20, 5)
    assert json.loads(tiny(*STUDY, "--trials", "--json").stdout)[0]["agrees"] is True, "equally good"


def test_a_trial_that_diverged_scores_nothing_and_one_that_is_missing_leaves_it_open(
    tiny: CommandLine, rows: Rows
) -> None:
    assert tiny(*STUDY, "--trials").code == 0
    nope, coupling = json.loads(tiny(*STUDY, "--trials", "--json").stdout)
    rows(f"UPDATE runs SET status = 'diverged', error = 'x' WHERE id = '{nope['runs']['slow'][0]}'")
    rows(f"UPDATE runs SET status = 'interrupted' WHERE id = '{coupling['runs']['slow'][0]}'")
    score(rows, nope["runs"]["fast"][0], 20, 1)
    planned = plan(studies.load("tiny.toml"), building.REGISTRY, trials=True)
    with Store.open("experiments.sqlite") as store:
        found = choices(store, planned)
    assert [choice.trials[0].score for choice in found] == [0.0, None]
    assert [(choice.complete, choice.agrees) for choice in found] == [(True, False), (False, None)]


def test_trials_see_no_example_that_is_reported(tiny: CommandLine, rows: Rows) -> None:
    assert tiny(*STUDY).code == tiny(*STUDY, "--trials").code == 0
    # By hand, and with the test seed of what is reported.
    assert tiny(*SMOKE, "--seeds", "100", "--test-lengths", "2,4", "--examples", "20", "--test-seed", "0").code == 0
    sets = "SELECT DISTINCT sha256 FROM points JOIN evaluations ON id = evaluation_id WHERE run_id "
    tried, reported = set(rows(f"{sets} LIKE '%-100'")), set(rows(f"{sets} NOT LIKE '%-100' AND checkpoint = 'last'"))
    assert tried and reported and not tried & reported
    assert rows("SELECT DISTINCT purpose FROM evaluations WHERE run_id LIKE '%-100'") == [("development",)]


def test_reports_listings_and_the_leaderboard_leave_trials_out_unless_asked(tiny: CommandLine, rows: Rows) -> None:
    assert tiny(*STUDY).code == 0
    before = {name: tiny(name).stdout for name in ("report", "runs")}
    board = rows("SELECT * FROM v_leaderboard")
    assert tiny(*STUDY, "--trials").code == 0
    assert rows("SELECT * FROM v_leaderboard") == board
    report, listing = tiny("report").stdout, tiny("runs").stdout
    assert report.startswith(before["report"]) and "Left out: 4 trials (seeds from 100 up)" in report
    assert listing.startswith(before["runs"]) and "and 4 trials; --trials lists them" in listing
    assert {run["seed"] for run in json.loads(tiny("runs", "--json").stdout)} == {0, 1}
    assert {run["seed"] for run in json.loads(tiny("runs", "--trials", "--json").stdout)} == {100}
    rows_of_trials = json.loads(tiny("report", "--trials", "--json").stdout)
    assert {run["seed"] for row in rows_of_trials for run in row["runs"]} == {100}
    assert len(rows_of_trials) == 4
    assert tiny(*STUDY, "--seeds", "100").code == 2


def test_what_was_trained_with_a_seed_of_trials_is_reported_shown_and_made_again(algolen: CommandLine) -> None:
    trained = algolen(*SMOKE, "--seeds", "100", "--test-lengths", "2,5", "--json")
    assert [run["seed"] for row in json.loads(trained.stdout) for run in row["runs"]] == [100]
    for command in ("report", "runs"):
        refused = algolen(command)
        assert (refused.code, "are trials" in refused.stderr, "--trials" in refused.stderr) == (2, True, True)
    assert 'test_lengths = "2,5"' in algolen("show", algolen.run, "--toml").stdout
    swept = algolen("eval", algolen.run, "--test-lengths", "3", "--json")
    assert [point["length"] for point in json.loads(swept.stdout)[0]["runs"][0]["lengths"]] == [2, 3, 5]


def test_asking_for_trials_where_there_are_none_is_said(trained: CommandLine) -> None:
    for command in ("report", "runs"):
        refused = trained(command, "--trials")
        assert (refused.code, "no such trials" in refused.stderr) == (2, True)


def test_a_study_reports_encodings_beside_each_other_whatever_their_recipes(tiny: CommandLine) -> None:
    done = tiny(*STUDY, "--json")
    found = json.loads(done.stdout)
    assert {row["study"] for row in found} == {"tiny"}
    assert {(row["pe"], *row["recipe"].items()) for row in found} == {
        ("nope", ("train.learning_rate", "0.001")),
        ("coupling", ("train.learning_rate", "0.003")),
    }
    assert tiny("report").stdout.count("exact match at length") == 1
    assert tiny("report", "--same-recipe").stdout.count("exact match at length") == 2


@pytest.mark.parametrize("name", studies.names())
def test_the_packaged_studies_can_be_planned_and_mark_some_runs_as_quick(name: str) -> None:
    study = studies.load(name)
    assert plan(study, building.REGISTRY, quick=True)
    tried = plan(study, building.REGISTRY, trials=True)
    by_label = {one.label: [other.trial.name for other in tried if other.label == one.label] for one in tried}
    assert set(map(tuple, by_label.values())) == {tuple(trial.name for trial in study.trials)}


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[Store]:
    with Store.open(shutil.copy(SHIPPED, tmp_path)) as store:
        yield store


@pytest.mark.parametrize("name", studies.names())
def test_every_encoding_of_a_packaged_study_has_all_its_trials_and_the_recipe_that_scored_best(
    name: str, shipped: Store
) -> None:
    found = choices(shipped, plan(studies.load(name), building.REGISTRY, trials=True))
    assert [choice.label for choice in found if choice.agrees is not True] == []


COPYING = {"nope", "learned", "rope", "alibi", "fire", "coupling", "randomized"}
PARITY = {"nope", "learned", "rope", "randomized", "coupling"}
REPORTED = {
    "addition": COPYING | {"sinusoidal", "t5", "abacus", "abacus+fire"},
    "copy": COPYING,
    "copy-unique": COPYING,
    "reverse": COPYING,
    "parity": PARITY,
    "parity-scratchpad": PARITY,
    "selective-copy": {"learned", "rope", "nope", "alibi", "cope"},
    "flip-flop": {"learned", "rope", "alibi", "nope", "cope", "hard-alibi"},
}
MORE_SEEDS = {("addition", pe) for pe in ("nope", "coupling", "abacus")}


@pytest.mark.parametrize("name", studies.names())
def test_every_run_of_a_packaged_study_ships_tested_at_all_that_the_study_asks_for(name: str, shipped: Store) -> None:
    planned = plan(studies.load(name), building.REGISTRY)
    assert {one.entry.pe for one in planned} == REPORTED[name]
    for one in planned:
        assert one.seeds == tuple(range(5 if (name, one.entry.pe) in MORE_SEEDS else 3))
    for run in runs(planned):
        row = shipped.run(run.id)
        assert (row.status, row.shipped) == ("done", True)
        tested = {stratum.key for stratum in shipped.strata(run.id) if stratum.evaluation.purpose == "report"}
        assert {point_key(test_set) for test_set in run.planned.experiment.test_sets("test")} <= tested
