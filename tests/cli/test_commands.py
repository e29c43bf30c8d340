"""The commands as a newcomer types them, one after the other, on a run that takes seconds."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tomllib
from typing import Any

import pytest

from algolen import registry
from algolen.store import Store
from tests.conftest import SMOKE, CommandLine


def counts(line: CommandLine, db: str = "experiments.sqlite") -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Every count of the trained run, by test set, length and stratum."""
    with Store.open(line.folder / db) as store:
        return {
            (s.evaluation.purpose, s.key, s.count.stratum): (s.count.units, s.count.exact, s.count.tokens_correct)
            for s in store.strata(line.run)
        }


def swept(line: CommandLine) -> list[int]:
    """The lengths that the trained run was tested at, for reports."""
    return sorted({key.length for purpose, key, _ in counts(line) if purpose == "report"})


def by_json(line: CommandLine, *arguments: str) -> Any:
    done = line(*arguments, "--json")
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


# train ----------------------------------------------------------------------------------------------------------------


def test_training_says_what_it_will_do_and_prints_the_report_alone_on_stdout(algolen: CommandLine) -> None:
    done = algolen(*SMOKE)
    assert done.code == 0
    plan = [
        "coupling (= coupling+learned)",
        "trained on 1-4, tested on 2:8:2",
        "60 steps of 16",
        "parameters",
        algolen.run,
    ]
    assert [part for part in plan if part not in done.stderr] == []
    assert "exact at 5 " in done.stderr
    assert "addition" in done.stdout
    assert "parameters" not in done.stdout
    assert {path.name for path in algolen.folder.iterdir()} == {"experiments.sqlite", "runs"}
    assert {path.name for path in (algolen.folder / "runs" / algolen.run).iterdir()} == {
        "last.safetensors",
        "best.safetensors",
    }


def test_the_same_command_again_trains_nothing_and_changes_nothing(trained: CommandLine) -> None:
    before = trained.files()
    again = trained(*SMOKE)
    assert again.code == 0
    assert "step " not in again.stderr.partition("kept in")[2]
    assert trained.files()[f"runs/{trained.run}/last.safetensors"] == before[f"runs/{trained.run}/last.safetensors"]
    assert trained("report").stdout == again.stdout


def test_the_same_command_works_without_its_checkpoints(trained: CommandLine) -> None:
    shutil.rmtree(trained.folder / "runs")
    assert trained(*SMOKE).code == 0


def test_more_test_lengths_train_nothing_and_add_to_the_record(trained: CommandLine) -> None:
    before = counts(trained)
    assert trained(*SMOKE, "--test-lengths", "3,8,10").code == 0
    assert swept(trained) == [2, 3, 4, 6, 8, 10]
    assert before.items() <= counts(trained).items()
    assert by_json(trained, "runs")[0]["attempt"] == 1


def test_training_again_from_the_start_gives_the_same_counts(trained: CommandLine) -> None:
    before = counts(trained)
    again = trained(*SMOKE, "--retrain")
    assert again.code == 0, again.stderr
    assert "60/60  loss" in again.stderr
    assert "the counts equal the stored ones" in again.stderr
    assert counts(trained) == before


def test_training_from_scratch_elsewhere_gives_the_same_counts(trained: CommandLine) -> None:
    before = counts(trained)
    shutil.rmtree(trained.folder / "runs")
    assert trained(*SMOKE, "--db", "other.sqlite").code == 0
    assert counts(trained, "other.sqlite") == before


def test_a_dry_run_says_the_same_and_writes_nothing(algolen: CommandLine) -> None:
    dry = algolen(*SMOKE, "--dry-run", "--db", "nowhere.sqlite")
    assert (dry.code, dry.stderr, algolen.files()) == (0, "", {})
    wet = algolen(*SMOKE, "--db", "nowhere.sqlite")
    assert wet.stderr.startswith(dry.stdout)


