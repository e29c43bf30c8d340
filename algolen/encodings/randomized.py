"""Randomized positions: ids are a random increasing selection from a range longer than any test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Encoding, Ids
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class RandomizedOptions:
    ids: Annotated[int, Field(ge=1, le=1_000_000, description="ids are selected from 0 … ids − 1")] = 2048
    draw: Annotated[Literal["batch", "sequence"], Field(description="what shares a selection; batch: as published")] = "batch"


class Randomized(Encoding):
    """Sends the ids 0 … n − 1 of an example to n distinct numbers below `ids`, drawn without replacement and sorted.

    Ruoss et al. 2023 (arXiv 2305.16843), section 3. Drawn anew at every step and at test as well, there once for each
    block of 64 examples, or evenly spaced (--positions even). Examples of a batch that have different lengths take
    their n from the same draw. Coupled ids are sent through it like any others: equal ids stay equal. Without another
    encoding it reads as randomized+rope, which is our choice: the paper's name covers every encoding under it.
    """

    name = "randomized"
    kind = "ids"
    paper = "Ruoss et al. 2023, arXiv 2305.16843"
    maps_ids = True
    draws_at_test = True
    reader = "rope"
    Options = RandomizedOptions

    @classmethod
    def map_range(cls, options: RandomizedOptions, ids: Ids, task: Task, length: int) -> Ids:
        if ids.largest >= options.ids:
            raise Refusal(
                f"randomized.ids={options.ids} is too few for {task.name} of length {length}, which takes "
                f"{ids.largest + 1}: --set randomized.ids={ids.largest + 1}"
            )
        return replace(ids, largest=options.ids - 1)

    @classmethod
    def ceiling(cls, options: RandomizedOptions) -> int | None:
        return options.ids - 1

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        ids_BTA = ids_BTA * batch.valid_BT[..., None]
        count_B = ids_BTA.amax(dim=(1, 2)) + 1
        most = min(self.options.ids, batch.tape_length if ids_BTA.shape[2] == 1 else int(count_B.max()))
        if phase is Phase.EVEN:
            chosen_BN = evenly_spaced(count_B, most, self.options.ids)
        else:
            shared = random.shared() if self.options.draw == "batch" else random
            chosen_BN = sorted_subset(shared, count_B, most, self.options.ids)
        rows_B11 = torch.arange(len(batch), device=ids_BTA.device)[:, None, None]
        return chosen_BN[rows_B11, ids_BTA] * batch.valid_BT[..., None]


def sorted_subset(random: Random, count_B: Tensor, most: int, ids: int) -> Tensor:
    """(B, most): the first count_B of each row are a sorted uniform subset of 0 … ids − 1; the rest is filled with the
    largest id. Rows with the same draw and different counts hold nested subsets."""
    order_BN = random.bits(ids).topk(most, dim=-1, largest=False, sorted=True).indices
    beyond_BN = torch.arange(most, device=count_B.device) >= count_B[:, None]
    return order_BN.masked_fill(beyond_BN, ids - 1).sort(dim=-1).values


def evenly_spaced(count_B: Tensor, most: int, ids: int) -> Tensor:
    """(B, most): the first count_B of each row spread evenly over 0 … ids − 1, at the middle of equal parts."""
    place_N = torch.arange(most, device=count_B.device)
    return ((2 * place_N + 1) * ids // (2 * count_B[:, None])).clamp(max=ids - 1)
