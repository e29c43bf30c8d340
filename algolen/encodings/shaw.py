"""Relative keys: queries also meet a learned vector for the clipped distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.encodings.distances import distances, one_axis
from algolen.initialisation import Initialiser
from algolen.task import Task


@dataclass(frozen=True)
class ShawOptions:
    clip: Annotated[int, Field(ge=1, le=1_000_000, description="distances beyond share the last vector")] = 16
    shared: Annotated[bool, Field(description="one table for all layers, instead of one for each")] = False


class Shaw(Encoding):
    """Adds q·a[clip(j − i)] to q·k before it is scaled: a learned vector for each distance up to `clip`, both ways.

    Shaw, Uszkoreit & Vaswani 2018 (arXiv 1803.02155), equation 4, shared by the heads. The vectors that the paper also
    adds to values, which it found unnecessary, are left out.
    """

    name = "shaw"
    kind = "bias"
    paper = "Shaw et al. 2018, arXiv 1803.02155"
    reads_ids = True
    Options = ShawOptions

    def __init__(self, options: ShawOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        layers, rows = 1 if options.shared else shape.layers, 2 * options.clip + 1
        self.table_LKN = init.normal("table", layers, shape.head_width, rows, std=shape.head_width**-0.5)

    @classmethod
    def accept(cls, options: ShawOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        clip = self.options.clip
        row_B1TT: Tensor = (-distances(drawn.ids_BTA)).round().long().clamp(-clip, clip) + clip
        return row_B1TT

    def bias(self, site: Site) -> Tensor:
        assert site.q_BHTK is not None
        row_B1TT: Tensor = site.ctx
        table_KN = self.table_LKN[0 if self.options.shared else site.layer]
        logits_BHTN = (site.q_BHTK @ table_KN).float() * site.scale
        size = row_B1TT.shape[-1]
        bias_BHTT: Tensor = logits_BHTN.gather(-1, row_B1TT.expand(*logits_BHTN.shape[:2], size, size))
        return bias_BHTT
