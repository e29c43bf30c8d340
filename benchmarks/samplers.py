"""Tokens a second that each task samples, in batches of 64 on tapes of up to 64 tokens, at the slowest kind of batch.

Examples' own tokens are counted, padding is not. Batches are as training and tests get them, structure included. Tasks
are those of the registry at their default options, and some again with options that take more work. The tape is short,
since what a batch costs whatever its length weighs more then.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import torch

from algolen import experiment, registry
from algolen.batch import Batch
from algolen.config import TrainConfig
from algolen.evaluation.test_sets import TestSet
from algolen.options import Value
from algolen.task import Task
from algolen.training.data import TrainingData
from benchmarks.measuring import Bar
from benchmarks.tapes import lengths_within
from benchmarks.training import CPU

TAPE, BATCH, BLOCKS, STEPS = 64, 64, 9, 20
LEAST = 200_000
DEMANDING: Mapping[str, Sequence[Mapping[str, Value]]] = {
    "addition": [{"operands": 4}, {"padded": False, "operand_lengths": "independent", "id_direction": "most"}],
    "copy": [{"unique": True, "alphabet": 31}],
    "reverse": [{"unique": True, "alphabet": 1000}],
    "parity": [{"scratchpad": True}, {"scratchpad": True, "bits": "ones"}],
    "selective-copy": [{"answer": "markers"}, {"answer": "markers", "blanks": 10.0}],
    "flip-flop": [{"loss": "all", "symbols": 10}],
}


def bars() -> Iterator[Bar]:
    """The sampler of every task."""
    known = registry.load()
    for name in known.tasks:
        for asked in ({}, *DEMANDING.get(name, ())):
            yield _bar(experiment.make_task(name, {name: dict(asked)}, known), asked)


def _bar(task: Task, asked: Mapping[str, Value]) -> Bar:
    lengths = lengths_within(task, TAPE)
    rates = {
        "one length": _rate(_training(task, lengths[-1:], "one")),
        "mixed": _rate(_training(task, lengths, "mixed")),
    }
    for kind in task.test_sets:
        if kind != "random":
            rates[kind] = _rate(_test(task, kind, lengths[-1]))
    what = " ".join([task.name, *(f"{option}={value}" for option, value in asked.items())])
    note = ", ".join(f"{kind} {rate / 1e6:.1f} M" for kind, rate in rates.items())
    return Bar(f"sampler, {what}", min(rates.values()), "tokens/s", least=LEAST, note=note)


def _rate(sample: Callable[[int], Batch]) -> float:
    """Tokens a second of processor time, the median over blocks; the first one warms up."""
    rates = []
    for block in range(BLOCKS + 1):
        started = time.process_time()
        batches = [sample(step) for step in range(block * STEPS, (block + 1) * STEPS)]
        used = time.process_time() - started
        rates.append(int(torch.stack([batch.valid_BT.sum() for batch in batches]).sum()) / used)
    return statistics.median(rates[1:])


def _training(task: Task, lengths: Sequence[int], in_batch: Literal["one", "mixed"]) -> Callable[[int], Batch]:
    data = TrainingData(task, lengths, TrainConfig(batch=BATCH, lengths_in_batch=in_batch), 0, CPU)
    return lambda step: data.micro_batches(step)[0].batch


def _test(task: Task, kind: str, length: int) -> Callable[[int], Batch]:
    test_set = TestSet(task, kind, length, BATCH * STEPS * (BLOCKS + 1), seed=0)
    return lambda step: test_set.batch(step * BATCH, (step + 1) * BATCH, CPU)
