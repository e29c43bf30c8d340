"""Position coupling: tokens that belong together in the computation share a position id."""

from __future__ import annotations

from dataclasses import dataclass
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
class CouplingOptions:
    ids: Annotated[
        int, Field(ge=1, le=1_000_000, description="the largest id; ids run from 1, and 0 is for uncoupled tokens")
    ] = 202
    start: Annotated[
        Start,
        Field(
            description="how the start is drawn in training: uniform, as published, or clipped, which trains the ends"
        ),
    ] = "uniform"


class Coupling(Encoding):
    """Replaces position ids by the task's coupled ids, from a random start in training and from 1 at test.

    Cho et al. 2024, "Position Coupling" (arXiv 2405.20671), with a learned table unless another encoding reads the
    ids. A start is drawn for every example and every axis. Tokens outside the rule keep id 0. uniform: start from
    1 … ids − n + 1, where n ids are shared, as published; clipped: from 1 − n … ids, then clipped to that range.
    """

    name = "coupling"
    kind = "ids"
    paper = "Cho et al. 2024, arXiv 2405.20671"
    needs = frozenset({"coupled"})
    replaces_ids = True
    reader = "learned"
    Options = CouplingOptions

    @classmethod
    def map_range(cls, options: CouplingOptions, ids: Ids, task: Task, length: int) -> Ids:
        largest = task.largest_coupled_id(length)
        if largest > options.ids:
            raise Refusal(
                f"coupling.ids={options.ids} is too few for {task.name} of length {length}, which reaches id "
                f"{largest}: --set coupling.ids={largest}"
            )
        return Ids(axes=task.coupled_axes, largest=options.ids, increasing=False)

    @classmethod
    def ceiling(cls, options: CouplingOptions) -> int | None:
        return options.ids

    @classmethod
    def reveals_answer(cls, options: CouplingOptions, task: Task) -> str | None:
        return None if task.structure_is_causal else "coupled ids betray the answer's length"

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        coupled_BTA = batch.structure.coupled_BTA
        assert coupled_BTA is not None, "refused where the task couples nothing"
        if not phase.training:
            return coupled_BTA
        shift_BA = random_shift(coupled_BTA.amax(dim=1), self.options.ids, self.options.start, random)
        return (coupled_BTA + shift_BA[:, None]) * (coupled_BTA > 0)
