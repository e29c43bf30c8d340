"""Attention with linear biases: logits fall with the distance, at a slope of each head's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Site
from algolen.encodings.distances import distances, one_axis
from algolen.task import Task


@dataclass(frozen=True)
class AlibiOptions:
    steepness: Annotated[
        float, Field(gt=0, description="multiplies the published slopes, nearly flat at few heads")
    ] = 1.0


class Alibi(Encoding):
    """Adds −slope·|i − j| to the logits of ids i and j; the slopes are fixed, a geometric sequence over the heads.

    Press, Smith & Lewis 2021 (arXiv 2108.12409), section 3. Distances are taken without sign, which also gives the
    usual symmetric form for bidirectional attention and a value for coupled ids, whose past can lie ahead.
    """

    name = "alibi"
    kind = "bias"
    paper = "Press et al. 2021, arXiv 2108.12409"
    reads_ids = True
    Options: ClassVar[type] = AlibiOptions

    @classmethod
    def accept(cls, options: AlibiOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return self.falling(distances(drawn.ids_BTA).abs())

    def bias(self, site: Site) -> Tensor:
        bias_BHTT: Tensor = site.ctx
        return bias_BHTT

    def falling(self, distance_B1TT: Tensor) -> Tensor:
        """−slope·distance, (B, H, T, T)."""
        slope_H = torch.tensor(slopes(self.shape.attention_heads), device=distance_B1TT.device)
        bias_BHTT: Tensor = -(slope_H * self.options.steepness)[:, None, None] * distance_B1TT
        return bias_BHTT


def slopes(heads: int) -> list[float]:
    """The published slopes: 2^(−8h/H) for H a power of two; else those of the power of two below H, followed by every
    second one of twice that power."""
    power = 1 << (heads.bit_length() - 1)
    own = [2.0 ** (-8 * head / power) for head in range(1, power + 1)]
    return own if power == heads else own + slopes(2 * power)[::2][: heads - power]
