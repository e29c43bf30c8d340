"""Increasing selections from a long range, for encodings that draw positions or distances."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.phase import Phase
from algolen.random import Random

SharedBy = Annotated[Literal["batch", "sequence"], Field(description="what shares a selection; batch: as published")]


def own_tokens(batch: Batch, phase: Phase) -> Tensor | None:
    """(B,): how many tokens each example has, as far as a selection may depend on it; None where it is the whole tape.

    The tape of a test is that of the longest example of the nominal length: the tokens that an example will have are
    not known while its answer is being decoded.
    """
    return batch.valid_BT.sum(dim=1) if phase.training and batch.padded else None


def selected(random: Random, phase: Phase, count_B: Tensor | None, most: int, size: int, *shape: int) -> Tensor:
    """(B, *shape, most) int64: `most` of 0 … size − 1 in increasing order, drawn, or evenly spaced in Phase.EVEN.

    Where count_B is given, only the first count_B of a row are a selection, and the rest is filled with the largest
    number. Rows with the same draw and different counts hold nested selections.
    """
    if phase is Phase.EVEN:
        return evenly_spaced(most, size, random.device).expand(len(random), *shape, most)
    if count_B is None:
        return random.subset(most, size, *shape)
    beyond_BN = torch.arange(most, device=random.device) >= count_B[:, None]
    beyond = beyond_BN.reshape(len(random), *(1 for _ in shape), most)
    return random.selection(most, size, *shape).masked_fill(beyond, size - 1).sort(dim=-1).values


def evenly_spaced(count: int, size: int, device: torch.device) -> Tensor:
    """(count,): spread evenly over 0 … size − 1, at the middle of equal parts."""
    return (2 * torch.arange(count, device=device) + 1) * size // (2 * max(count, 1))
