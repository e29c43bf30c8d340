"""Random starts: a shift of all of an example's ids in training, none at test."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from algolen.random import Random

Start = Literal["uniform", "clipped"]


def random_shift(count_BA: Tensor, room: int, start: Start, random: Random) -> Tensor:
    """How far to shift each example's `count_BA` consecutive ids within `room` places; (B, A), from 0 to room − count.

    uniform: every shift is as likely as the others, so the first and last ids of the range are rarely drawn: only the
    extreme shifts reach them. clipped: drawn from −count … room − 1 and then clipped to the valid range, so that both
    ends of the table, shift 0 among them, get about count / (room + count) of the draws each.
    """
    axes = count_BA.shape[1]
    last_BA = room - count_BA
    if start == "uniform":
        return random.integers(0, last_BA + 1, axes)
    return random.integers(-count_BA, room, axes).clamp(min=0).minimum(last_BA)
