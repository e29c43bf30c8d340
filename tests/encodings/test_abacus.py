"""Abacus: the places of digits, the shared shift, the size of the table."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from algolen.batch import Structure
from algolen.encodings.abacus import Abacus, AbacusOptions, places
from algolen.encodings.base import Shape
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from tests import building
from tests.encodings.sites import batch_of, build, drawn

SHAPE = Shape(layers=1, width=8, heads=2)


def digits(text: str) -> Tensor:
    return torch.tensor([[symbol.isdigit() for symbol in text]])


def draw(count: int, phase: Phase, text: str = "12+345=", groups: int = 1, **options: object) -> Tensor:
    """The places of `count` copies of a text, in groups of as many."""
    digit_BT = digits(text).expand(count, -1)
    batch = batch_of(torch.ones_like(digit_BT), Structure(digit_BT=digit_BT))
    index_B = torch.arange(count)
    random = Random.of("abacus", examples_B=index_B, groups_B=index_B * groups // count)
    noise: Tensor = build(Abacus, SHAPE, **options).draw(torch.zeros(count, len(text), 1), batch, random, phase)
    return noise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12+345=", [1, 2, 0, 1, 2, 3, 0]),
        ("356+94=207$", [1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0]),
        ("^^7", [0, 0, 1]),
        ("++", [0, 0]),
        ("1234", [1, 2, 3, 4]),
    ],
)
def test_places_in_runs_of_digits(text: str, expected: list[int]) -> None:
    assert places(digits(text))[0].tolist() == expected
    assert draw(1, Phase.TEST, text)[0].tolist() == expected
    assert draw(1, Phase.EVEN, text)[0].tolist() == expected


@pytest.mark.parametrize("text", ["12+345=", "9"])
def test_all_digits_shift_together_and_nothing_else_does(text: str) -> None:
    noise_BT, plain_T = draw(300, Phase.TRAINING, text, draw="sequence", max_k=6), places(digits(text))[0]
    shift_BT = (noise_BT - plain_T)[:, plain_T > 0]
    assert (shift_BT == shift_BT[:, :1]).all()
    assert set(shift_BT[:, 0].tolist()) == set(range(7))
    assert (noise_BT[:, plain_T == 0] == 0).all()


def test_a_batch_shares_its_shift_and_sequences_have_their_own() -> None:
    assert len(set(draw(64, Phase.TRAINING)[:, 0].tolist())) == 1
    assert len(set(draw(64, Phase.TRAINING, groups=8)[:, 0].tolist())) > 4
    assert len(set(draw(64, Phase.TRAINING, draw="sequence")[:, 0].tolist())) > 20


def test_vectors_are_rows_of_the_table() -> None:
    encoding = build(Abacus, SHAPE)
    (table_ND,) = encoding.parameters()
    own = drawn([0] * 7)._replace(noise=places(digits("12+345=")))
    h_BTD = torch.randn(1, 7, 8)
    added_BTD = encoding.embed(h_BTD, own, None)
    for place, row in enumerate([1, 2, 0, 1, 2, 3, 0]):
        assert torch.equal(added_BTD[0, place], h_BTD[0, place] + table_ND[row])


def test_the_exact_table_is_accepted_and_one_row_less_refused() -> None:
    task, length, shift = building.task(), 7, 5
    exact = task.longest_number(length) + shift + 1
    Abacus.check_task(AbacusOptions(max_k=shift, table=exact), task, length)
    with pytest.raises(Refusal, match=f"abacus.table={exact - 1} is too short.*--set abacus.table={exact}$"):
        Abacus.check_task(AbacusOptions(max_k=shift, table=exact - 1), task, length)
    batch, positions = building.batch(task, [length] * 400)
    encoding = build(Abacus, SHAPE, max_k=shift, table=exact, draw="sequence")
    noise_BT = encoding.draw(torch.zeros(400, 1, 1), batch, positions, Phase.TRAINING)
    assert int(noise_BT.max()) == exact - 1


def test_runs_longer_than_the_table_read_its_last_row() -> None:
    assert draw(1, Phase.TEST, "123456", max_k=0, table=4)[0].tolist() == [1, 2, 3, 3, 3, 3]


def test_the_model_reads_the_sequence_beside_it() -> None:
    model = building.model(building.expression("abacus+fire"))
    batch, positions = building.batch(building.task(), [3] * 2)
    for own in model.draw(batch, positions, Phase.TRAINING).encodings:
        assert torch.equal(own.ids_BTA[0, :, 0], torch.arange(batch.tape_length))
