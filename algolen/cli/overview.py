"""How a study goes as a whole, on stderr: one bar with an ETA on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from algolen.cli.progress import span

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.store import RunRow, Store
    from algolen.sweep.plan import Run

EVERY = 60.0
"""Seconds between lines where nothing ended."""

ENDED = ("done", "diverged", "failed")


class Overview:
    """Shows how far the runs of a study are in the database, whoever trains them; use as a context manager."""

    def __init__(self, console: Console, store: Store, runs: Sequence[Run], since: str) -> None:
        self.console, self.store, self.runs, self.since = console, store, runs, since
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            refresh_per_second=2,
            disable=not console.is_terminal,
            transient=True,
        )
        self.total = sum(run.planned.steps for run in runs)
        self.task = self.bar.add_task("", total=self.total, note="")
        self.started, self.from_steps = time.monotonic(), -1
        self.told: set[str] = set()
        self.last_line, self.last_ended = 0.0, -1

    def __enter__(self) -> Overview:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def look(self) -> None:
        """Reads the database and shows what it says."""
        rows = {run.id: self.store.find(run.id) for run in self.runs}
        steps = sum(_steps(run, rows[run.id]) for run in self.runs)
        self.from_steps = steps if self.from_steps < 0 else self.from_steps
        for run in self.runs:
            self._tell(run, rows[run.id])
        ended = sum(row is not None and self._ended(row) for row in rows.values())
        rate = (steps - self.from_steps) / max(time.monotonic() - self.started, 1e-9)
        left = f", {span((self.total - steps) / rate)} left" if rate else ""
        description = f"{ended} of {len(self.runs)} runs"
        self.bar.update(self.task, completed=steps, description=description, note=left.removeprefix(", "))
        if self.console.is_terminal or (ended == self.last_ended and time.monotonic() - self.last_line < EVERY):
            return
        self.last_line, self.last_ended = time.monotonic(), ended
        self.console.print(f"{description}, {steps / self.total:.0%} of all steps{left}", soft_wrap=True)

    def _ended(self, row: RunRow) -> bool:
        return row.status in ENDED and (row.status != "failed" or (row.finished_at or "") >= self.since)

    def _tell(self, run: Run, row: RunRow | None) -> None:
        """Says once of a run that it came to grief since the command began."""
        if row is None or row.status not in ("failed", "diverged") or run.id in self.told:
            return
        if (row.finished_at or "") >= self.since:
            self.told.add(run.id)
            self.console.print(f"{run}: {row.status}: {row.error}", markup=False, soft_wrap=True)


def _steps(run: Run, row: RunRow | None) -> int:
    if row is None:
        return 0
    return run.planned.steps if row.status in ("done", "diverged") else min(row.step, run.planned.steps)
