"""Working a study off: going on after a kill, sharing among processes, runs that fail or diverge."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from algolen.store import owner
from tests.conftest import CommandLine
from tests.sweep.conftest import TINY

STUDY = ("study", "tiny.toml", "--device", "cpu")
LONG = TINY.replace("steps = 6", "steps = 200").replace("check_every = 3", "check_every = 20")
Rows = Callable[..., list[tuple[Any, ...]]]
COUNTS = "SELECT * FROM counts ORDER BY 1, 2, 3, 4, 5, 6, 7"

BROKEN = '''
import torch
from algolen.encodings.base import Encoding


class Broken(Encoding):
    """Raises when it is used."""

    name, kind, paper, status = "broken", "embedding", "a test", "proposed"

    def embed(self, h_BTD, drawn, ctx):
        raise RuntimeError("it broke")
'''


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The study in a process of its own, which is gone when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "algolen", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(met: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stands(rows: Rows, sql: str) -> Callable[[], bool]:
    """Whether a query of the database, once that is there, has an answer."""

    def look() -> bool:
        return bool(rows("SELECT 1 FROM sqlite_master WHERE name = 'v_runs'") and rows(sql))

    return look


def test_a_study_that_was_killed_goes_on_by_the_same_command_and_comes_out_the_same(
    tiny: CommandLine, rows: Rows
) -> None:
    tiny.write("tiny.toml", LONG)
    (tiny.folder / "whole").mkdir()
    assert tiny(*STUDY, "--db", "whole/experiments.sqlite").code == 0
    with started(tiny.folder, *STUDY) as process:
        # Not before there is a checkpoint to go on from.
        seen = "SELECT 1 FROM v_runs JOIN artifacts ON run_id = run WHERE pe = 'nope' AND seed = 1"
        wait_for(stands(rows, f"{seen} AND kind = 'last checkpoint'"))
        process.kill()
        process.wait()
    assert rows("SELECT seed, status FROM runs ORDER BY seed") == [(0, "done"), (1, "running")]
    again = tiny(*STUDY)
    assert again.code == 0, again.stderr
    assert "going on at step" in again.stderr
    assert rows("SELECT pe, seed, status, attempt FROM v_runs ORDER BY pe, seed") == [
        ("coupling", 0, "done", 1), ("nope", 0, "done", 1), ("nope", 1, "done", 2),
    ]  # fmt: skip
    assert rows(COUNTS) == rows(COUNTS, "whole/experiments.sqlite")
    assert [name in again.stdout for name in ("A study for tests", "nope", "coupling")] == [True] * 3
    third = tiny(*STUDY)
    assert (third.code, third.stdout, "step " in third.stderr) == (0, again.stdout, False)


def test_two_processes_share_a_study_stop_when_told_and_go_on(tiny: CommandLine, rows: Rows) -> None:
    tiny.write("tiny.toml", LONG.replace('seeds = "0-1"', 'seeds = "0-2"'))
    command = (*STUDY, "--processes", "2")
    with started(tiny.folder, *command) as process:
        # Both are at a run at once.
        wait_for(stands(rows, "SELECT 1 FROM runs WHERE status = 'running' GROUP BY status HAVING count(*) = 2"))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (128 + signal.SIGTERM, ""), err
    owners = [name for (name,) in rows("SELECT DISTINCT owner FROM runs")]
    assert len(owners) == 2 and all(owner.gone(name) for name in owners)
    assert rows("SELECT 1 FROM runs WHERE status NOT IN ('done', 'interrupted')") == []
    again = tiny(*command)
    assert again.code == 0, again.stderr
    assert "4 of 4 runs, 100% of all steps" in again.stderr
    assert rows("SELECT status, count(*) FROM runs GROUP BY status") == [("done", 4)]
    logs = "".join(path.read_text() for path in (tiny.folder / "runs").glob("tiny-*.log"))
    fresh = re.findall(r"run ([0-9a-f]{16}-\d+)  [\d,]+ parameters, 200 steps$", logs, re.MULTILINE)
    assert sorted(fresh) == sorted(name for (name,) in rows("SELECT id FROM runs")), "each began once"


def test_a_run_that_another_process_holds_is_left_for_last_and_taken_over_when_that_dies(
    tiny: CommandLine, rows: Rows
) -> None:
    assert tiny(*STUDY, "--quick", "--seeds", "0").code == 0
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        host = owner.this_process().split(":")[0]
        name = f"{host}:{other.pid}:{owner._start_of(other.pid)}"
        rows(f"UPDATE runs SET status = 'running', owner = '{name}', heartbeat_at = '2999-01-01T00:00:00.000+00:00'")
        with started(tiny.folder, *STUDY) as process:
            wait_for(stands(rows, "SELECT 1 FROM runs WHERE status = 'done' GROUP BY status HAVING count(*) = 2"))
            assert rows("SELECT owner FROM runs WHERE status = 'running'") == [(name,)]
            other.kill()
            other.wait()
            assert process.wait(timeout=300) == 0
    finally:
        other.kill()
        other.wait()
    assert rows("SELECT status, count(*) FROM runs GROUP BY status") == [("done", 3)]


def test_a_run_that_fails_is_recorded_and_the_others_go_on(tiny: CommandLine, rows: Rows) -> None:
    tiny.write("broken.py", BROKEN)
    tiny.write("tiny.toml", TINY.replace('pe = "nope"', 'pe = "broken"'))
    failed = tiny(*STUDY, "--plugin", "broken.py")
    assert failed.code == 1
    assert failed.stderr.count("failed: RuntimeError: it broke") == 2, "both seeds, once each"
    assert rows("SELECT pe, seed, status, attempt FROM v_runs ORDER BY pe, seed") == [
        ("broken", 0, "failed", 1), ("broken", 1, "failed", 1), ("coupling", 0, "done", 1),
    ]  # fmt: skip
    assert "coupling" in failed.stdout and "2 failed" in failed.stdout
    shared = tiny(*STUDY, "--plugin", "broken.py", "--processes", "2")
    assert shared.code == 1
    assert shared.stderr.count("failed: RuntimeError: it broke") == 2
    attempts = rows("SELECT attempt FROM v_runs WHERE pe = 'broken'")
    assert attempts == [(2,), (2,)], "the command tries again, and only one of its processes"


def test_a_run_that_diverges_is_a_result_and_not_trained_again(tiny: CommandLine, rows: Rows) -> None:
    tiny.write("tiny.toml", TINY.replace("train.learning_rate=1e-3", "train.learning_rate=1e30"))
    for _ in range(2):
        done = tiny(*STUDY)
        assert (done.code, done.stderr.count("diverged: the loss was not finite")) == (0, 2)
        assert "2 diverged" in done.stdout
    assert rows("SELECT DISTINCT status, attempt FROM v_runs WHERE pe = 'nope'") == [("diverged", 1)]


def test_only_a_missing_checkpoint_stops_a_finished_run_from_more_lengths(tiny: CommandLine, rows: Rows) -> None:
    import shutil

    assert tiny(*STUDY).code == 0
    tiny.write("tiny.toml", TINY.replace('"2,4"', '"2,4,6"'))
    shutil.rmtree(tiny.folder / "runs" / rows("SELECT run FROM v_runs WHERE pe = 'coupling'")[0][0])
    more = tiny(*STUDY)
    assert (more.code, more.stderr.count("--retrain")) == (1, 1)
    assert rows("SELECT run, count(*) FROM v_length_curve WHERE length = 6 AND purpose = 'report' GROUP BY 1") == [
        (run, 1) for (run,) in rows("SELECT run FROM v_runs WHERE pe = 'nope' ORDER BY run")
    ]
    assert rows("SELECT DISTINCT status FROM runs") == [("done",)]


@pytest.mark.parametrize("processes", ["0", "x"])
def test_a_number_of_processes_that_cannot_be_is_refused(tiny: CommandLine, processes: str) -> None:
    assert tiny(*STUDY, "--processes", processes).code == 2
