"""FIRE: a small network reads the distance as a fraction of how far a query is from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.encodings.distances import distances, one_axis
from algolen.initialisation import Initialiser
from algolen.task import Task


@dataclass(frozen=True)
class FireOptions:
    hidden: Annotated[int, Field(ge=1, le=4096, description="width of the network's hidden layer")] = 32
    threshold: Annotated[float, Field(gt=0, description="L0: queries nearer to the start are measured against it")] = (
        512.0
    )
    c: Annotated[float, Field(gt=0, description="of log(c·x + 1) at the start of training")] = 0.1
    per_layer: Annotated[bool, Field(description="a network for each layer, instead of one for all")] = False


class Fire(Encoding):
    """Adds f(ψ(|i − j|) / ψ(max(i, Λ))) to the logits, ψ(x) = log(|c·x| + 1), f a network with one hidden layer.

    Li et al. 2023, Functional Interpolation for Relative Position Encoding (arXiv 2310.04418), equations 3 to 5. c and
    Λ = |μ·L0| are learned. The argument lies between 0 and 1 at every length, for increasing ids; coupled ids, whose
    past can lie ahead of the query, are measured by the distance without sign.
    """

    name = "fire"
    kind = "bias"
    paper = "Li et al. 2023, arXiv 2310.04418"
    reads_ids = True
    Options = FireOptions

    def __init__(self, options: FireOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        networks = shape.layers if options.per_layer else 1
        self.c_N = init.constant(options.c, networks)
        self.mu_N = init.constant(1.0, networks)
        self.up_NF = init.normal("up", networks, options.hidden, std=1.0)
        self.up_bias_NF = init.normal("up bias", networks, options.hidden, std=0.1)
        self.down_NHF = init.normal("down", networks, shape.attention_heads, options.hidden, std=options.hidden**-0.5)
        self.down_bias_NH = init.constant(0.0, networks, shape.attention_heads)

    @classmethod
    def accept(cls, options: FireOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> tuple[Tensor, Tensor, Tensor | None]:
        distance_BTT = distances(drawn.ids_BTA)[:, 0].abs().float()
        query_BT1 = drawn.ids_BTA[: len(distance_BTT)].float()
        shared = None if self.options.per_layer else self._bias(distance_BTT, query_BT1, 0)
        return distance_BTT, query_BT1, shared

    def bias(self, site: Site) -> Tensor:
        distance_BTT, query_BT1, shared_BHTT = site.ctx
        if shared_BHTT is None:
            return self._bias(distance_BTT, query_BT1, site.layer)
        shared: Tensor = shared_BHTT
        return shared

    def _bias(self, distance_BTT: Tensor, query_BT1: Tensor, network: int) -> Tensor:
        """(B, H, T, T)."""
        c, threshold = self.c_N[network], (self.mu_N[network] * self.options.threshold).abs()
        furthest_BT1 = torch.maximum(query_BT1.abs(), threshold)
        share_BTT = _psi(distance_BTT, c) / (_psi(furthest_BT1, c) + 1e-6)
        # In fp32, whatever autocast does: bf16 could not tell neighbouring distances apart.
        with torch.autocast(share_BTT.device.type, enabled=False):
            hidden_BTTF = F.linear(share_BTT[..., None], self.up_NF[network, :, None], self.up_bias_NF[network])
        return (hidden_BTTF.relu() @ self.down_NHF[network].T + self.down_bias_NH[network]).movedim(-1, 1)


def _psi(x: Tensor, c: Tensor) -> Tensor:
    return torch.log((c * x).abs() + 1)
