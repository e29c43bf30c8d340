"""The maps of position ids: within bounds wherever they start, and spread over the table as they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.encodings.base import Encoding, Ids, Shape
from algolen.encodings.coupling import Coupling, CouplingOptions
from algolen.encodings.offset import Offset, OffsetOptions
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.phase import Phase
from algolen.random import Random
from algolen.tasks.addition import Addition
from tests import building
from tests.encodings.sites import batch_of

MAPS: dict[str, tuple[type[Encoding], type]] = {
    "offset": (Offset, OffsetOptions),
    "coupling": (Coupling, CouplingOptions),
}
STARTS = ("uniform", "clipped")

every_map = pytest.mark.parametrize("name", MAPS)
every_start = pytest.mark.parametrize("start", STARTS)


def build(name: str, ids: int, start: str = "uniform") -> Encoding:
    cls, own = MAPS[name]
    return cls(own(ids=ids, start=start), Shape(layers=1, width=8, heads=1), Initialiser(0))


def draws(count: int, seed: int = 0, first: int = 0) -> Random:
    return Random.of(seed, "positions", examples_B=torch.arange(first, first + count))


def coupled(coupled_BTA: Tensor, valid_BT: Tensor) -> Batch:
    """A batch of which only the ids matter."""
    return batch_of(valid_BT, Structure(coupled_BTA=coupled_BTA * valid_BT[..., None]))


def ragged(counts: Sequence[int], extra: int = 0) -> Batch:
    """For each count n a tape of n tokens whose coupled ids are 0, 1 … n − 1, padded on the right."""
    width = max(counts) + extra
    valid_BT = torch.arange(width) < torch.tensor(counts)[:, None]
    return coupled(torch.arange(width)[None, :, None].expand(len(counts), -1, 1), valid_BT)


def mapped(encoding: Encoding, batch: Batch, random: Random, phase: Phase = Phase.TRAINING) -> Tensor:
    sequence_BTA = torch.arange(batch.tape_length)[None, :, None].expand(len(batch), -1, 1)
    return encoding.map_ids(sequence_BTA, batch, random, phase)


def shared(name: str, tokens: int) -> int:
    """How many consecutive ids a tape of `ragged` takes: coupling leaves the first token out."""
    return tokens if name == "offset" else tokens - 1


def lowest(name: str) -> int:
    return 0 if name == "offset" else 1


def shifts(name: str, ids: int, tokens: int, start: str, count: int = 8000) -> Tensor:
    """The shift of each of many examples."""
    return mapped(build(name, ids, start), ragged([tokens] * count), draws(count))[:, 1, 0] - 1


def p_value(values: Tensor, probabilities: Sequence[float]) -> float:
    """Chi-square of integers from 0 against their probabilities."""
    assert values.min() >= 0
    assert values.max() < len(probabilities)
    expected = torch.tensor(probabilities, dtype=torch.float64) * len(values)
    statistic = ((torch.bincount(values, minlength=len(probabilities)) - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((len(probabilities) - 1) / 2).double(), statistic / 2))


# Bounds ---------------------------------------------------------------------------------------------------------------


@every_map
@every_start
@given(st.lists(st.integers(2, 40), min_size=1, max_size=8), st.integers(0, 60), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_ids_stay_within_the_table_and_keep_their_distances(
    name: str, start: str, counts: list[int], room: int, seed: int
) -> None:
    ids = shared(name, max(counts)) + room
    batch = ragged(counts)
    ids_BT = mapped(build(name, ids, start), batch, draws(len(counts), seed))[..., 0]
    for row, count in zip(ids_BT, counts, strict=True):
        taken = row[lowest(name) : count]
        assert taken.min() >= lowest(name)
        assert taken.max() <= ids - 1 + lowest(name)
        assert (taken.diff() == 1).all()


@every_map
@every_start
def test_uncoupled_tokens_and_padding_keep_id_0(name: str, start: str) -> None:
    batch = ragged([3, 7, 5], extra=4)
    ids_BT = mapped(build(name, 50, start), batch, draws(3))[..., 0]
    assert (ids_BT[~batch.valid_BT] == 0).all()
    if name == "coupling":
        assert (ids_BT[:, 0] == 0).all()


@every_map
@every_start
def test_tests_start_at_the_first_id(name: str, start: str) -> None:
    batch = ragged([9, 4])
    ids_BT = mapped(build(name, 50, start), batch, draws(2), Phase.TEST)[..., 0]
    assert torch.equal(ids_BT, torch.arange(9) * batch.valid_BT)


@every_map
@every_start
def test_a_table_without_room_leaves_the_first_start(name: str, start: str) -> None:
    assert (shifts(name, shared(name, 6), 6, start, count=200) == 0).all()


@every_start
def test_examples_without_coupled_tokens_keep_id_0(start: str) -> None:
    batch = coupled(torch.zeros(5, 6, 1, dtype=torch.int64), torch.ones(5, 6, dtype=torch.bool))
    assert (mapped(build("coupling", 9, start), batch, draws(5)) == 0).all()


# Spread ---------------------------------------------------------------------------------------------------------------


@every_map
def test_uniform_starts_are_uniform_from_the_first_to_the_last(name: str) -> None:
    count, room = shared(name, 6), 12
    drawn = shifts(name, room, 6, "uniform")
    assert set(drawn.tolist()) == set(range(room - count + 1))
    assert p_value(drawn, [1 / (room - count + 1)] * (room - count + 1)) > 1e-4


@every_map
def test_clipped_starts_give_both_ends_the_share_of_what_is_clipped(name: str) -> None:
    count, room = shared(name, 6), 12
    inner = [1.0] * (room - count - 1)
    weights = [count + 1.0, *inner, float(count)]
    assert sum(weights) == room + count
    drawn = shifts(name, room, 6, "clipped")
    assert p_value(drawn, [weight / (room + count) for weight in weights]) > 1e-4


@every_map
def test_clipped_starts_train_every_id_of_the_table_where_uniform_ones_neglect_the_ends(name: str) -> None:
    count, room = shared(name, 6), 60
    for start, least in (("clipped", count / (room + count)), ("uniform", 1 / (room - count + 1))):
        ids_BT = mapped(build(name, room, start), ragged([6] * 8000), draws(8000))[..., 0]
        for end in (lowest(name), room - 1 + lowest(name)):
            share = float((ids_BT[:, lowest(name) :] == end).any(dim=1).double().mean())
            assert share == pytest.approx(least, rel=0.35)


# Independence ---------------------------------------------------------------------------------------------------------


@every_map
@every_start
def test_padding_does_not_change_what_is_drawn(name: str, start: str) -> None:
    counts = [3, 8, 5, 5]
    encoding = build(name, 40, start)
    narrow = mapped(encoding, ragged(counts), draws(4))
    wide = mapped(encoding, ragged(counts, extra=9), draws(4))
    assert torch.equal(wide[:, :8], narrow)
    assert (wide[:, 8:] == 0).all()


@every_map
@every_start
def test_every_example_draws_its_own_start_whoever_its_neighbours_are(name: str, start: str) -> None:
    encoding, counts = build(name, 500, start), [5, 9, 7, 6, 5, 5, 8, 9]
    whole = mapped(encoding, ragged(counts), draws(8))
    part = mapped(encoding, ragged(counts[2:5], extra=2), draws(3, first=2))
    assert torch.equal(part, whole[2:5])
    assert len(set((whole[:, 1, 0] - 1).tolist())) > 4


@every_start
def test_axes_draw_starts_of_their_own(start: str) -> None:
    tape_T = torch.arange(5)
    coupled_BTA = torch.stack([tape_T, 2 * tape_T], dim=-1).expand(3000, -1, -1)
    batch = coupled(coupled_BTA, torch.ones(3000, 5, dtype=torch.bool))
    shift_BA = mapped(build("coupling", 40, start), batch, draws(3000))[:, 1] - torch.tensor([1, 2])
    assert int(shift_BA[:, 0].max()) == 36
    assert int(shift_BA[:, 1].max()) == 32
    assert abs(float(torch.corrcoef(shift_BA.T.double())[0, 1])) < 0.08


@every_map
def test_offset_shifts_the_ids_it_is_given(name: str) -> None:
    """A map after another sees that one's ids; coupling replaces them, offset adds to them."""
    batch = ragged([5, 5])
    given_BTA = (3 * torch.arange(5))[None, :, None].expand(2, -1, 1)
    steps = build(name, 100).map_ids(given_BTA, batch, draws(2), Phase.TRAINING)[:, 1:, 0].diff(dim=1)
    assert (steps == (3 if name == "offset" else 1)).all()


