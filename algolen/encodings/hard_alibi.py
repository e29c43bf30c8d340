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
    """Head h of the first `masked` ones sees its own token and the h before it (h from 0); the others see all.

    Jelassi et al. 2024, Repeat After Me (arXiv 2402.01032), section 3. By place on the tape, not by id.
    """

    name = "hard-alibi"
    kind = "mask"
    paper = "Jelassi et al. 2024, arXiv 2402.01032"
    causal_only = True
    Options = HardAlibiOptions

    @classmethod
    def check_shape(cls, options: HardAlibiOptions, shape: Shape) -> None:
        if options.masked is not None and options.masked > shape.heads:
            raise Refusal(f"hard-alibi.masked={options.masked} is more than the model's {shape.heads} heads")

    def mask(self, site: Site) -> Tensor:
        assert site.mask_TT is not None
        heads, device = self.shape.heads, site.mask_TT.device
        masked = max(1, heads // 2) if self.options.masked is None else self.options.masked
        index_T = torch.arange(site.mask_TT.shape[-1], device=device)
        head_H11 = torch.arange(heads, device=device)[:, None, None]
        near_HTT = index_T[:, None] - index_T <= head_H11
        return near_HTT | (head_H11 >= masked)
