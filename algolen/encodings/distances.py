"""Distances between position ids, for encodings that read them in pairs."""

from __future__ import annotations

from torch import Tensor

from algolen.encodings.base import Ids
from algolen.errors import Refusal


def distances(ids_BTA: Tensor) -> Tensor:
    """Query id minus key id, (B, 1, T, T), positive towards the past; (1, 1, T, T) where all examples share their ids.

    Ids that no map touched are one row expanded over the batch, and then all that follows is computed once.
    """
    ids_BT = ids_BTA[..., 0]
    if ids_BT.stride(0) == 0:
        ids_BT = ids_BT[:1]
    return ids_BT[:, None, :, None] - ids_BT[:, None, None, :]


def one_axis(name: str, ids: Ids) -> None:
    """Raises Refusal for ids of several axes."""
    if ids.axes != 1:
        raise Refusal(f"{name} reads ids of one axis, these have {ids.axes}")
