"""Transformer-XL's relative positions: sinusoids of distances, projected, and two learned biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.encodings.distances import one_axis
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.task import Task


@dataclass(frozen=True)
class TransformerXLOptions:
    base: Annotated[float, Field(gt=1, description="wavelengths run from 2π to 2π·base")] = 10_000.0
    std: Annotated[float, Field(gt=0, description="standard deviation of u and v before training")] = 0.02


class TransformerXL(Encoding):
    """Adds u·k + (q + v)·W R(i − j) to q·k before it is scaled: R a sinusoid of the distance, W, u and v learned for
    each layer and head.

    Dai et al. 2019 (arXiv 1901.02860), section 3.3. R(i − j) is never built for pairs: its sines and cosines are
    products of those of i and of j, so that (q + v)·W R(i − j) is a product of a turned query with the sinusoid of j.
    That is exact for ids of any kind, signs included.
    """

    name = "transformer-xl"
    kind = "bias"
    paper = "Dai et al. 2019, arXiv 1901.02860"
    reads_ids = True
    Options: ClassVar[type] = TransformerXLOptions

    def __init__(self, options: TransformerXLOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        heads, layers, inner = shape.attention_heads, shape.layers, shape.head_width
        self.u_LHK = init.normal("u", layers, heads, inner, std=options.std)
        self.v_LHK = init.normal("v", layers, heads, inner, std=options.std)
        self.project_LHKD = init.normal("project", layers, heads, inner, shape.width, std=shape.width**-0.5)

    @classmethod
    def check_shape(cls, options: TransformerXLOptions, shape: Shape) -> None:
        if shape.width % 2:
            raise Refusal(f"{cls.name} needs as many sines as cosines; model.width={shape.width} is odd")

    @classmethod
    def accept(cls, options: TransformerXLOptions, ids: Ids, task: Task, length: int) -> None:
        one_axis(cls.name, ids)

    def prepare(self, batch: Batch, drawn: Drawn) -> Any:
        """The sines and the cosines of the ids."""
        ids_BT1 = drawn.ids_BTA.float()
        if drawn.ids_BTA.stride(0) == 0:
            ids_BT1 = ids_BT1[:1]
        return self.waves(ids_BT1)

    def bias(self, site: Site) -> Tensor:
        assert site.q_BHTK is not None
        assert site.k_BHTK is not None
        # In fp32, whatever autocast does: the sines and cosines of i and j have to cancel.
        with torch.autocast(site.q_BHTK.device.type, enabled=False):
            content_BH1T = self.u_LHK[site.layer, :, None] @ site.k_BHTK.float().transpose(-2, -1)
            query_BHTK = site.q_BHTK.float() + self.v_LHK[site.layer, :, None]
            bias_BHTT: Tensor = (content_BH1T + self.position(query_BHTK, site)) * site.scale
        return bias_BHTT

    def position(self, query_BHTK: Tensor, site: Site) -> Tensor:
        """(B, H, T, T): (q + v)·W R(i − j), of q + v."""
        sin_B1TF, cos_B1TF = (wave_BTF[:, None] for wave_BTF in site.ctx)
        of_sin_BHTF, of_cos_BHTF = (query_BHTK @ self.project_LHKD[site.layer]).chunk(2, dim=-1)
        # sin(i − j) = sin i · cos j − cos i · sin j, cos(i − j) = cos i · cos j + sin i · sin j
        on_cos_BHTF = of_sin_BHTF * sin_B1TF + of_cos_BHTF * cos_B1TF
        on_sin_BHTF = of_cos_BHTF * sin_B1TF - of_sin_BHTF * cos_B1TF
        position_BHTT: Tensor = on_cos_BHTF @ cos_B1TF.transpose(-2, -1) + on_sin_BHTF @ sin_B1TF.transpose(-2, -1)
        return position_BHTT

    def waves(self, positions_BT1: Tensor) -> tuple[Tensor, Tensor]:
        """The sines and the cosines of positions, (B, T, D / 2) each."""
        half = self.shape.width // 2
        angle_BTF = positions_BT1 * self.options.base ** (-torch.arange(half, device=positions_BT1.device) / half)
        return angle_BTF.sin(), angle_BTF.cos()
