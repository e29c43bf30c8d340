"""Rows that the tests of the store share, and what their other processes do."""

from __future__ import annotations

import time
from pathlib import Path

from algolen.store import ConfigRow, Count, EnvironmentRow, EvaluationRow, Point, PointKey, Store, this_process

HASH = "0123456789abcdef"
CONFIG = ConfigRow(HASH, "addition", 1, "coupling", "coupling", 1, 20, '{"task": "addition"}')
ENVIRONMENT = EnvironmentRow("3.11.7", "2.6.0", "Linux", "cpu", "a processor", 1, "0.1.0", "abc123", False)


def claim(store: Store, seed: int = 0, owner: str | None = None, config: ConfigRow = CONFIG):  # type: ignore[no-untyped-def]
    run_id = f"{config.hash}-{seed}"
    return store.claim(run_id, config.hash, seed, 5000, 101_000, True, owner or this_process(), ENVIRONMENT)


def point(length: int, exact: int, of: int = 1000, test_set: str = "random", stratum: str = "carry 0") -> Point:
    counts = (Count(stratum, of, exact, of * 2, exact * 2),)
    return Point(PointKey(test_set, length), of, "f" * 64, counts, 0.1, 0.2)


def evaluation(seed: int = 0, config: ConfigRow = CONFIG) -> EvaluationRow:
    return EvaluationRow(f"{config.hash}-{seed}", "last", 0, 1000, "start 1")


def wait_for(path: Path, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} did not come")
        time.sleep(0.002)


def tell(path: Path, text: str) -> None:
    """Writes a file that is whole from the moment it can be seen."""
    hidden = path.with_suffix(".part")
    hidden.write_text(text)
    hidden.replace(path)


def write_everything(path: Path, go: Path, worker: int, rounds: int) -> None:
    """Opens, and so creates or migrates, the file again and again, each time writing a run with its results."""
    wait_for(go)
    for index in range(rounds):
        with Store.open(path, create=True) as store:
            seed = worker * 1000 + index
            store.add_config(CONFIG)
            assert claim(store, seed).outcome == "claimed"
            store.add_evaluation(evaluation(seed))
            store.add_points(evaluation(seed).id, 5000, [point(n, worker * 10 + index) for n in (10, 20, 30)])
            assert store.finish(f"{HASH}-{seed}", this_process(), "done", None, 5000, 1.0)


def claim_one(path: Path, go: Path, answers: Path, worker: int) -> None:
    wait_for(go)
    with Store.open(path, create=True) as store:
        store.add_config(CONFIG)
        tell(answers / str(worker), claim(store).outcome)
        wait_for(answers / "all")


def die_in_a_transaction(path: Path, ready: Path) -> None:
    """Holds a claim and has half written a second thing when it is killed."""
    store = Store.open(path, create=True)
    store.add_config(CONFIG)
    claim(store)
    with store.transaction():
        store.add_evaluation(evaluation())
        tell(ready, "holding")
        time.sleep(600)
