"""Which examples a step trains on."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from algolen.config import TrainConfig
from algolen.errors import UserError
from algolen.training.data import TrainingData
from tests import building


def data(lengths: range = range(1, 5), seed: int = 0, **fields: object) -> TrainingData:
    config: TrainConfig = building.train_config(**{"batch": 8, "steps": 20, **fields})
    return TrainingData(building.task(), lengths, config, seed, building.CPU)


def tapes(made: TrainingData, step: int) -> list[tuple[int, ...]]:
    """The examples of a step, as tuples without padding."""
    return [
        tuple(tokens[valid].tolist())
        for micro in made.micro_batches(step)
        for tokens, valid in zip(micro.batch.tokens_BT, micro.batch.valid_BT, strict=True)
    ]


def test_a_step_is_a_function_of_seed_and_step_in_any_order() -> None:
    forwards, backwards = data(), data()
    seen = [tapes(forwards, step) for step in range(6)]
    assert seen == [tapes(backwards, step) for step in reversed(range(6))][::-1]
    assert seen != [tapes(data(seed=1), step) for step in range(6)]


@pytest.mark.parametrize("fields", [{}, {"lengths_in_batch": "mixed"}, {"examples": 64}], ids=str)
@pytest.mark.parametrize("accumulate", [2, 8])
def test_accumulation_cuts_the_batch_and_its_draws_and_changes_neither(
    fields: dict[str, object], accumulate: int
) -> None:
    whole, cut = data(**fields), data(accumulate=accumulate, **fields)
    for step in range(5):
        assert len(cut.micro_batches(step)) == accumulate
        assert tapes(whole, step) == tapes(cut, step)
        positions = torch.cat([micro.positions.bits(3) for micro in cut.micro_batches(step)])
        assert torch.equal(positions, whole.micro_batches(step)[0].positions.bits(3))


def test_one_length_a_batch_visits_every_length_equally_often() -> None:
    made = data(batch=1)
    seen = Counter(int(made.micro_batches(step)[0].batch.size_BA) for step in range(1200))
    assert set(seen) == {1, 2, 3, 4}
    assert max(abs(count - 300) for count in seen.values()) < 60  # four standard deviations


def test_mixed_lengths_differ_within_a_batch_and_come_equally_often() -> None:
    made = data(lengths_in_batch="mixed", batch=400)
    sizes = made.micro_batches(0)[0].batch.size_BA[:, 0]
    assert max(abs(count - 100) for count in torch.bincount(sizes, minlength=5)[1:].tolist()) < 35


def test_fresh_examples_hardly_ever_repeat() -> None:
    made = data(lengths=range(12, 13))
    seen = [tape for step in range(50) for tape in tapes(made, step)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("mode", ["one", "mixed"])
def test_an_epoch_shows_every_example_of_a_fixed_set_once(mode: str) -> None:
    made = data(lengths=range(9, 13), lengths_in_batch=mode, examples=64, epochs=3)
    assert made.steps == 24
    epochs = [
        [tape for step in range(start, start + 8) for tape in tapes(made, step)] for start in range(0, made.steps, 8)
    ]
    assert all(len(set(epoch)) == 64 for epoch in epochs)
    assert set(epochs[0]) == set(epochs[1]) == set(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]


def test_an_example_that_comes_round_again_gets_a_new_start() -> None:
    made = data(lengths=range(9, 10), examples=8, epochs=2)
    starts = [made.micro_batches(step)[0].positions.integers(0, 10**6).tolist() for step in (0, 1)]
    assert not set(starts[0]) & set(starts[1])


def test_one_length_a_batch_holds_for_a_fixed_set() -> None:
    made = data(examples=80)
    for step in range(made.steps_an_epoch):
        assert len(made.micro_batches(step)[0].batch.size_BA.unique()) == 1


def test_a_fixed_set_that_cannot_fill_a_batch_of_one_length_is_refused_with_the_size_that_can() -> None:
    with pytest.raises(UserError, match=r"gives 5 examples a length.*use at least 32"):
        data(examples=20)
    assert data(examples=32).steps_an_epoch == 4


def test_lengths_examples_and_positions_are_draws_of_their_own() -> None:
    sizes = {
        seed: [int(data(seed=seed).micro_batches(step)[0].batch.size_BA[0]) for step in range(30)] for seed in (0, 1)
    }
    assert sizes[0] != sizes[1]
    (micro,) = data(lengths=range(9, 10)).micro_batches(0)
    content = TrainingData(building.task(), [9], building.train_config(batch=8), 0, building.CPU)
    digits = content.task.sample(torch.full((8,), 9), micro.positions).tokens_BT
    assert not torch.equal(digits, micro.batch.tokens_BT)


def test_what_a_batch_shares_changes_from_step_to_step() -> None:
    made = data()
    shared = [int(made.micro_batches(step)[0].positions.shared().integers(0, 2**30)[0]) for step in range(5)]
    assert len(set(shared)) == 5


def test_a_cut_batch_keeps_the_width_of_the_whole() -> None:
    cut = data(lengths_in_batch="mixed", accumulate=4)
    assert len({micro.batch.tape_length for micro in cut.micro_batches(0)}) == 1
