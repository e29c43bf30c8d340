"""Initial values of parameters, each a function of (seed, its own name): adding a parameter changes no other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from algolen.random import Random


@dataclass(frozen=True, slots=True)
class Initialiser:
    """Makes parameters on the CPU from a seed; `init / "name"` makes those of a part of the model.

    Without a seed nothing is drawn and values are undefined, for a model of which only shapes are wanted.
    """

    seed: int | None
    path: str = ""

    def __truediv__(self, name: str | int) -> Initialiser:
        return Initialiser(self.seed, f"{self.path}/{name}")

    def normal(self, name: str, *shape: int, std: float) -> nn.Parameter:
        """Independent normal values of standard deviation `std`."""
        if self.seed is None:
            return nn.Parameter(torch.empty(shape))
        random = Random.of(self.seed, "init", f"{self.path}/{name}", examples_B=torch.zeros(1, dtype=torch.int64))
        return nn.Parameter(random.normal(*shape)[0] * std)

    def constant(self, value: float, *shape: int) -> nn.Parameter:
        """The same value everywhere."""
        return nn.Parameter(torch.full(shape, value))
