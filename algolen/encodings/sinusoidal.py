"""Sines and cosines of the position, added to the token embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids
from algolen.encodings.distances import one_axis
from algolen.task import Task


@dataclass(frozen=True)
class SinusoidalOptions:
    base: Annotated[float, Field(gt=1, description="wavelengths run from 2π to 2π·base")] = 10_000.0
    scale: Annotated[float, Field(gt=0, description="multiplies the encoding")] = 1.0


class Sinusoidal(Encoding):
    """Sines and cosines of the id at geometric wavelengths, added to the token embeddings.

    Vaswani et al. 2017 (arXiv 1706.03762), section 3.5: channel 2k is sin(p·base^(−2k/D)), channel 2k + 1 the cosine.
    Computed in fp32 for whatever ids occur, so there is no largest one.
    """

    name = "sinusoidal"
    kind = "embedding"
    paper = "Vaswani et al. 2017, arXiv 1706.03762"
    reads_ids = True
    Options = SinusoidalOptions

    @classmethod
    def accept(cls, options: SinusoidalOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        ids_BT1 = drawn.ids_BTA.float()
        if drawn.ids_BTA.stride(0) == 0:
            ids_BT1 = ids_BT1[:1]
        table_BTD = sinusoids(ids_BT1[..., 0], self.shape.width, self.options.base)
        scaled_BTD: Tensor = table_BTD * self.options.scale
        return scaled_BTD

    def embed(self, h_BTD: Tensor, drawn: Drawn, ctx: Any) -> Tensor:
        table_BTD: Tensor = ctx
        return h_BTD + table_BTD


def sinusoids(positions: Tensor, width: int, base: float) -> Tensor:
    """(…, width) fp32: sine and cosine of each position in turn, at width / 2 frequencies; odd widths end on a sine."""
    places_D = torch.arange(width, device=positions.device)
    frequency_D = base ** (-(places_D - places_D % 2) / width)
    angle = positions[..., None].float() * frequency_D
    return torch.where(places_D % 2 == 0, angle.sin(), angle.cos())
