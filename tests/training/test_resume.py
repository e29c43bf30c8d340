"""Killed at any moment, the same command goes on and ends bit for bit where the uninterrupted run ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

STEPS = 120
TRAIN = [
    "train", "--task", "addition", "--pe", "coupling", "--preset", "smoke", "--db", "x.sqlite",
    "--set", f"train.steps={STEPS}", "--set", "train.check_every=7",
]  # fmt: skip


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.Popen(
        [sys.executable, "-m", "algolen", *TRAIN, *more],
        cwd=folder,
        env={key: value for key, value in environment.items() if key != "ALGOLEN_DB"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder: Path, *more: str) -> str:
    process = start(folder, *more)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return err


def results(folder: Path) -> tuple[list[object], list[object], list[object], dict[str, torch.Tensor]]:
    """Counts, curves, the run's state and the tensors of both checkpoints."""
    connection = sqlite3.connect(folder / "x.sqlite")
    try:
        counts = connection.execute("SELECT * FROM counts ORDER BY 1, 2, 3, 4, 5, 6, 7").fetchall()
        curves = connection.execute("SELECT * FROM curves ORDER BY 1, 2, 3").fetchall()
        state = connection.execute("SELECT id, status, step, steps FROM runs").fetchall()
    finally:
        connection.close()
    tensors = {}
    for path in sorted((folder / "runs").rglob("*.safetensors")):
        tensors |= {f"{path.stem} {name}": tensor for name, tensor in load_file(path).items()}
    return counts, curves, state, tensors


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    finish(folder)
    return folder


def assert_same(folder: Path, expected: Path) -> None:
    ours, theirs = results(folder), results(expected)
    assert ours[:3] == theirs[:3]
    assert ours[3].keys() == theirs[3].keys()
    assert all(torch.equal(tensor, theirs[3][name]) for name, tensor in ours[3].items())
    assert any(name.startswith("best model.") for name in ours[3])
    assert any(name.startswith("last exp_avg_sq.") for name in ours[3])


def wait_for(folder: Path, process: subprocess.Popen[str], step: int) -> None:
    """Until the database says that a step was reached, or the process has ended."""
    while process.poll() is None:
        try:
            connection = sqlite3.connect(f"file:{folder / 'x.sqlite'}?mode=ro", uri=True)
            rows = connection.execute("SELECT step FROM runs").fetchall()
            connection.close()
        except sqlite3.OperationalError:
            rows = []
        if rows and rows[0][0] >= step:
            return
        time.sleep(0.005)


def test_a_run_killed_again_and_again_ends_bit_for_bit_where_the_uninterrupted_one_does(
    tmp_path: Path, uninterrupted: Path
) -> None:
    for step in (0, 14, 49, 98):
        process = start(tmp_path)
        wait_for(tmp_path, process, step)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    err = finish(tmp_path)
    assert "going on at step" in err
    assert_same(tmp_path, uninterrupted)


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_keeps_what_there_is_says_how_to_go_on_and_goes_on(
    tmp_path: Path, uninterrupted: Path, sign: signal.Signals, code: int
) -> None:
    process = start(tmp_path)
    wait_for(tmp_path, process, 21)
    process.send_signal(sign)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "the same command goes on from there" in err
    (run,) = results(tmp_path)[2]
    assert run[1] == "interrupted"  # type: ignore[index]
    assert f"going on at step {run[2]}" in finish(tmp_path)  # type: ignore[index]
    assert_same(tmp_path, uninterrupted)


def test_a_run_with_averages_and_a_progressive_loss_goes_on_bit_for_bit_and_tests_its_averages(tmp_path: Path) -> None:
    settings = ("train.average=0.9", "model.loops=3", "model.state_std=0.1", "train.progressive=1")
    more = [part for setting in settings for part in ("--set", setting)]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir(), cut.mkdir()
    finish(whole, *more)
    process = start(cut, *more)
    wait_for(cut, process, 49)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert "going on at step" in finish(cut, *more)
    assert_same(cut, whole)
    (folder,) = (whole / "runs").iterdir()
    tensors = load_file(folder / "last.safetensors")
    averaged = [name for name in tensors if name.startswith("model.")]
    assert any(not torch.equal(tensors[name], tensors[name.replace("model", "trained", 1)]) for name in averaged)
    swept = [row for row in results(whole)[0] if row[1] == STEPS]  # type: ignore[index]
    connection = sqlite3.connect(whole / "x.sqlite")
    with connection:
        connection.execute("DELETE FROM counts")
        connection.execute("DELETE FROM points")
    connection.close()
    assert "trained before" in finish(whole, *more)
    assert set(results(whole)[0]) <= set(swept)


def test_a_finished_run_is_not_trained_again_and_only_missing_lengths_are_swept(
    tmp_path: Path, uninterrupted: Path
) -> None:
    finish(tmp_path)
    before = results(tmp_path)
    finish(tmp_path)
    assert results(tmp_path)[0] == before[0]
    err = finish(tmp_path, "--test-lengths", "2:10:2")
    assert "trained before" in err and "sweeping length 10: 100 examples" in err
    after = results(tmp_path)
    assert set(before[0]) < set(after[0])
    assert {row[3] for row in set(after[0]) - set(before[0])} == {10}  # type: ignore[index]


def test_training_again_finds_the_same_counts(tmp_path: Path, uninterrupted: Path) -> None:
    finish(tmp_path)
    finish(tmp_path, "--retrain")
    assert_same(tmp_path, uninterrupted)


def test_two_processes_at_the_same_run_do_not_both_train_it(tmp_path: Path) -> None:
    first = start(tmp_path)
    wait_for(tmp_path, first, 0)
    second = start(tmp_path)
    _, err = second.communicate(timeout=60)
    first_out, first_err = first.communicate(timeout=300)
    assert first.returncode == 0, first_err
    assert second.returncode == 1, err
    assert "is at it" in err
    assert first_out
