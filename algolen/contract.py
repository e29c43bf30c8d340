"""Whether a task keeps its promises: looked at once before training, so that a slip in a new task has a name."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from algolen.batch import STRUCTURES, Batch
from algolen.errors import UserError
from algolen.random import Random
from algolen.task import Task

INTEGERS = ("tokens_BT", "targets_BT", "unit_BT", "stratum_BT")
MASKS = ("trained_BT", "scored_BT", "valid_BT")


def check_samples(task: Task, length: int) -> None:
    """Raises UserError, naming the first field that is wrong, if examples of a nominal length break the contract of
    `Batch` or what the task says of its lengths and baselines."""
    random = Random.of("contract", task.name, length, examples_B=torch.arange(2))
    batch = task.sample(torch.full((2,), length), random)
    wrong = next(_faults(task, batch, length), None)
    if wrong is not None:
        raise UserError(f"task {task.name} breaks its contract at length {length}: {wrong}")


def _faults(task: Task, batch: Batch, length: int) -> Iterator[str]:
    shape = batch.tokens_BT.shape
    for name in (*INTEGERS, *MASKS):
        tensor, kind = getattr(batch, name), torch.int64 if name in INTEGERS else torch.bool
        if tensor.shape != shape:
            yield f"{name} has shape {tuple(tensor.shape)}, tokens_BT has {tuple(shape)}"
            return
        if tensor.dtype != kind:
            yield f"{name} is of {tensor.dtype}, it has to be {kind}"
            return
    if shape[1] > task.tape_length(length):
        yield f"tape_length says {task.tape_length(length)}, the tape has {shape[1]} tokens"
    size = len(task.vocabulary)
    for name in ("tokens_BT", "targets_BT"):
        if not 0 <= int(getattr(batch, name).min()) <= int(getattr(batch, name).max()) < size:
            yield f"{name} goes beyond the vocabulary of {size} symbols"
    for name in ("trained_BT", "scored_BT"):
        mask_BT = getattr(batch, name)
        if not mask_BT.any(dim=1).all():
            yield f"an example has no position in {name}"
        if (mask_BT & ~batch.valid_BT).any():
            yield f"{name} has positions on padding"
        if mask_BT[:, : batch.predicted_from].any():
            yield f"predicted_from={batch.predicted_from}, but {name} has positions before it"
    if not torch.equal(batch.unit_BT >= 0, batch.scored_BT):
        yield "unit_BT has to be 0 or more where scored_BT is true, and -1 elsewhere"
    yield from _structure_faults(task, batch, length)
    for name, value in (("chance", task.chance(length)), ("input_blind", task.input_blind(length))):
        if not 0 <= value <= 1:
            yield f"{name} is {value}, which is no probability"


def _structure_faults(task: Task, batch: Batch, length: int) -> Iterator[str]:
    for name in sorted(task.structures):
        if name not in STRUCTURES:
            yield f"structures names '{name}'; there is: {', '.join(STRUCTURES)}"
            return
        if not batch.structure.has(name):
            yield f"structures names '{name}', which structure() does not give"
    coupled_BTA = batch.structure.coupled_BTA
    if coupled_BTA is not None and int(coupled_BTA.max()) > task.largest_coupled_id(length):
        yield f"largest_coupled_id says {task.largest_coupled_id(length)}, an id is {int(coupled_BTA.max())}"