def test_the_json_of_a_dry_run_names_the_runs_that_training_would_make(algolen: CommandLine) -> None:
    plan = by_json(algolen, *SMOKE, "--seeds", "3,1", "--dry-run")
    assert algolen.files() == {}
    assert (plan["cost"]["steps"], plan["cost"]["examples"], plan["recipe"], plan["wandb"]) == (60, 960, None, None)
    assert algolen(*SMOKE, "--seeds", "3,1").code == 0
    runs = by_json(algolen, "runs")
    assert {run["id"]: (run["seed"], run["parameters"], run["greedy"], run["config_hash"]) for run in runs} == {
        run["id"]: (run["seed"], plan["parameters"], plan["greedy"], plan["config_hash"]) for run in plan["runs"]
    }
    shown = by_json(algolen, "show", plan["runs"][0]["id"])
    assert shown["config"] == plan["config"]


def test_several_seeds_are_several_runs_of_one_configuration(algolen: CommandLine) -> None:
    rows = by_json(algolen, *SMOKE, "--seeds", "0,2", "--set", "train.steps=3")
    assert [run["seed"] for run in rows[0]["runs"]] == [0, 2]
    assert len({run["config_hash"] for run in by_json(algolen, "runs")}) == 1


def test_training_reports_the_test_sets_that_were_asked_for(algolen: CommandLine) -> None:
    rows = by_json(algolen, *SMOKE, "--set", "train.steps=1", "--test-sets", "edge")
    assert {row["test_set"] for row in rows} == {"edge"}


def test_the_results_of_training_are_the_json_of_its_report(trained: CommandLine) -> None:
    rows = by_json(trained, *SMOKE)
    assert rows == by_json(trained, "report")
    assert [point["length"] for point in rows[0]["runs"][0]["lengths"]] == [2, 4, 6, 8]
    assert [point["units"] for point in rows[0]["runs"][0]["lengths"]] == [100] * 4


def test_the_layers_of_settings_win_in_their_order(algolen: CommandLine) -> None:
    algolen.write("run.toml", 'pe = "nope"\nseeds = "5"\n[train]\nsteps = 7\nwarmup = 3\n[model]\nwidth = 16\n')
    arguments = (*SMOKE, "--config", "run.toml", "--set", "train.steps=2", "--pe", "offset")
    assert algolen(*arguments).code == 0
    config = by_json(algolen, "show", algolen.run)["config"]
    assert config["pe"] == "offset"
    assert (config["train"]["steps"], config["train"]["warmup"], config["train"]["batch"]) == (2, 3, 16)
    assert (config["model"]["width"], config["model"]["layers"], config["model"]["norm"]) == (16, 1, "rms")
    assert config["train"]["beta2"] == 0.999
    assert algolen.run.endswith("-5")


def test_a_preset_for_a_task_wins_over_the_preset_and_loses_against_a_file(algolen: CommandLine) -> None:
    algolen.write("run.toml", "[coupling]\nids = 77\n")
    shown = algolen("train", "--task", "addition", "--pe", "coupling", "--config", "run.toml", "--dry-run").stdout
    assert "1 layer, width 128" in shown
    assert "coupling: ids=77, start=clipped" in " ".join(shown.split())


