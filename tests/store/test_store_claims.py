"""Leases: who gets a run, who loses it, and what a worker may still say afterwards."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta

import pytest
from store_examples import HASH, claim

from algolen.store import GRACE, Store, this_process
from algolen.store.owner import gone

RUN = f"{HASH}-0"
ELSEWHERE = "another-machine:17:99"
DEAD = f"{socket.gethostname()}:{2**22 - 3}:99"


def age_heartbeat(store: Store, seconds: float) -> None:
    then = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
    with store.transaction():
        store.db.execute("UPDATE runs SET heartbeat_at = ?", [then])


def test_a_new_run_is_claimed_with_what_is_known_of_it(store: Store) -> None:
    claimed = claim(store)
    assert (claimed.outcome, claimed.attempt, claimed.previous) == ("claimed", 1, None)
    run = store.run(RUN)
    assert (run.status, run.owner, run.steps, run.parameters, run.greedy) == (
        "running",
        this_process(),
        5000,
        101_000,
        True,
    )
    assert datetime.fromisoformat(run.started_at or "").utcoffset() == timedelta(0)
    assert len(store.rows("SELECT * FROM environments")) == 1


@pytest.mark.parametrize("status", ["pending", "failed", "diverged", "interrupted", "stale", "cancelled"])
def test_a_run_that_ended_without_being_done_is_claimed_again_from_where_it_was(store: Store, status: str) -> None:
    claim(store, owner=ELSEWHERE)
    store.heartbeat(RUN, ELSEWHERE, 300)
    with store.transaction():
        store.db.execute("UPDATE runs SET status = ?, error = 'before'", [status])
    claimed = claim(store)
    assert (claimed.outcome, claimed.attempt, claimed.previous, claimed.step) == ("claimed", 2, status, 300)
    assert (store.run(RUN).error, store.run(RUN).finished_at) == (None, None)


def test_a_run_that_is_done_is_not_claimed_and_not_touched(store: Store) -> None:
    claim(store)
    store.finish(RUN, this_process(), "done", None, 5000, 9.5)
    before = store.run(RUN)
    assert claim(store).outcome == "done"
    assert not store.finish(RUN, this_process(), "interrupted", None, 10, 1.0)
    assert store.run(RUN) == before
    assert (before.status, before.step, before.seconds) == ("done", 5000, 9.5)


@pytest.mark.parametrize("owner", [ELSEWHERE, f"{socket.gethostname()}:1:{'0'}", "what is this"])
def test_a_run_of_a_worker_that_is_not_known_to_be_dead_is_held(store: Store, owner: str) -> None:
    if owner.endswith(":1:0"):
        # Process 1 lives on every machine; only its real start makes it that owner.
        from algolen.store.owner import _start_of

        owner = f"{socket.gethostname()}:1:{_start_of(1)}"
    claim(store, owner=owner)
    age_heartbeat(store, 100)
    held = claim(store)
    assert (held.outcome, held.owner, held.attempt) == ("held", owner, 1)
    assert held.heartbeat_age == pytest.approx(100, abs=20)


def test_a_run_of_a_dead_process_or_of_another_with_its_number_is_taken_over(store: Store) -> None:
    host, pid, start = this_process().rsplit(":", 2)
    for owner in (DEAD, f"{host}:{pid}:{int(start) - 1}"):
        assert gone(owner)
        claim(store, owner=owner)
        assert claim(store).previous == "running"
    assert not gone(this_process())


def test_a_run_that_was_silent_longer_than_the_grace_is_taken_over(store: Store) -> None:
    claim(store, owner=ELSEWHERE)
    age_heartbeat(store, GRACE - 30)
    assert claim(store).outcome == "held"
    age_heartbeat(store, GRACE + 1)
    assert (claim(store).outcome, store.run(RUN).attempt) == ("claimed", 2)


def test_a_heartbeat_moves_the_step_and_tells_a_worker_that_it_lost_its_run(store: Store) -> None:
    claim(store, owner=ELSEWHERE)
    assert store.heartbeat(RUN, ELSEWHERE, 250)
    assert store.run(RUN).step == 250
    age_heartbeat(store, GRACE + 1)
    claim(store)
    assert not store.heartbeat(RUN, ELSEWHERE, 300)
    assert store.run(RUN).step == 250


def test_a_worker_that_lost_its_run_can_say_it_is_done_but_not_that_it_failed(store: Store) -> None:
    claim(store, owner=ELSEWHERE)
    age_heartbeat(store, GRACE + 1)
    claim(store)
    assert not store.finish(RUN, ELSEWHERE, "failed", "out of memory", 10, 1.0)
    assert store.run(RUN).status == "running"
    assert store.finish(RUN, ELSEWHERE, "done", None, 5000, 2.0)
    assert not store.finish(RUN, this_process(), "interrupted", None, 20, 1.0)
    assert (store.run(RUN).status, store.run(RUN).step) == ("done", 5000)
    assert not store.heartbeat(RUN, this_process(), 30)


def test_ending_badly_keeps_the_error_and_the_step(store: Store) -> None:
    claim(store)
    assert store.finish(RUN, this_process(), "diverged", "the loss was not finite at step 12", 12, 0.5)
    run = store.run(RUN)
    assert (run.status, run.error, run.step) == ("diverged", "the loss was not finite at step 12", 12)
    assert run.finished_at is not None
