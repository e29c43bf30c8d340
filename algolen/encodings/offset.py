"""Position ids from a random start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Encoding, Ids
from algolen.encodings.starts import Start, random_shift
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class OffsetOptions:
    ids: Annotated[int, Field(ge=1, le=1_000_000, description="how many ids there are, 0 to ids − 1")] = 512
    start: Annotated[Start, Field(description="how the start is drawn in training; see `coupling`")] = "uniform"


class Offset(Encoding):
    """Shifts an example's ids by one random number in training and leaves them alone at test.

    With a learned table this is the baseline of Cho et al. 2024 (arXiv 2405.20671), absolute positions from a random
    start: every row up to the longest test is trained. Encodings that read distances are not changed by it.
    """

    name = "offset"
    kind = "ids"
    paper = "Cho et al. 2024, arXiv 2405.20671 (its baseline of absolute positions from a random start)"
    reader = "learned"
    Options = OffsetOptions

    @classmethod
    def map_range(cls, options: OffsetOptions, ids: Ids, task: Task, length: int) -> Ids:
        if not ids.increasing:
            raise Refusal("offset would shift ids that have a random start of their own; leave it out")
        if ids.largest >= options.ids:
            raise Refusal(
                f"offset.ids={options.ids} is too few for {task.name} of length {length}, which takes "
                f"{ids.largest + 1}: --set offset.ids={ids.largest + 1}"
            )
        return replace(ids, largest=options.ids - 1)

    @classmethod
    def ceiling(cls, options: OffsetOptions) -> int | None:
        return options.ids - 1

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        ids_BTA = ids_BTA * batch.valid_BT[..., None]
        if not phase.training:
            return ids_BTA
        count_BA = ids_BTA.amax(dim=1) + 1
        shift_BA = random_shift(count_BA, self.options.ids, self.options.start, random)
        return (ids_BTA + shift_BA[:, None]) * batch.valid_BT[..., None]
