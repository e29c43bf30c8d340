"""A learned vector for every position id, added to the token embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor, nn

from algolen.encodings.base import Drawn, Encoding, Ids, Shape
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.task import Task

ROWS_WITHOUT_A_MAP = 512


@dataclass(frozen=True)
class LearnedOptions:
    table: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description="rows of the table; none: as many as its id map can reach, 512 without a map",
        ),
    ] = None
    axes: Annotated[int, Field(ge=1, le=4, description="axes of the ids; each has a table, their rows are summed")] = 1
    std: Annotated[float, Field(gt=0, description="standard deviation of the rows before training")] = 0.02


class Learned(Encoding):
    """Absolute learned position embeddings: row `ids` of a table is added to each token's embedding.

    Gehring et al. 2017 (arXiv 1705.03122), Radford et al. 2018 (GPT). A row that training never reads stays at its
    initial values, which is why maps draw random starts.
    """

    name = "learned"
    kind = "embedding"
    paper = "Gehring et al. 2017, arXiv 1705.03122; Radford et al. 2018"
    reads_ids = True
    Options = LearnedOptions

    def __init__(self, options: LearnedOptions, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        assert options.table is not None, "resolve() fills it in"
        self.tables = nn.ParameterList(
            init.normal(f"table{axis}", options.table, shape.width, std=options.std) for axis in range(options.axes)
        )

    @classmethod
    def resolve(cls, options: LearnedOptions, maps: tuple[tuple[type[Encoding], Any], ...]) -> LearnedOptions:
        if options.table is not None:
            return options
        ceilings = [ceiling for kind, own in maps if (ceiling := kind.ceiling(own)) is not None]
        return replace(options, table=ceilings[-1] + 1 if ceilings else ROWS_WITHOUT_A_MAP)

    @classmethod
    def ceiling(cls, options: LearnedOptions) -> int | None:
        return None if options.table is None else options.table - 1

    @classmethod
    def accept(cls, options: LearnedOptions, ids: Ids, task: Task, length: int) -> None:
        if ids.axes != options.axes:
            raise Refusal(f"learned.axes={options.axes}, but the ids have {ids.axes}: --set learned.axes={ids.axes}")
        if not ids.integers:
            raise Refusal("learned looks ids up in a table and cannot read fractional ones")
        assert options.table is not None
        if ids.largest >= options.table:
            raise Refusal(
                f"learned.table={options.table} ends at id {options.table - 1}, but {task.name} of length {length} "
                f"reaches id {ids.largest}: --set learned.table={ids.largest + 1}"
            )

    def embed(self, h_BTD: Tensor, drawn: Drawn, ctx: Any) -> Tensor:
        for axis, table_ND in enumerate(self.tables):
            h_BTD = h_BTD + nn.functional.embedding(drawn.ids_BTA[..., axis], table_ND)
        return h_BTD
