"""Abacus: digits are told their place in their own number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Shape
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class AbacusOptions:
    max_k: Annotated[int, Field(ge=0, le=1_000_000, description="places are shifted by 0 … max_k in training")] = 99
    table: Annotated[int, Field(ge=2, le=1_000_000, description="rows of the table, one of them for other tokens")] = (
        1024
    )
    draw: Annotated[Literal["batch", "sequence"], Field(description="what shares a shift; batch: as published")] = (
        "batch"
    )
    std: Annotated[float, Field(gt=0, description="standard deviation of the rows before training")] = 0.02


class Abacus(Encoding):
    """Adds a learned vector for a digit's place in its run of digits, counted from 1; 0 for all other tokens.

    McLeish et al. 2024, Transformers Can Do Arithmetic with the Right Embeddings (arXiv 2405.17399), section 3. In
    training one number of 0 … max_k, drawn once a batch, is added to the places of all digits; nothing at test. A
    stream of its own: encodings beside it (`abacus+fire`) read the sequence. Numbers should be written with the least
    significant digit first, so that the place is the significance: for addition, --set addition.reverse_operands=true.
    """

    name = "abacus"
    kind = "embedding"
    paper = "McLeish et al. 2024, arXiv 2405.17399"
    needs = frozenset({"digit"})
    Options = AbacusOptions

    def __init__(self, options: AbacusOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_ND = init.normal("table", options.table, shape.width, std=options.std)

    @classmethod
    def check_task(cls, options: AbacusOptions, task: Task, length: int) -> None:
        needed = task.longest_number(length) + options.max_k + 1
        if needed > options.table:
            raise Refusal(
                f"abacus.table={options.table} is too short for {task.name} of length {length} with places shifted by "
                f"up to {options.max_k}: --set abacus.table={needed}"
            )

    @classmethod
    def ceiling(cls, options: AbacusOptions) -> int | None:
        return options.table - 1

    def draw(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        assert batch.structure.digit_BT is not None, "refused where the task marks no digits"
        place_BT = places(batch.structure.digit_BT)
        if phase.training:
            shared = random.shared() if self.options.draw == "batch" else random
            place_BT = place_BT + shared.integers(0, self.options.max_k + 1, 1) * (place_BT > 0)
        # A model that is wrong may go on writing digits for longer than any number.
        return place_BT.clamp(max=self.options.table - 1)

    def streams(self, drawn: Drawn) -> dict[str, Tensor]:
        return {"places": drawn.noise}

    def embed(self, h_BTD: Tensor, drawn: Drawn, ctx: Any) -> Tensor:
        return h_BTD + nn.functional.embedding(drawn.noise, self.table_ND)


def places(digit_BT: Tensor) -> Tensor:
    """(B, T): the place of each digit in its run of digits, from 1; 0 for what is no digit."""
    index_T = torch.arange(1, digit_BT.shape[1] + 1, device=digit_BT.device)
    before_BT = torch.where(digit_BT, 0, index_T).cummax(dim=1).values
    return (index_T - before_BT) * digit_BT
