"""Which examples a step trains on: a function of (data seed, step), so that there is nothing to remember to resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from algolen.batch import Batch
from algolen.config import TrainConfig
from algolen.errors import UserError
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class Micro:
    """A slice of a step's batch, and the draws of its positions."""

    batch: Batch
    positions: Random


class TrainingData:
    """The training examples of a run, step by step; steps count from 0.

    Content is keyed by the example's number, positions (random starts and the like) by step and slot: an example of a
    fixed set that comes round again has the same content and a new start, as in Cho et al. 2024. Encodings that are
    trained with the same data seed see the same examples in the same order.

    Raises UserError if a fixed set cannot fill a batch of one length.
    """

    def __init__(
        self, task: Task, lengths: Sequence[int], config: TrainConfig, seed: int, device: torch.device
    ) -> None:
        self.task, self.config, self.seed, self.device = task, config, seed, device
        self.lengths = torch.tensor(lengths)
        self.epoch = _Epoch(-1, torch.empty(0))
        if config.examples and self.steps_an_epoch < 1:
            needed = config.batch * len(lengths)
            raise UserError(
                f"train.examples={config.examples} gives {config.examples // len(lengths)} examples a length, too few "
                f"for a batch of one length: use at least {needed}, or train.lengths_in_batch=mixed"
            )

    @property
    def steps_an_epoch(self) -> int:
        """How many whole batches a pass through the fixed set makes."""
        if self.config.lengths_in_batch == "mixed":
            return self.config.examples // self.config.batch
        sizes = [len(range(place, self.config.examples, len(self.lengths))) for place in range(len(self.lengths))]
        return sum(size // self.config.batch for size in sizes)

    @property
    def steps(self) -> int:
        """How many steps the whole training takes."""
        return self.config.epochs * self.steps_an_epoch if self.config.epochs else self.config.steps

    def micro_batches(self, step: int) -> list[Micro]:
        """The batch of a step, cut as the configuration says; the cut changes nothing but rounding."""
        numbers_B = self._numbers(step)
        slots_B = torch.arange(step * self.config.batch, (step + 1) * self.config.batch)
        content = Random.of(self.seed, "train", examples_B=numbers_B.to(self.device), groups_B=step)
        positions = Random.of(self.seed, "positions", examples_B=slots_B.to(self.device), groups_B=step)
        batch = self.task.sample(self._lengths(step, numbers_B), content)
        size = self.config.batch // self.config.accumulate
        starts = range(0, self.config.batch, size)
        return [Micro(batch.rows(start, start + size), positions.rows(start, start + size)) for start in starts]

    def _numbers(self, step: int) -> Tensor:
        """The numbers of a step's examples; (B,) on the CPU."""
        if not self.config.examples:
            return torch.arange(step * self.config.batch, (step + 1) * self.config.batch)
        number, within = divmod(step, self.steps_an_epoch)
        if self.epoch.number != number:
            self.epoch = _Epoch(number, self._shuffle(number))
        return self.epoch.batches_SB[within]

    def _lengths(self, step: int, numbers_B: Tensor) -> Tensor:
        """The nominal lengths of a step's examples; (B,) on the CPU."""
        if self.config.examples:
            return self.lengths[numbers_B % len(self.lengths)]
        if self.config.lengths_in_batch == "one":
            drawn = Random.of(self.seed, "length", examples_B=torch.tensor([step])).integers(0, len(self.lengths))
            return self.lengths[drawn].expand(self.config.batch)
        return self.lengths[Random.of(self.seed, "length", examples_B=numbers_B).integers(0, len(self.lengths))]

    def _shuffle(self, epoch: int) -> Tensor:
        """The batches of one pass through the fixed set; (steps, B). What does not fill a batch waits for the next."""
        random = Random.of(self.seed, "epoch", epoch, examples_B=torch.zeros(1, dtype=torch.int64))
        order_N = random.fold("examples").permutation(self.config.examples)[0]
        if self.config.lengths_in_batch == "mixed":
            classes = [order_N]
        else:
            place_N = order_N % len(self.lengths)
            classes = [order_N[place_N == place] for place in range(len(self.lengths))]
        size = self.config.batch
        batches_SB = torch.cat([own[: len(own) // size * size].reshape(-1, size) for own in classes])
        return batches_SB[random.fold("batches").permutation(len(batches_SB))[0]]


@dataclass(frozen=True)
class _Epoch:
    number: int
    batches_SB: Tensor
