"""Fixed test sets: a function of (task, version, options, kind, axis value, length, test seed), whatever the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from algolen import options
from algolen.batch import Batch
from algolen.errors import UserError, nearest
from algolen.random import Random
from algolen.task import Task

BLOCK = 64
"""Examples of a test set that share what an encoding draws once a batch."""


@dataclass(frozen=True)
class TestSet:
    """A fixed set of examples of one kind and length; `task` has its axis option already set to the axis value."""

    __test__ = False  # not a test, whatever pytest makes of the name

    task: Task
    kind: str
    length: int
    examples: int
    seed: int
    axis: str = ""
    axis_value: float = 0.0
    purpose: str = "test"
    """A development set shares no example with a test set, whatever the seeds."""

    def batch(self, start: int, stop: int, device: torch.device) -> Batch:
        """Examples start … stop − 1."""
        index_B = torch.arange(start, stop, device=device)
        random = Random.of(
            self.seed, self.purpose, self.task.name, self.task.version, self.kind, self.length, examples_B=index_B
        )
        return self.task.sample_test(self.kind, torch.full((stop - start,), self.length), random)

    def positions(self, start: int, stop: int, device: torch.device) -> Random:
        """The draws of positions for these examples: one draw a block where an encoding draws once a batch."""
        index_B = torch.arange(start, stop, device=device)
        return Random.of(
            self.seed, f"{self.purpose} positions", self.length, examples_B=index_B, groups_B=index_B // BLOCK
        )


class Fingerprint:
    """sha256 over the examples of a test set in order, however they are cut into batches."""

    def __init__(self, width: int) -> None:
        self._digest, self._width = hashlib.sha256(), width

    def update(self, batch: Batch) -> None:
        """Takes in the next examples."""
        pad = (0, self._width - batch.tape_length)
        columns = [
            F.pad(batch.tokens_BT, pad),
            F.pad(torch.where(batch.scored_BT, batch.targets_BT, -1), pad, value=-1),
        ]
        self._digest.update(torch.stack(columns, dim=1).cpu().numpy().astype("<i8").tobytes())

    def hexdigest(self) -> str:
        """The sha256 of all that was taken in."""
        return self._digest.hexdigest()


def with_axis(task: Task, axis: str, value: float) -> Task:
    """The task with one of its axes set to a value.

    Raises UserError if it has no such axis or the value is not one for it.
    """
    if axis not in task.axes:
        known = ", ".join(task.axes) or "none"
        raise UserError(f"task {task.name} has no axis '{axis}'; its axes: {known}")
    return options.read(type(task), {**options.plain(task), axis: value}, task.name)


def check_kinds(task: Task, kinds: Sequence[str]) -> None:
    """Raises UserError for a kind of test set that the task does not have."""
    for kind in kinds:
        if kind not in task.test_sets:
            close = nearest(kind, task.test_sets)
            hint = f"did you mean '{close}'? " if close else ""
            raise UserError(f"task {task.name} has no test set '{kind}'; {hint}it has: {', '.join(task.test_sets)}")


def spread(lengths: Sequence[int], count: int = 8) -> list[int]:
    """At most `count` of the lengths, evenly spread, both ends among them."""
    if len(lengths) <= count:
        return list(lengths)
    return [lengths[round(place * (len(lengths) - 1) / (count - 1))] for place in range(count)]