# Ranges, before anything is drawn -------------------------------------------------------------------------------------


def take(name: str, ids: int, task: Addition, length: int) -> Ids:
    cls, own = MAPS[name]
    sequence = Ids(axes=1, largest=task.tape_length(length) - 1, increasing=True)
    return cls.map_range(own(ids=ids), sequence, task, length)


@every_map
@pytest.mark.parametrize("chosen", [{}, {"reverse_answer": False}, {"operands": 3}, {"id_direction": "most"}])
def test_one_id_too_few_is_refused_and_the_exact_number_is_not(name: str, chosen: dict[str, Any]) -> None:
    task, length = Addition(**chosen), 7
    exact = task.tape_length(length) if name == "offset" else task.largest_coupled_id(length)
    assert take(name, exact, task, length).largest == exact - 1 + lowest(name)
    with pytest.raises(Refusal, match=rf"{name}.ids={exact - 1} is too few.*--set {name}.ids={exact}$"):
        take(name, exact - 1, task, length)


@every_map
@pytest.mark.parametrize("padded", [True, False])
def test_the_largest_id_that_is_announced_is_reached_and_not_exceeded(name: str, padded: bool) -> None:
    task, length = Addition(padded=padded), 3
    ids = (task.tape_length(length) if name == "offset" else task.largest_coupled_id(length)) + 3
    batch = task.sample(torch.full((500,), length), draws(500, seed=9))
    ids_BTA = mapped(build(name, ids), batch, draws(500))
    assert int(ids_BTA.max()) == take(name, ids, task, length).largest


