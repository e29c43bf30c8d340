"""One process at a study: it walks through all runs, claims what is free, and waits for what others hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from algolen.errors import UserError
from algolen.execution import Outcome, Runner
from algolen.listener import Listener
from algolen.store import RunRow, Store, this_process
from algolen.sweep.plan import Run

WAIT = 5.0
"""Seconds between looks at runs that other processes hold."""


@dataclass(frozen=True)
class Worker:
    """Works off runs; any number of workers with the same runs and database share them.

    since: when the command began that this worker belongs to, as the store writes times; what failed after that is not
    tried again. before: told of each run that is about to be trained, and how many have ended; after: of each end.
    """

    store: Store
    folder: Path
    device: torch.device
    listener: Listener
    asked_to_stop: Callable[[], bool]
    since: str
    before: Callable[[Run, int], None] = lambda run, ended: None
    after: Callable[[Run, Outcome], None] = lambda run, outcome: None

    def work(self, runs: Sequence[Run], first: int = 0) -> dict[str, Outcome]:
        """How each run ended, by its id, beginning with the run at place `first`. Runs that fail don't stop the others.

        A run that is held by another process is waited for, and taken over if that process dies. Asked to stop, it
        returns what it has; the run it was at is among that, interrupted.
        """
        ended: dict[str, Outcome] = {}
        left = [*runs[first:], *runs[:first]]
        while left:
            held = []
            for run in left:
                if self.asked_to_stop():
                    return ended
                outcome = self._one(run, len(ended))
                if outcome.status == "held":
                    held.append(run)
                    continue
                ended[run.id] = outcome
                self.after(run, outcome)
                if outcome.status == "interrupted":
                    return ended
            if len(held) == len(left):
                self._wait()
            left = held
        return ended

    def _one(self, run: Run, ended: int) -> Outcome:
        row = self.store.find(run.id)
        if (outcome := settled(run, row, self.since)) is not None:
            return outcome
        if row is not None and row.status == "running" and row.owner != this_process():
            return Outcome(run.id, run.seed, "held", f"process {row.owner} is at it")
        experiment = run.planned.experiment
        runner = Runner(experiment, self.store, self.folder, self.device, self.listener, self.asked_to_stop)
        if row is None or row.status != "done":
            self.before(run, ended)
        try:
            return runner.run(run.seed)
        except UserError as error:
            return Outcome(run.id, run.seed, "failed", str(error))

    def _wait(self) -> None:
        until = time.monotonic() + WAIT
        while time.monotonic() < until and not self.asked_to_stop():
            time.sleep(0.2)


def settled(run: Run, row: RunRow | None, since: str) -> Outcome | None:
    """How a run ended, where it is not to be tried again: it diverged, which it would again, or failed just now."""
    if row is None or row.status not in ("diverged", "failed"):
        return None
    if row.status == "failed" and (row.finished_at or "") < since:
        return None
    return Outcome(run.id, run.seed, row.status, row.error or "")
