"""Randomized ids: sorted distinct selections, shared as they say, and known before the answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from algolen.encodings.base import Ids, Shape
from algolen.encodings.randomized import Randomized, RandomizedOptions
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from tests import building
from tests.encodings.sites import batch_of, build
from tests.encodings.toys import TOYS

SHAPE = Shape(layers=1, width=8, heads=2)


def mapped(
    counts: Sequence[int], phase: Phase = Phase.TRAINING, groups: int = 1, extra: int = 0, **options: object
) -> Tensor:
    """(B, T): the ids of examples of so many tokens, in groups of as many."""
    width, index_B = max(counts) + extra, torch.arange(len(counts))
    batch = batch_of(torch.arange(width) < torch.tensor(counts)[:, None])
    random = Random.of("ids", examples_B=index_B, groups_B=index_B * groups // len(counts))
    plain_BTA = torch.arange(width)[None, :, None].expand(len(counts), -1, 1)
    return build(Randomized, SHAPE, **options).map_ids(plain_BTA, batch, random, phase)[..., 0]


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("draw", ["batch", "sequence"])
def test_as_many_ids_as_tokens_leave_the_sequence(phase: Phase, draw: str) -> None:
    assert torch.equal(mapped([9] * 3, phase, ids=9, draw=draw), torch.arange(9).expand(3, -1))


@pytest.mark.parametrize("phase", list(Phase))
def test_ids_are_sorted_distinct_and_in_range(phase: Phase) -> None:
    ids_BT = mapped([12] * 2000, phase, ids=40, draw="sequence")
    assert (ids_BT.diff(dim=1) > 0).all()
    assert ids_BT.min() >= 0
    assert ids_BT.max() < 40
    if phase is not Phase.EVEN:
        assert ids_BT.min() == 0
        assert ids_BT.max() == 39


def test_the_mean_of_each_place_is_that_of_order_statistics() -> None:
    count, ids = 12, 40
    mean_T = mapped([count] * 8000, ids=ids, draw="sequence").double().mean(dim=0)
    for place in range(count):
        assert float(mean_T[place]) == pytest.approx((place + 1) * (ids + 1) / (count + 1) - 1, abs=0.2)


def test_every_subset_is_as_likely_as_the_others() -> None:
    ids_BT = mapped([2] * 12000, ids=5, draw="sequence")
    times = torch.bincount(ids_BT[:, 0] * 5 + ids_BT[:, 1])
    assert int((times > 0).sum()) == 10
    assert (times[times > 0].double() / 12000 - 0.1).abs().max() < 0.012


def test_a_batch_shares_its_draw_and_sequences_have_their_own() -> None:
    assert len(mapped([6] * 40).unique(dim=0)) == 1
    assert len(mapped([6] * 40, groups=4).unique(dim=0)) == 4
    assert len(mapped([6] * 40, draw="sequence").unique(dim=0)) == 40


def test_examples_of_different_lengths_take_nested_parts_of_the_draw_of_their_batch() -> None:
    counts = [3, 11, 7, 11, 1]
    ids_BT = mapped(counts)
    rows = [set(row[:count].tolist()) for row, count in zip(ids_BT, counts, strict=True)]
    assert [len(row) for row in rows] == counts
    assert rows[4] <= rows[0] <= rows[2] <= rows[1] == rows[3]


@pytest.mark.parametrize("draw", ["batch", "sequence"])
def test_neighbours_and_padding_do_not_change_what_is_drawn_in_training(draw: str) -> None:
    together = mapped([3, 8, 5], draw=draw)
    alone = mapped([3], draw=draw, extra=20)
    assert torch.equal(together[0, :3], alone[0, :3])
    assert (alone[0, 3:] == 0).all()


def test_at_test_ids_do_not_depend_on_how_many_tokens_are_there_yet() -> None:
    for phase in (Phase.TEST, Phase.EVEN):
        whole, begun = mapped([10, 10], phase), mapped([4, 10], phase)
        assert torch.equal(whole[0, :4], begun[0, :4])


def test_even_spacing_is_in_the_middle_of_equal_parts() -> None:
    assert mapped([4], Phase.EVEN, ids=80).tolist() == [[10, 30, 50, 70]]
    assert mapped([3], Phase.EVEN, ids=7).tolist() == [[1, 3, 5]]


@pytest.mark.parametrize("phase", list(Phase))
def test_a_batch_without_padding_reads_the_same_ids_in_one_row(phase: Phase) -> None:
    batch, positions = building.batch(building.task(), [4] * 3)
    assert not batch.padded
    plain_BTA = torch.arange(batch.tape_length)[None, :, None].expand(3, -1, 1)
    encoding = build(Randomized, SHAPE)
    shared_BTA = encoding.map_ids(plain_BTA, batch, positions, phase)
    assert shared_BTA.stride(0) == 0
    assert torch.equal(shared_BTA, encoding.map_ids(plain_BTA, replace(batch, padded=True), positions, phase))


# After another map ----------------------------------------------------------------------------------------------------


def coupled(phase: Phase, draw: str = "batch", ids: int = 2048) -> tuple[Tensor, Tensor]:
    """Coupled ids without a start, and what becomes of them."""
    pe = building.expression("coupling+randomized", coupling={"ids": 20}, randomized={"draw": draw, "ids": ids})
    batch, positions = building.batch(building.task(), [4, 2, 5])
    assert batch.structure.coupled_BTA is not None
    ids_BTA = building.model(pe).encodings.map_ids(batch, positions, phase)
    return batch.structure.coupled_BTA[..., 0], ids_BTA[..., 0]


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("draw", ["batch", "sequence"])
def test_equal_ids_stay_equal_larger_ones_larger_and_0_stays_0(phase: Phase, draw: str) -> None:
    for before, after in zip(*coupled(phase, draw), strict=True):
        order = before[:, None] - before
        assert torch.equal(order.sign(), (after[:, None] - after).sign())
        assert torch.equal(before == 0, after == 0)
        assert after.max() > 20


@pytest.mark.parametrize("phase", [Phase.TEST, Phase.EVEN])
def test_as_many_ids_as_the_map_before_it_gives_leave_them(phase: Phase) -> None:
    before, after = coupled(phase, ids=21)
    assert torch.equal(before, after)


def test_a_map_before_it_says_how_many_are_drawn() -> None:
    def largest(written: str, **sections: dict[str, object]) -> int | None:
        members = building.expression(written, TOYS, **sections).members
        (own,) = (member.options for member in members if member.cls is Randomized)
        found: int | None = own.largest
        return found

    assert largest("randomized") is None
    assert largest("coupling+randomized", coupling={"ids": 33}) == 33
    assert largest("offset+randomized", offset={"ids": 33}) == 32
    assert largest("coupling+randomized", randomized={"largest": 300}) == 300
    with pytest.raises(Refusal, match="the ids of halved get is not known"):
        largest("halved+randomized+rope")


# Ranges and names -----------------------------------------------------------------------------------------------------


def test_one_id_too_few_is_refused_and_the_exact_number_is_not() -> None:
    task, length = building.task(), 6
    exact = task.tape_length(length)
    sequence = Ids(axes=1, largest=exact - 1, increasing=True)
    assert Randomized.map_range(RandomizedOptions(ids=exact), sequence, task, length).largest == exact - 1
    with pytest.raises(Refusal, match=f"randomized.ids={exact - 1} is too few.*--set randomized.ids={exact}$"):
        Randomized.map_range(RandomizedOptions(ids=exact - 1), sequence, task, length)
    after = Ids(axes=1, largest=9, increasing=False)
    assert Randomized.map_range(RandomizedOptions(ids=10, largest=9), after, task, length).largest == 9
    with pytest.raises(Refusal, match=r"randomized.ids=9 is too few.*--set randomized.ids=10$"):
        Randomized.map_range(RandomizedOptions(ids=9, largest=9), after, task, length)
    with pytest.raises(Refusal, match=r"randomized.largest=8 is too small.*--set randomized.largest=9$"):
        Randomized.map_range(RandomizedOptions(largest=8), after, task, length)
    with pytest.raises(Refusal, match="fractional"):
        Randomized.map_range(RandomizedOptions(), Ids(1, 9, True, integers=False), task, length)


def test_rope_reads_them_unless_another_is_named() -> None:
    assert building.expression("randomized").expansion == "randomized+rope"
    assert building.expression("randomized+fire").expansion == "randomized+fire"