def test_the_database_of_the_environment_is_used_and_the_flag_wins(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (algolen.folder / "kept").mkdir()
    monkeypatch.setenv("ALGOLEN_DB", "kept/mine.sqlite")
    assert algolen(*SMOKE, "--set", "train.steps=1").code == 0
    assert {path.name for path in algolen.folder.iterdir()} == {"kept"}
    assert {path.name for path in (algolen.folder / "kept").iterdir()} == {"mine.sqlite", "runs"}
    assert len(by_json(algolen, "runs")) == len(by_json(algolen, "report")) == 1
    run = by_json(algolen, "runs")[0]["id"]
    assert algolen("show", run).code == 0
    assert algolen("eval", run, "--test-lengths", "3").code == 0
    assert "1 done" in algolen("doctor").stdout
    refused = algolen("report", "--db", "other.sqlite")
    assert (refused.code, "other.sqlite" in refused.stderr) == (2, True)


# Readers --------------------------------------------------------------------------------------------------------------


def test_readers_leave_the_folder_as_it_was(trained: CommandLine) -> None:
    before = trained.files()
    for command in (["runs"], ["report"], ["report", "--csv"], ["show", trained.run], ["doctor"]):
        assert trained(*command).code == 0
    assert trained.files() == before


def test_runs_lists_what_was_trained(trained: CommandLine) -> None:
    (run,) = by_json(trained, "runs")
    assert (run["id"], run["status"], run["step"], run["pe"]) == (trained.run, "done", 60, "coupling")
    plain = trained("runs").stdout
    assert "done" in plain
    assert trained.run[:6] in plain


def test_report_compares_in_80_columns_without_colour(trained: CommandLine) -> None:
    plain = trained("report").stdout
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80
    assert [part for part in ("coupling", "chance", "horizon", "0/1") if part not in plain] == []


def test_report_as_csv_has_a_line_a_run_and_length(trained: CommandLine) -> None:
    rows = list(csv.DictReader(io.StringIO(trained("report", "--csv").stdout)))
    assert [(row["run"], row["length"]) for row in rows] == [(trained.run, length) for length in "2468"]


@pytest.mark.parametrize("length", [3, 8, 16, 18])
def test_show_takes_the_beginning_of_an_id(trained: CommandLine, length: int) -> None:
    assert by_json(trained, "show", trained.run[:length])["run"]["id"] == trained.run


def test_show_tells_all_about_a_run(trained: CommandLine) -> None:
    plain = trained("show", trained.run).stdout
    expected = [trained.run, "done", "step 60 of 60", "[train]", "training loss", "carry chain 0", "last.safetensors"]
    assert [part for part in expected if part not in plain] == []
    assert "not there" not in plain
    found = by_json(trained, "show", trained.run)
    assert {row["length"] for row in found["counts"] if row["purpose"] == "report"} == {2, 4, 6, 8}
    assert found["loss"][-1][0] == 60
    assert {artifact["kind"] for artifact in found["artifacts"]} == {"last checkpoint", "best checkpoint"}


def test_show_says_which_files_are_gone(trained: CommandLine) -> None:
    shutil.rmtree(trained.folder / "runs" / trained.run)
    assert trained.files()
    (trained.folder / "runs" / "none").mkdir()
    assert "not there" in trained("show", by_json(trained, "runs")[0]["id"]).stdout


@pytest.mark.parametrize(
    "changes",
    [
        "--set coupling.ids=9 --set model.init_std=0.1 --seeds 4 --test-lengths 3-5,7 --examples 30"
        " --test-sets random,edge --test-seed 8",
        "--task selective-copy --pe randomized --set train.steps=60 --test-lengths 4,8 --axis blanks=0.5,2"
        " --positions even",
    ],
    ids=["lengths", "axis"],
)
def test_the_configuration_shown_makes_the_same_run_and_counts_again(algolen: CommandLine, changes: str) -> None:
    assert algolen(*SMOKE, *changes.split()).code == 0
    run, before = algolen.run, counts(algolen)
    toml = algolen("show", run, "--toml").stdout
    assert tomllib.loads(toml)["train"]["steps"] == 60
    shutil.rmtree(algolen.folder / "runs")
    again = algolen("train", "--config", algolen.write("run.toml", toml), "--db", "other.sqlite")
    assert again.code == 0, again.stderr
    assert algolen.run == run
    assert counts(algolen, "other.sqlite") == before


def test_the_command_that_a_missing_checkpoint_names_makes_it_again(trained: CommandLine) -> None:
    run, before = trained.run, counts(trained)
    shutil.rmtree(trained.folder / "runs")
    refused = trained("eval", run, "--test-lengths", "3").stderr
    show = f"algolen show {run} --toml --db experiments.sqlite > run.toml"
    assert f"{show}; algolen train --config run.toml --retrain --db experiments.sqlite" in refused
    trained.write("run.toml", trained("show", run, "--toml").stdout)
    again = trained("train", "--config", "run.toml", "--retrain", "--db", "experiments.sqlite")
    assert again.code == 0, again.stderr
    assert trained("eval", run, "--test-lengths", "3", "--examples", "100").code == 0
    assert before.items() <= counts(trained).items()


# eval -----------------------------------------------------------------------------------------------------------------


def test_eval_adds_lengths_and_the_second_time_none(trained: CommandLine) -> None:
    before = counts(trained)
    sweep = ("eval", trained.run, "--test-lengths", "8:12:2", "--examples", "100")
    first = trained(*sweep)
    assert (first.code, "2 test sets swept, 1 were there" in first.stderr) == (0, True), first.stderr
    assert swept(trained) == [2, 4, 6, 8, 10, 12]
    assert before.items() <= counts(trained).items()
    second = trained(*sweep)
    assert "0 test sets swept, 3 were there" in second.stderr
    assert second.stdout == first.stdout
    assert "12" in first.stdout


def test_eval_sweeps_other_sets_axes_and_checkpoints(trained: CommandLine) -> None:
    sweep = ("eval", trained.run, "--test-lengths", "3", "--examples", "20")
    (carry,) = by_json(trained, *sweep, "--test-sets", "carry", "--checkpoint", "best")
    assert (carry["test_set"], carry["checkpoint"]) == ("carry", "best")
    rows = by_json(trained, *sweep, "--axis", "operands=2,3")
    assert {row["axis_value"] for row in rows if row["axis"] == "operands"} == {2, 3}


def test_eval_of_several_sets_is_one_json_document(trained: CommandLine) -> None:
    rows = by_json(trained, "eval", trained.run, "--test-lengths", "3", "--examples", "20", "--test-sets", "edge,carry")
    assert {row["test_set"] for row in rows} == {"edge", "carry"}


# What there is --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", sorted(registry.load().tasks))
def test_every_task_can_be_sampled_and_trained_without_naming_lengths(algolen: CommandLine, task: str) -> None:
    (example,) = by_json(algolen, "sample", task, "--examples", "1")
    assert any(example["scored"])
    for preset in ("smoke", "cpu"):
        planned = algolen("train", "--task", task, "--pe", "nope", "--preset", preset, "--dry-run", "--device", "cpu")
        assert planned.code == 0, planned.stderr
        assert "None" not in planned.stderr


def test_doctor_knows_what_is_installed_and_what_the_database_holds(trained: CommandLine) -> None:
    import torch

    facts = by_json(trained, "doctor")
    assert facts["torch"] == torch.__version__
    assert facts["runs"] == "1 done"
    assert facts["troubles"] == []
    assert "nothing to complain about" in trained("doctor").stdout


def test_doctor_finds_fault_with_a_database_that_is_none(algolen: CommandLine) -> None:
    algolen.write("notes.txt", "not a database\n" * 99)
    found = algolen("doctor", "--db", "notes.txt")
    assert (found.code, "trouble  notes.txt is not an SQLite database" in found.stdout) == (1, True)


def test_doctor_finds_fault_with_a_place_where_no_database_can_be_made(algolen: CommandLine) -> None:
    found = algolen("doctor", "--db", "nowhere/x.sqlite")
    assert (found.code, "no folder nowhere to put the database x.sqlite in" in found.stdout) == (1, True)


def test_doctor_makes_no_database(algolen: CommandLine) -> None:
    assert "no database yet" in algolen("doctor").stdout
    assert algolen.files() == {}
