"""T5's relative bias: a learned number for each bucket of distances and head."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.encodings.distances import distances, one_axis
from algolen.initialisation import Initialiser
from algolen.task import Task


@dataclass(frozen=True)
class T5Options:
    buckets: Annotated[
        int, Field(ge=4, le=4096, multiple_of=2, description="half exact distances, half logarithmic")
    ] = 32
    max_distance: Annotated[int, Field(ge=2, le=1_000_000, description="from here on all distances share a bucket")] = (
        128
    )
    unscaled: Annotated[bool, Field(description="q·k not divided by √d, as in T5")] = False
    std: Annotated[float, Field(gt=0, description="standard deviation of the table before training")] = 0.02

    def __post_init__(self) -> None:
        if self.max_distance <= self.buckets // 2:
            raise ValueError(f"max_distance={self.max_distance} has to be above half of buckets={self.buckets}")


class T5(Encoding):
    """Adds a learned bias to the logits, by head and by bucket of the distance; one table for all layers.

    Raffel et al. 2020 (arXiv 1910.10683), section 2.1. Distances below half of the buckets have one each, larger ones
    share buckets of logarithmically growing size. Keys that lie ahead (under coupled ids) fall into the bucket of
    distance 0, as in the published causal form; with bidirectional attention each direction has half of the buckets.
    """

    name = "t5"
    kind = "bias"
    paper = "Raffel et al. 2020, arXiv 1910.10683"
    reads_ids = True
    Options = T5Options

    def __init__(self, options: T5Options, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_NH = init.normal("table", options.buckets, shape.attention_heads, std=options.std)

    @classmethod
    def accept(cls, options: T5Options, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return distances(drawn.ids_BTA).round().long()

    def bias(self, site: Site) -> Tensor:
        distance_B1TT: Tensor = site.ctx
        bucket_BTT = self._bucket(distance_B1TT, site.causal)[:, 0]
        return torch.nn.functional.embedding(bucket_BTT, self.table_NH).movedim(-1, 1)

    def logit_scale(self, q_BHTK: Tensor, site: Site) -> Tensor | None:
        return torch.tensor(math.sqrt(self.shape.head_width), device=q_BHTK.device) if self.options.unscaled else None

    def _bucket(self, distance: Tensor, causal: bool) -> Tensor:
        count = self.options.buckets if causal else self.options.buckets // 2
        table = torch.tensor(buckets(count, self.options.max_distance), device=distance.device)
        near = distance.clamp(min=0) if causal else distance.abs()
        own = table[near.clamp(max=self.options.max_distance)]
        return own if causal else own + count * (distance < 0)


def buckets(count: int, max_distance: int) -> list[int]:
    """The bucket of each distance 0 … max_distance, for `count` buckets of one direction."""
    exact = count // 2
    ratio = math.log(max_distance / exact)
    return [
        n if n < exact else min(count - 1, exact + int(math.log(n / exact) / ratio * (count - exact) + 1e-9))
        for n in range(max_distance + 1)
    ]
