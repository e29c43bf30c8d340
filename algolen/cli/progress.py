"""How a run goes, on stderr: a bar with an ETA on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

from algolen import listener

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.evaluation.test_sets import TestSet
    from algolen.training.loop import Check


class Listener(listener.Listener):
    """Shows training and sweeps; use as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = console.is_terminal
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(compact=True),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not self.live,
            transient=True,
        )
        self.task: TaskID | None = None
        self.seed, self.at, self.steps, self.started, self.from_step = 0, 0, 0, 0.0, 0
        self.to_sweep, self.swept_examples = 0, 0

    def __enter__(self) -> Listener:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def training(self, run_id: str, seed: int, parameters: int, at_step: int, steps: int) -> None:
        self.seed, self.at, self.steps = seed, at_step, steps
        self.started, self.from_step = time.monotonic(), at_step
        if at_step >= steps:
            self.console.print(f"seed {seed}  run {run_id}  trained before: {steps:,} steps")
            return
        going_on = f", going on at step {at_step:,}" if at_step else ""
        self.console.print(f"seed {seed}  run {run_id}  {parameters:,} parameters, {steps:,} steps{going_on}")
        self._new(f"seed {seed}  training", steps, at_step)

    def noted(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def stepped(self, step: int, loss: float | None) -> None:
        self.at = step
        if self.live and self.task is not None:
            note = {} if loss is None or step % 5 else {"note": f"loss {loss:.4g}"}
            self.bar.update(self.task, completed=step, **note)  # type: ignore[arg-type]

    def checked(self, check: Check) -> None:
        seconds = time.monotonic() - self.started
        rate = (check.step - self.from_step) / max(seconds, 1e-9)
        left = (self.steps - check.step) / max(rate, 1e-9)
        beyond = ", ".join(
            f"{point.test_set.length} {point.total.exact / point.total.units:.2f}" for point in check.points
        )
        line = f"  {check.step:>6,}/{self.steps:,}  loss {check.loss:.5f}"
        if beyond:
            line += f"  exact at {beyond}"
        self.console.print(f"{line}  {rate:.3g}/s, {span(left)} left", soft_wrap=True)

    def sweeping(self, test_sets: Sequence[TestSet]) -> None:
        self.to_sweep, self.swept_examples = sum(test_set.examples for test_set in test_sets), 0
        if not test_sets:
            return
        lengths = sorted({test_set.length for test_set in test_sets})
        self._new("         sweeping", self.to_sweep, 0)
        if not self.live:
            shown = f"lengths {lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else f"length {lengths[0]}"
            self.console.print(f"  sweeping {shown}: {self.to_sweep:,} examples")

    def swept(self, examples: int) -> None:
        self.swept_examples += examples
        if self.live and self.task is not None:
            self.bar.update(self.task, completed=self.swept_examples)

    def _new(self, description: str, total: int, completed: int) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(description, total=total, completed=completed, note="")


def span(seconds: float) -> str:
    """A time in minutes or hours and what is left of them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
