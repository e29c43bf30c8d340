"""A random monotone map of distances, for encodings that draw what a distance is taken for instead of positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Shape
from algolen.encodings.selections import SharedBy, own_tokens, selected
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class DistanceOptions:
    distances: Annotated[
        int, Field(ge=2, le=1_000_000, description="distances are selected from 1 … distances − 1")
    ] = 2048
    draw: SharedBy = "batch"
    sides: Annotated[
        Literal["mirrored", "separate"],
        Field(description="keys ahead, seen by bidirectional attention only: as those behind, or a selection each"),
    ] = "mirrored"


class DrawsDistances:
    """What encodings that draw distances have in common; goes before the encoding whose distances are drawn.

    Of the n − 1 distances between n tokens, m is taken for r_m: r_1 < … < r_{n−1} are drawn without replacement from
    1 … distances − 1, and 0 stays 0. Every layer has a draw of its own. n is an example's own tokens in training and
    the tape at test.
    """

    by_place: ClassVar[bool] = True
    reads_ids: ClassVar[bool] = False
    draws_at_test: ClassVar[bool] = True
    name: ClassVar[str]
    options: DistanceOptions
    shape: Shape

    @classmethod
    def check_attention(cls, options: DistanceOptions, causal: bool) -> None:
        if causal and options.sides == "separate":
            raise Refusal(
                f"{cls.name}.sides=separate draws the distances of keys ahead, which causal attention does not see: "
                f"--set {cls.name}.sides=mirrored"
            )

    @classmethod
    def check_task(cls, options: DistanceOptions, task: Task, length: int) -> None:
        tape = task.tape_length(length)
        if tape > options.distances:
            raise Refusal(
                f"{cls.name}.distances={options.distances} is too few for {task.name} of length {length}, which has "
                f"{tape} tokens: --set {cls.name}.distances={tape}"
            )

    @classmethod
    def ceiling(cls, options: DistanceOptions) -> int | None:
        return options.distances - 1

    def draw(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        """(B, L, S, T − 1) int64: r_m − 1 for m from 1, by layer and side: behind, and ahead where it is separate."""
        tokens_B, sides = own_tokens(batch, phase), 1 if self.options.sides == "mirrored" else 2
        return selected(
            random.shared() if self.options.draw == "batch" else random,
            phase,
            None if tokens_B is None else tokens_B - 1,
            batch.tape_length - 1,
            self.options.distances - 1,
            self.shape.layers,
            sides,
        )

    def streams(self, drawn: Drawn) -> dict[str, Tensor]:
        """What distances from the first token are taken for in the first layer, behind and, where drawn, ahead."""
        behind_BST = 1 + drawn.noise[:, 0]
        return {"distances": nn.functional.pad(behind_BST, (1, 0)).transpose(1, 2)}


def by_distance(drawn_BLST: Tensor) -> Tensor:
    """(B, L, N) fp32, N = 2T − 1: what the distances T − 1 … 1, 0, −1 … 1 − T are taken for, negative ones ahead of the
    query; (1, L, N) where all examples share the draw."""
    if drawn_BLST.stride(0) == 0:
        drawn_BLST = drawn_BLST[:1]
    behind_BLT, ahead_BLT = 1 + drawn_BLST[:, :, 0], 1 + drawn_BLST[:, :, -1]
    none_BL1 = behind_BLT.new_zeros(*behind_BLT.shape[:2], 1)
    return torch.cat((behind_BLT.flip(-1), none_BL1, -ahead_BLT), dim=-1).float()


def in_pairs(values: Tensor, size: int) -> Tensor:
    """(…, T, T): what each of T = `size` queries has for its distance to each key, from values (…, T, N), or (…, 1, N)
    for all queries, for the distances from T − 1 down. Those that lie below the last one given get its value."""
    index_T = torch.arange(size, device=values.device)
    column_TT = (size - 1 - index_T[:, None] + index_T).clamp(max=values.shape[-1] - 1)
    return values.take_along_dim(column_TT.expand(*(1 for _ in values.shape[:-2]), -1, -1), dim=-1)
