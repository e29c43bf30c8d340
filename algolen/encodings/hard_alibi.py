"""Hard-ALiBi: some heads see only the last few tokens, the others everything, without positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from algolen.encodings.base import Encoding, Shape, Site
from algolen.errors import Refusal


@dataclass(frozen=True)
class HardAlibiOptions:
    masked: Annotated[int | None, Field(ge=1, description="heads that are masked; none: half of them")] = None


class HardAlibi(Encoding):
    """The first head sees its own token alone, the second one the token before too, and so on for the `masked` first
    heads; the others see all.

    Jelassi et al. 2024, Repeat After Me (arXiv 2402.01032): b_ij = −∞ for j ≤ i − m, m = 1, 2 … for the masked heads
    (that m counts up from 1 is from memory), no positions in the others. By place on the tape, not by id.
    """

    name = "hard-alibi"
    kind = "mask"
    paper = "Jelassi et al. 2024, arXiv 2402.01032"
    status = "unconfirmed"
    causal_only = True
    Options = HardAlibiOptions

    @classmethod
    def check_shape(cls, options: HardAlibiOptions, shape: Shape) -> None:
        if options.masked is not None and options.masked > shape.attention_heads:
            raise Refusal(
                f"hard-alibi.masked={options.masked} is more than the {shape.attention_heads} heads that attend"
            )
        if options.masked is None and shape.attention_heads < 2:
            raise Refusal("hard-alibi masks half of the heads, but the model has one: change model.heads")

    def mask(self, site: Site) -> Tensor:
        assert site.mask_TT is not None
        heads, device = self.shape.attention_heads, site.mask_TT.device
        masked = heads // 2 if self.options.masked is None else self.options.masked
        index_T = torch.arange(site.mask_TT.shape[-1], device=device)
        head_H11 = torch.arange(heads, device=device)[:, None, None]
        near_HTT = index_T[:, None] - index_T <= head_H11
        return near_HTT | (head_H11 >= masked)
