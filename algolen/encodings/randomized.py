"""Randomized positions: ids are a random increasing selection from a range longer than any test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

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
    ids: Annotated[int, Field(ge=2, le=1_000_000, description="ids are selected from 0 … ids − 1")] = 2048
    draw: Annotated[Literal["batch", "sequence"], Field(description="what shares a selection; batch: as published")] = (
        "batch"
    )
    largest: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description="ids 1 to this one are sent to as many others and 0 stays 0, whatever the tape's length; none: "
            "what a map before it can give, or without one the ids of the tape, 0 included",
        ),
    ] = None


class Randomized(Encoding):
    """Sends the ids 0 … n − 1 to n distinct numbers below `ids`, drawn without replacement and sorted.

    Ruoss et al. 2023 (arXiv 2305.16843), section 3. Drawn anew at every step and at test as well, there once for each
    block of 64 examples, or evenly spaced (--positions even). Without another encoding it reads as randomized+rope,
    which is our choice: the paper's name covers every encoding under it.

    n is the number of an example's tokens in training; examples of a batch that differ in it take nested parts of the
    same draw. At test it is the length of the tape, which is that of the longest example of the nominal length: the
    tokens that an example will have are not known while its answer is being decoded.

    After another map (`coupling+randomized`) the tape does not tell n either, so it is always that map's largest id m:
    ids 1 … m go to m distinct numbers of 1 … ids − 1. Equal ids stay equal, and 0, the id of uncoupled tokens, stays an
    id of its own. All axes share the selection. This is our extension.
    """

    name = "randomized"
    kind = "ids"
    paper = "Ruoss et al. 2023, arXiv 2305.16843"
    draws_at_test = True
    reader = "rope"
    Options = RandomizedOptions

    @classmethod
    def resolve(cls, options: RandomizedOptions, maps: tuple[tuple[type[Encoding], Any], ...]) -> RandomizedOptions:
        if options.largest is not None or not maps:
            return options
        kind, own = maps[-1]
        ceiling = kind.ceiling(own)
        if ceiling is None:
            raise Refusal(f"how large the ids of {kind.name} get is not known: --set randomized.largest=…")
        return replace(options, largest=ceiling)

    @classmethod
    def map_range(cls, options: RandomizedOptions, ids: Ids, task: Task, length: int) -> Ids:
        if not ids.integers:
            raise Refusal("randomized looks ids up in a selection and cannot read fractional ones")
        if options.largest is not None and ids.largest > options.largest:
            raise Refusal(
                f"randomized.largest={options.largest} is too small for {task.name} of length {length}, which reaches "
                f"id {ids.largest}: --set randomized.largest={ids.largest}"
            )
        needed = (ids.largest if options.largest is None else options.largest) + 1
        if needed > options.ids:
            raise Refusal(
                f"randomized.ids={options.ids} is too few for {task.name} of length {length}, which takes {needed}: "
                f"--set randomized.ids={needed}"
            )
        return replace(ids, largest=options.ids - 1)

    @classmethod
    def ceiling(cls, options: RandomizedOptions) -> int | None:
        return options.ids - 1

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        ids_BTA = ids_BTA * batch.valid_BT[..., None]
        fixed, kept = self.options.largest, 0 if self.options.largest is None else 1
        most = batch.tape_length if fixed is None else fixed
        if fixed is None and phase.training:
            count_B = batch.valid_BT.sum(dim=1)
        else:
            count_B = torch.full_like(batch.valid_BT[:, 0], most, dtype=torch.int64)
        if phase is Phase.EVEN:
            chosen_BN = evenly_spaced(count_B, most, self.options.ids - kept)
        else:
            shared = random.shared() if self.options.draw == "batch" else random
            chosen_BN = sorted_subset(shared, count_B, most, self.options.ids - kept)
        if kept:
            chosen_BN = torch.cat((torch.zeros_like(chosen_BN[:, :1]), chosen_BN + 1), dim=1)
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
