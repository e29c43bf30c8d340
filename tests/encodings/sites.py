"""One attention layer's inputs, for tests that call hooks by themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.encodings.base import Drawn, Encoding, Shape, Site
from algolen.initialisation import Initialiser


def build(cls: type[Encoding], shape: Shape, **fields: object) -> Encoding:
    """An encoding with these options."""
    return cls(cls.Options(**fields), shape, Initialiser(0))


def drawn(*rows: list[int]) -> Drawn:
    """Streams of ids of one axis; one row is what all examples share."""
    return Drawn(torch.tensor(rows)[..., None])


def batch_of(valid_BT: Tensor, structure: Structure | None = None) -> Batch:
    """A batch of which only the shape, the padding and the structure matter."""
    zero_BT, none_BT = torch.zeros_like(valid_BT, dtype=torch.int64), torch.zeros_like(valid_BT)
    return Batch(
        tokens_BT=zero_BT,
        targets_BT=zero_BT,
        trained_BT=none_BT,
        scored_BT=none_BT,
        unit_BT=zero_BT - 1,
        stratum_BT=zero_BT,
        valid_BT=valid_BT,
        size_BA=torch.ones(len(valid_BT), 1, dtype=torch.int64),
        structure=structure or Structure(),
        padded=True,
    )


def full(rows: int, size: int) -> Batch:
    """A batch without padding."""
    return batch_of(torch.ones(rows, size, dtype=torch.bool))


def site(own: Drawn, encoding: Encoding, causal: bool = True, layer: int = 0, scale: float = 1.0) -> Site:
    """Where the attention hooks of `encoding` are called, with random queries and keys."""
    rows, size, _ = own.ids_BTA.shape
    shape = encoding.shape
    generator = torch.Generator().manual_seed(1)
    q_BHTK, k_BHTK = torch.randn(2, rows, shape.attention_heads, size, shape.head_width, generator=generator)
    x_BTD = torch.randn(rows, size, shape.width, generator=generator)
    mask_TT = torch.ones(size, size, dtype=torch.bool)
    return Site(
        x_BTD=x_BTD,
        ids_BTA=own.ids_BTA,
        mask_TT=mask_TT.tril() if causal else mask_TT,
        causal=causal,
        ctx=encoding.prepare(full(rows, size), own),
        layer=layer,
        scale=scale,
        q_BHTK=q_BHTK,
        k_BHTK=k_BHTK,
    )
