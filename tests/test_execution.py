"""What a run leaves in the store, and what development sets are kept apart from."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
import torch

from algolen.evaluation.sweep import evaluate
from algolen.evaluation.test_sets import BLOCK, TestSet
from algolen.experiment import DEVELOPMENT_SEED
from algolen.recording import Recorder
from tests import building
from tests.conftest import SMOKE, CommandLine


def rows(trained: CommandLine, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(trained.folder / "experiments.sqlite")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_looks_while_training_never_see_an_example_that_is_reported(trained: CommandLine) -> None:
    seen = rows(trained, "SELECT DISTINCT test_seed FROM evaluations WHERE purpose = 'development'")
    assert seen == [(DEVELOPMENT_SEED,)]
    assert trained("eval", trained.run, "--test-lengths", "5,6,8", "--test-seed", str(DEVELOPMENT_SEED)).code == 0
    by_purpose = {
        purpose: set(rows(trained, f"SELECT sha256 FROM points JOIN evaluations ON id = evaluation_id "
                          f"WHERE purpose = '{purpose}'"))
        for purpose in ("development", "report")
    }  # fmt: skip
    assert by_purpose["development"] and by_purpose["report"]
    assert not by_purpose["development"] & by_purpose["report"]


def test_the_best_checkpoint_has_the_lowest_loss_on_trained_lengths(trained: CommandLine) -> None:
    curve = rows(trained, "SELECT step, value FROM curves WHERE name = 'in-distribution loss' ORDER BY step")
    ((step,),) = rows(trained, "SELECT step FROM artifacts WHERE kind = 'best checkpoint'")
    assert step == min(curve, key=lambda point: point[1])[0]  # type: ignore[arg-type, return-value]
    made = building.experiment(train_lengths="1-3", test_lengths="2")
    model = made.model(0, building.CPU)
    sets = [TestSet(made.task, "random", length, 100, DEVELOPMENT_SEED, purpose="development") for length in (1, 2, 3)]
    totals = [evaluate(model, one, building.CPU).total for one in sets]
    recorder = Recorder(made, None, Path("runs"), model, None, "x", "x")  # type: ignore[arg-type]
    check = recorder.look(0)
    assert check.loss == pytest.approx(sum(t.loss for t in totals) / sum(t.tokens for t in totals))
    assert [point.test_set.length for point in check.points] == [4, 5, 6]


def test_an_input_blind_answer_is_known_for_random_sets_only(trained: CommandLine) -> None:
    trained("eval", trained.run, "--test-lengths", "3", "--test-sets", "random,edge")
    known = dict(rows(trained, "SELECT test_set, input_blind IS NOT NULL FROM points WHERE length = 3"))  # type: ignore[arg-type]
    assert known == {"random": 1, "edge": 0}


def test_positions_of_a_test_set_are_shared_within_a_block_and_differ_between_blocks() -> None:
    source = TestSet(building.task(), "random", 3, 200, 0)
    shared = source.positions(0, 200, building.CPU).shared().integers(0, 2**30)
    blocks = [shared[start : start + BLOCK] for start in range(0, 200, BLOCK)]
    assert BLOCK == 64
    assert all(len(block.unique()) == 1 for block in blocks)
    assert len({int(block[0]) for block in blocks}) == len(blocks)


def test_an_unfinished_run_cannot_be_swept_as_if_it_were_done(trained: CommandLine) -> None:
    connection = sqlite3.connect(trained.folder / "experiments.sqlite")
    connection.execute("UPDATE runs SET status = 'interrupted', step = 20")
    connection.commit()
    connection.close()
    refused = trained("eval", trained.run, "--test-lengths", "7")
    assert refused.code == 2
    assert "interrupted at step 20 of 60" in refused.stderr


def test_a_changed_checkpoint_is_refused_with_the_command_that_makes_it_again(trained: CommandLine) -> None:
    path = trained.folder / "runs" / trained.run / "last.safetensors"
    data = bytearray(path.read_bytes())
    data[-5:] = b"\0\0\0\0\0"
    path.write_bytes(bytes(data))
    refused = trained("eval", trained.run, "--test-lengths", "7")
    assert refused.code == 2
    assert "was changed after training wrote it" in refused.stderr and "--retrain" in refused.stderr


def test_a_file_where_the_checkpoints_should_go_is_said_in_one_line(trained: CommandLine) -> None:
    shutil.rmtree(trained.folder / "runs")
    (trained.folder / "runs").write_text("not a folder")
    refused = trained(*SMOKE, "--seeds", "5")
    assert refused.code == 2
    assert "that is a file" in refused.stderr


def test_a_database_removed_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    from algolen.errors import UserError
    from algolen.store import EnvironmentRow, Store

    store = Store.open(tmp_path / "x.sqlite", create=True)
    try:
        environment = EnvironmentRow("3", "2", "x", "cpu", "x", 1, "0")
        store.add_environment(environment)
        for path in tmp_path.glob("x.sqlite*"):
            path.unlink()
        with pytest.raises(UserError, match="removed or replaced"):
            store.add_environment(environment)
    finally:
        store.close()


def test_the_processor_is_recorded_with_the_instructions_that_torch_uses_on_it(trained: CommandLine) -> None:
    ((name,),) = rows(trained, "SELECT device_name FROM environments")
    processor, _, instructions = str(name).rpartition(", ")
    assert processor and instructions == torch.backends.cpu.get_cpu_capability()


# Checkpoints that other databases know of -----------------------------------------------------------------------------


def everything(folder: Path, name: str) -> list[list[tuple[object, ...]]]:
    """Curves, counts and the state of the runs of a database."""
    connection = sqlite3.connect(folder / name)
    try:
        return [
            connection.execute(sql).fetchall()
            for sql in (
                "SELECT * FROM curves ORDER BY 1, 2, 3",
                "SELECT * FROM counts ORDER BY 1, 2, 3, 4, 5, 6, 7",
                "SELECT id, status, step FROM runs",
            )
        ]
    finally:
        connection.close()


def test_a_new_database_trains_from_the_start_what_another_of_the_folder_has_trained(trained: CommandLine) -> None:
    done = trained(*SMOKE, "--db", "other.sqlite")
    assert done.code == 0
    assert "a training that other.sqlite has no record of; training from the start" in done.stderr
    assert everything(trained.folder, "other.sqlite") == everything(trained.folder, "experiments.sqlite")
    assert everything(trained.folder, "other.sqlite")[0]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_goes_on_from_its_own_checkpoint_only(trained: CommandLine, recorded: bool) -> None:
    whole = everything(trained.folder, "experiments.sqlite")
    connection = sqlite3.connect(trained.folder / "experiments.sqlite")
    with connection:
        # As if it had been stopped: just before the last checkpoint was recorded, or long before.
        connection.execute("UPDATE runs SET status = 'interrupted', step = 20")
        connection.execute("DELETE FROM artifacts")
        if not recorded:
            connection.execute("DELETE FROM curves WHERE step > 20")
    connection.close()
    done = trained(*SMOKE)
    assert done.code == 0
    assert ("trained before" in done.stderr) == recorded
    assert ("training from the start" in done.stderr) != recorded
    assert everything(trained.folder, "experiments.sqlite") == whole


def test_checkpoints_cannot_go_through_a_link_to_nothing(algolen: CommandLine) -> None:
    (algolen.folder / "runs").symlink_to("nowhere")
    done = algolen(*SMOKE)
    assert done.code == 2
    assert "'runs'" in done.stderr and "a link to what is not there" in done.stderr
    assert [path.name for path in algolen.folder.iterdir()] == ["runs"]
