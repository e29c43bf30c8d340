"""Logits that grow with the logarithm of how many keys there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Shape, Site
from algolen.initialisation import Initialiser


@dataclass(frozen=True)
class LogNOptions:
    form: Annotated[
        Literal["log", "clip", "learned"],
        Field(description="× log n; × max(1, log n / log of trained); or × s·log n with s learned by layer and head"),
    ] = "log"
    trained: Annotated[int, Field(ge=2, description="the number of keys at which clip begins to grow")] = 64


class LogN(Encoding):
    """Multiplies the logits of a query by the logarithm of the number n of keys it sees, so that attention stays sharp.

    log: Chiang & Cholak 2022 (arXiv 2202.12172). clip: Su 2021 (kexue.fm/archives/8823). learned: scalable softmax,
    Nakanishi 2025 (arXiv 2501.19399). n counts places on the tape, not ids; a causal query in place i sees i + 1 keys.
    """

    name = "logn"
    kind = "scale"
    paper = "Chiang & Cholak 2022, arXiv 2202.12172"
    Options = LogNOptions

    def __init__(self, options: LogNOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        if options.form == "learned":
            self.s_LH = init.constant(1.0, shape.layers, shape.attention_heads)

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return batch.valid_BT

    def logit_scale(self, q_BHTK: Tensor, site: Site) -> Tensor:
        valid_BT: Tensor = site.ctx
        if site.causal:
            seen_BT = torch.arange(1, q_BHTK.shape[-2] + 1, device=q_BHTK.device)[None]
        else:
            seen_BT = valid_BT.sum(dim=1, keepdim=True).expand_as(valid_BT)
        log_B1T1 = seen_BT.float().log()[:, None, :, None]
        if self.options.form == "clip":
            return (log_B1T1 / math.log(self.options.trained)).clamp(min=1.0)
        if self.options.form == "learned":
            return log_B1T1 * self.s_LH[site.layer, :, None, None]
        return log_B1T1
