"""CoPE: positions that count what the query finds worth counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from algolen.encodings.base import Encoding, Shape, Site
from algolen.initialisation import Initialiser


@dataclass(frozen=True)
class CopeOptions:
    npos: Annotated[
        int, Field(ge=2, le=1_000_000, description="positions in the table; counts saturate at the last")
    ] = 64
    scale_pos: Annotated[bool, Field(description="position logits divided by √d too, as in the official code")] = True
    separate_keys: Annotated[bool, Field(description="gates have keys of their own")] = False
    shared: Annotated[bool, Field(description="one table for all layers, instead of one for each")] = False


class Cope(Encoding):
    """Contextual positions: a key's position is the sum of gates σ(q·k/√d) from it to the query.

    Golovneva et al. 2024, Contextual Position Encoding (arXiv 2405.18719), equations 3 to 6. The key itself counts.
    Positions are fractional and interpolate between rows of a table that is shared by the heads; they saturate at
    npos − 1. At the start gates are about ½, so that happens after some 2·npos tokens. Gates of keys after the query
    are masked before the sigmoid, or the future would leak into every position. Gates and (with scale_pos) position
    logits are scaled as q·k is, by the model's logit multiplier too.
    """

    name = "cope"
    kind = "bias"
    paper = "Golovneva et al. 2024, arXiv 2405.18719"
    causal_only = True
    Options = CopeOptions

    def __init__(self, options: CopeOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_LKN = init.constant(0.0, 1 if options.shared else shape.layers, shape.head_width, options.npos)
        if options.separate_keys:
            std = shape.width**-0.5
            inner = shape.attention_heads * shape.head_width
            self.gate_key_LKD = init.normal("gate key", shape.layers, inner, shape.width, std=std)

    @classmethod
    def ceiling(cls, options: CopeOptions) -> int | None:
        return options.npos - 1

    def bias(self, site: Site) -> Tensor:
        assert site.q_BHTK is not None
        last = self.options.npos - 1
        gates_BHTT = torch.sigmoid(self._gate_logits(site))
        place_BHTT = gates_BHTT.cumsum(dim=-1).clamp(max=last)
        table_KN = self.table_LKN[0 if self.options.shared else site.layer]
        row_BHTN = (site.q_BHTK @ table_KN).float()
        if self.options.scale_pos:
            row_BHTN = row_BHTN * site.scale
        rise_BHTN = nn.functional.pad(row_BHTN[..., 1:] - row_BHTN[..., :-1], (0, 1))
        below_BHTT = place_BHTT.detach().long()
        lower_BHTT, slope_BHTT = row_BHTN.gather(-1, below_BHTT), rise_BHTN.gather(-1, below_BHTT)
        return torch.addcmul(lower_BHTT, place_BHTT - below_BHTT, slope_BHTT).flip(-1)

    def _gate_logits(self, site: Site) -> Tensor:
        """(B, H, T, T) fp32, masked. The last key comes first, so that positions are sums from the left."""
        assert site.q_BHTK is not None
        assert site.mask_TT is not None
        if self.options.separate_keys:
            k_BTK = nn.functional.linear(site.x_BTD, self.gate_key_LKD[site.layer])
            k_BHTK = k_BTK.view(*k_BTK.shape[:2], self.shape.attention_heads, -1).transpose(1, 2)
        else:
            assert site.k_BHTK is not None
            k_BHTK = site.k_BHTK
        logits_BHTT = (site.q_BHTK * site.scale) @ k_BHTK.flip(-2).transpose(-2, -1)
        # Added, and not filled in, since adding costs nothing on the way back.
        hidden_TT = torch.zeros(site.mask_TT.shape, device=site.mask_TT.device).masked_fill(
            ~site.mask_TT, float("-inf")
        )
        return logits_BHTT.float() + hidden_TT.flip(-1)
