"""Learned vectors: rows of the table, one table for each axis."""

from __future__ import annotations

import pytest
import torch

from algolen.encodings.base import Drawn, Ids, Shape
from algolen.encodings.learned import Learned, LearnedOptions
from algolen.errors import Refusal
from tests import building
from tests.encodings.sites import build, drawn

SHAPE = Shape(layers=1, width=6, heads=1)


def test_every_token_gets_the_row_of_its_id() -> None:
    encoding = build(Learned, SHAPE, table=10)
    (table_ND,) = encoding.parameters()
    ids, h_BTD = [[3, 0, 9], [9, 9, 1]], torch.randn(2, 3, 6)
    added_BTD = encoding.embed(h_BTD, drawn(*ids), None)
    for row in range(2):
        for place in range(3):
            assert torch.equal(added_BTD[row, place], h_BTD[row, place] + table_ND[ids[row][place]])


def test_axes_have_tables_of_their_own_whose_rows_are_summed() -> None:
    encoding = build(Learned, SHAPE, table=5, axes=2)
    first_ND, second_ND = encoding.parameters()
    assert not torch.equal(first_ND, second_ND)
    added_BTD = encoding.embed(torch.zeros(1, 2, 6), Drawn(torch.tensor([[[1, 4], [0, 2]]])), None)
    torch.testing.assert_close(added_BTD[0, 0], first_ND[1] + second_ND[4])
    torch.testing.assert_close(added_BTD[0, 1], first_ND[0] + second_ND[2])


@pytest.mark.parametrize(
    ("written", "rows"), [("learned", 512), ("coupling", 31), ("offset", 40), ("offset+randomized+learned", 90)]
)
def test_the_table_is_as_long_as_its_map_reaches(written: str, rows: int) -> None:
    sections = {"coupling": {"ids": 30}, "offset": {"ids": 40}, "randomized": {"ids": 90}}
    model = building.model(building.expression(written, **sections))  # type: ignore[arg-type]
    (table_ND,) = model.encodings.parameters()
    assert len(table_ND) == rows


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (
            Ids(axes=1, largest=20, increasing=True),
            r"learned.table=20 ends at id 19, .* id 20: --set learned.table=21$",
        ),
        (Ids(axes=2, largest=3, increasing=False), r"the ids have 2: --set learned.axes=2$"),
        (Ids(axes=1, largest=3, increasing=True, integers=False), "cannot read fractional ones"),
    ],
)
def test_ids_that_it_cannot_read_are_refused(ids: Ids, says: str) -> None:
    Learned.accept(LearnedOptions(table=20), Ids(axes=1, largest=19, increasing=False), building.task(), 6)
    with pytest.raises(Refusal, match=says):
        Learned.accept(LearnedOptions(table=20), ids, building.task(), 6)
