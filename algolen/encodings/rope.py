"""Rotary position embedding: queries and keys are turned by angles that grow with the position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.encodings.distances import one_axis
from algolen.errors import Refusal
from algolen.task import Task


@dataclass(frozen=True)
class RopeOptions:
    base: Annotated[float, Field(gt=1, description="frequencies run from 1 to about 1/base")] = 10_000.0


class Rope(Encoding):
    """Turns every pair of channels of queries and keys by id·base^(−2k/d), so that scores depend on differences of ids.

    Su et al. 2021, RoFormer (arXiv 2104.09864), equations 14 to 16, over all channels of a head; a pair is channel k
    with channel k + d/2. Angles are fp32: bf16 cannot tell positions above 256 apart.
    """

    name = "rope"
    kind = "rotary"
    paper = "Su et al. 2021, arXiv 2104.09864"
    reads_ids = True
    Options = RopeOptions

    @classmethod
    def check_shape(cls, options: RopeOptions, shape: Shape) -> None:
        if shape.head_width % 2:
            raise Refusal(
                f"rope turns channels in pairs; a head width of {shape.head_width} is odd: change model.heads"
            )

    @classmethod
    def accept(cls, options: RopeOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> tuple[Tensor, Tensor]:
        half = self.shape.head_width // 2
        ids_BT1 = drawn.ids_BTA.float()
        if drawn.ids_BTA.stride(0) == 0:
            ids_BT1 = ids_BT1[:1]
        frequency_K = self.options.base ** (-torch.arange(half, device=ids_BT1.device) / half)
        angle_B1TK = (ids_BT1 * frequency_K)[:, None]
        return angle_B1TK.cos(), angle_B1TK.sin()

    def rotate(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        cos_B1TK, sin_B1TK = site.ctx
        return turn(q_BHTK, cos_B1TK, sin_B1TK), turn(k_BHTK, cos_B1TK, sin_B1TK)


def turn(x_BHTK: Tensor, cos_B1TK: Tensor, sin_B1TK: Tensor) -> Tensor:
    """Pairs (k, k + K/2) of channels turned by the angles whose cosines and sines are given; computed in fp32."""
    first, second = x_BHTK.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos_B1TK - second * sin_B1TK, first * sin_B1TK + second * cos_B1TK), dim=-1)
    return turned.to(x_BHTK.dtype)
