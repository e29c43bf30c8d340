"""A position encoding of one's own: a learned bias for every distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.task import Task


@dataclass(frozen=True)
class DistanceOptions:
    farthest: Annotated[int, Field(ge=1, description="distances beyond this one share its bias")] = 32


class Distance(Encoding):
    """Adds a learned number to every logit: one for each head and distance, shared by all layers."""

    name = "distance"
    kind = "bias"
    paper = "an example; like T5's bias (Raffel et al. 2020, arXiv 1910.10683) without its buckets"
    status = "proposed"
    causal_only = True  # with causal attention no distance is negative
    reads_ids = True
    Options = DistanceOptions

    def __init__(self, options: DistanceOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.bias_HN = init.constant(0.0, shape.attention_heads, options.farthest + 1)

    @classmethod
    def accept(cls, options: DistanceOptions, ids: Ids, task: Task, length: int) -> None:
        if ids.axes != 1 or not ids.increasing or not ids.integers:
            raise Refusal("distance needs whole ids on one axis that grow along the tape; leave the id map out")

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        """The biases of all pairs of tokens, once for all layers."""
        ids_BT = drawn.ids_BTA[..., 0]
        distance_BTT = (ids_BT[:, :, None] - ids_BT[:, None, :]).clamp(0, self.options.farthest)
        return self.bias_HN[:, distance_BTT].transpose(0, 1)

    def bias(self, site: Site) -> Tensor:
        prepared_BHTT: Tensor = site.ctx
        return prepared_BHTT
