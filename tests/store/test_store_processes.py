"""Real processes on one real file."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from store_examples import HASH, claim, claim_one, die_in_a_transaction, wait_for, write_everything

from algolen.store import Store

WORKERS = 8
ROUNDS = 5


def start(target: Callable[..., None], *args: Any) -> BaseProcess:
    process = get_context("spawn").Process(target=target, args=args)
    process.start()
    return process


def finish(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    for process in processes:
        process.close()


def beside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir() if found.name.startswith(path.name))


def test_eight_processes_that_create_and_write_one_fresh_file_lose_nothing(path: Path) -> None:
    go = path.parent / "go"
    workers = [start(write_everything, path, go, worker, ROUNDS) for worker in range(WORKERS)]
    go.touch()
    finish(workers)
    assert beside(path) == [path.name]
    with Store.open(path) as store:
        runs = store.runs(status="done")
        assert len(runs) == WORKERS * ROUNDS
        assert len(store.rows("SELECT * FROM configs")) == 1
        stored = {
            (curve.run.seed, curve.point.key.length): curve.point.counts[0].exact
            for curve in store.length_curves()
            if curve.point
        }
        wanted = {(w * 1000 + i, n): w * 10 + i for w in range(WORKERS) for i in range(ROUNDS) for n in (10, 20, 30)}
        assert stored == wanted


def test_of_eight_processes_that_claim_one_run_exactly_one_gets_it(path: Path) -> None:
    go, answers = path.parent / "go", path.parent / "answers"
    answers.mkdir()
    workers = [start(claim_one, path, go, answers, worker) for worker in range(WORKERS)]
    go.touch()
    for worker in range(WORKERS):
        wait_for(answers / str(worker))
    outcomes = sorted((answers / str(worker)).read_text() for worker in range(WORKERS))
    (answers / "all").touch()
    finish(workers)
    assert outcomes == ["claimed"] + ["held"] * (WORKERS - 1)
    with Store.open(path) as store:
        assert store.run(HASH).attempt == 1


def test_a_run_whose_worker_was_killed_is_taken_over_and_its_half_written_results_are_gone(path: Path) -> None:
    ready = path.parent / "ready"
    worker = start(die_in_a_transaction, path, ready)
    wait_for(ready)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    worker.close()
    with Store.open(path) as store:
        assert store.run(HASH).status == "stale"
        assert store.evaluations(f"{HASH}-0") == []
        taken = claim(store)
        assert (taken.outcome, taken.attempt, taken.previous) == ("claimed", 2, "running")
    assert beside(path) == [path.name]
