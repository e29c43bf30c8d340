"""Randomized positions: ids are a random increasing selection from a range longer than any test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Encoding, Ids
from algolen.encodings.selections import SharedBy, own_tokens, selected
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class RandomizedOptions:
    ids: Annotated[int, Field(ge=2, le=1_000_000, description="ids are selected from 0 … ids − 1")] = 2048
    draw: SharedBy = "batch"
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
        fixed, kept = self.options.largest, 0 if self.options.largest is None else 1
        own = random.shared() if self.options.draw == "batch" else random
        count_B, most = (own_tokens(batch, phase), batch.tape_length) if fixed is None else (None, fixed)
        chosen_BN = selected(own, phase, count_B, most, self.options.ids - kept)
        if kept:
            chosen_BN = torch.cat((torch.zeros_like(chosen_BN[:, :1]), chosen_BN + 1), dim=1)
        if not batch.padded and ids_BTA.stride(0) == chosen_BN.stride(0) == 0:
            # One row for all, so that what reads the ids is computed once as well.
            return chosen_BN[0, ids_BTA[0]].expand(len(batch), -1, -1)
        valid_BT1, rows_B11 = batch.valid_BT[..., None], torch.arange(len(batch), device=ids_BTA.device)[:, None, None]
        return chosen_BN[rows_B11, ids_BTA * valid_BT1] * valid_BT1