@pytest.mark.parametrize(
    ("chosen", "latest"),
    [({}, 15), ({"reverse_answer": False}, 14), ({"operands": 4}, 15), ({"id_direction": "most"}, 15)],
)
def test_addition_starts_over_the_published_range(chosen: dict[str, Any], latest: int) -> None:
    """With P ids and an answer of L + 1 digits: 1 … P − L − 1, one less for a plain answer; here P = 20 and L = 4. The
    largest start puts the largest id exactly at P."""
    task, ids, length = Addition(**chosen), 20, 4
    batch = task.sample(torch.full((4000,), length), draws(4000, seed=3))
    assert batch.structure.coupled_BTA is not None
    ids_BTA = mapped(build("coupling", ids), batch, draws(4000))
    starts = (ids_BTA - batch.structure.coupled_BTA)[:, 1, 0] + 1
    assert set(starts.tolist()) == set(range(1, latest + 1))
    assert p_value(starts - 1, [1 / latest] * latest) > 1e-4
    largest = ids_BTA[starts == latest].amax(dim=(1, 2))
    assert (largest == ids).all()


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("length", [1, 4])
def test_copy_and_reverse_start_over_the_published_range(task: str, length: int) -> None:
    """1 … P − n for n symbols."""
    ids, batch = 12, building.task(task).sample(torch.full((3000,), length), draws(3000, seed=3))
    assert batch.structure.coupled_BTA is not None
    ids_BTA = mapped(build("coupling", ids), batch, draws(3000))
    starts = (ids_BTA - batch.structure.coupled_BTA)[:, 1, 0] + 1
    assert set(starts.tolist()) == set(range(1, ids - length + 1))
    assert p_value(starts - 1, [1 / (ids - length)] * (ids - length)) > 1e-4
    assert int(ids_BTA.max()) == ids


# Readers of distances -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["rope", "alibi", "t5", "shaw", "transformer-xl"])
def test_a_random_start_does_not_change_encodings_that_read_distances(reader: str) -> None:
    plain, shifted = (building.model(building.expression(written)) for written in (reader, f"offset+{reader}"))
    batch, positions = building.batch(building.task(), [5, 3, 5])
    plain_BTV, shifted_BTV = (
        model(batch, model.draw(batch, positions, Phase.TRAINING))[batch.valid_BT] for model in (plain, shifted)
    )
    torch.testing.assert_close(plain_BTV, shifted_BTV, atol=1e-3, rtol=1e-3)
