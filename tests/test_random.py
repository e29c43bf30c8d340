"""Draws: their bits, their distributions, and their independence of anything but their own counters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from algolen.random import Random, key

DEVICES = ["cpu"] + [
    name for name, there in (("cuda", torch.cuda.is_available()), ("mps", torch.mps.is_available())) if there
]
WORD = 2**64
KEYS = st.integers(-(2**63), 2**63 - 1)


def of_keys(keys: Sequence[int]) -> Random:
    keys_B = torch.tensor(keys, dtype=torch.int64)
    return Random.from_keys(keys_B, keys_B)


def of_examples(count: int, *parts: int | str, device: str = "cpu") -> Random:
    return Random.of(*parts, examples_B=torch.arange(count, device=device))


def unsigned(bits: Tensor) -> list[int]:
    return [word % WORD for word in bits.flatten().tolist()]


def key_of(word: int) -> int:
    """The key whose first 64 bits are `word`: splitmix64 backwards."""

    def unshift(value: int, count: int) -> int:
        found = value
        for _ in range(64 // count + 1):
            found = value ^ (found >> count)
        return found

    word = unshift(word, 31) * pow(0x94D049BB133111EB, -1, WORD) % WORD
    word = unshift(word, 27) * pow(0xBF58476D1CE4E5B9, -1, WORD) % WORD
    word = (unshift(word, 30) - 0x9E3779B97F4A7C15) % WORD
    return word - WORD if word >= 2**63 else word


EXTREMES = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, WORD - 2**32, WORD - 2, WORD - 1]


def p_value(values: Tensor, probabilities: Sequence[float]) -> float:
    """Chi-square of integers from 0 against their probabilities."""
    assert values.min() >= 0
    assert values.max() < len(probabilities)
    if len(probabilities) == 1:
        return 1.0
    seen = torch.bincount(values.flatten(), minlength=len(probabilities)).double()
    expected = torch.tensor(probabilities, dtype=torch.float64) * values.numel()
    statistic = ((seen - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((len(probabilities) - 1) / 2).double(), statistic / 2))


def kolmogorov(values: Tensor, distribution: Callable[[Tensor], Tensor]) -> float:
    """The largest distance of the empirical distribution from the true one, in units of 1 / √n."""
    ordered = distribution(values.flatten().double().sort().values)
    steps = torch.arange(len(ordered) + 1) / len(ordered)
    return float(torch.maximum(steps[1:] - ordered, ordered - steps[:-1]).max()) * math.sqrt(len(ordered))


def correlation(one: Tensor, other: Tensor) -> float:
    """Pearson's, in units of its standard deviation for independent draws."""
    pairs = torch.stack([one.flatten(), other.flatten()]).double()
    return float(torch.corrcoef(pairs)[0, 1].abs()) * math.sqrt(pairs.shape[1])


# The stream -----------------------------------------------------------------------------------------------------------


def test_bits_are_splitmix64_as_published() -> None:
    assert unsigned(of_keys([1234567]).bits(5)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


GOLDEN_KEY = 3976372312288891397
GOLDEN_EXAMPLES = [8679303163799765841, 8958043978022069758, 6793667834239689987]
GOLDEN_GROUPS = [-5170758122175919085, -5170758122175919085, -5589141645306819096]
GOLDEN_INTEGERS = [[3, 5, 1, 1, 0, 1, 5, 4], [6, 2, 1, 8, 0, 5, 3, 4], [4, 8, 2, 2, 7, 9, 7, 1]]
GOLDEN_SHARED = [[3, 6, 0, 5, 7, 5, 5, 7], [3, 6, 0, 5, 7, 5, 5, 7], [8, 8, 2, 3, 8, 1, 0, 3]]
GOLDEN_PERMUTATIONS = [[1, 4, 2, 3, 5, 0], [5, 0, 3, 4, 2, 1], [4, 1, 5, 3, 2, 0]]
GOLDEN_NORMALS = [[-0.3614022, 0.2071553], [0.3884217, -0.7189712], [-0.1312047, 1.0506576]]


def test_the_stream_is_the_one_that_stored_results_were_drawn_from() -> None:
    random = Random.of(7, "data", 3, examples_B=torch.tensor([0, 1, 1000]), groups_B=torch.tensor([0, 0, 5]))
    assert key(7, "data", 3) == GOLDEN_KEY
    assert random.example_B.tolist() == GOLDEN_EXAMPLES
    assert random.group_B.tolist() == GOLDEN_GROUPS
    child = random.fold("digits").fold(2)
    assert child.integers(0, 10, 8).tolist() == GOLDEN_INTEGERS
    assert child.shared().integers(0, 10, 8).tolist() == GOLDEN_SHARED
    assert child.permutation(6).tolist() == GOLDEN_PERMUTATIONS
    assert child.selection(4, 6).tolist() == [row[:4] for row in GOLDEN_PERMUTATIONS]
    torch.testing.assert_close(child.normal(2), torch.tensor(GOLDEN_NORMALS))


def test_keys_tell_texts_from_numbers_and_parts_from_their_concatenation() -> None:
    named = [key(1), key("1"), key(1, 1), key(11), key("1/1"), key("1", "1"), key("int:1/int:1"), key(-1), key()]
    assert len(set(named)) == len(named)
    assert key(3, "data") == key(3, "data")


@pytest.mark.parametrize("device", DEVICES)
def test_draws_are_equal_on_every_device(device: str) -> None:
    here, there = of_examples(257, 5, "x"), of_examples(257, 5, "x", device=device)
    for draw in DRAWS.values():
        drawn = draw(there.fold("name"))
        assert drawn.device.type == device
        assert torch.equal(drawn.cpu(), draw(here.fold("name")))


DRAWS: dict[str, Callable[[Random], Tensor]] = {
    "bits": lambda random: random.bits(3, 4),
    "integers": lambda random: random.integers(-5, 9, 7),
    "uniform": lambda random: random.uniform(5),
    "bernoulli": lambda random: random.bernoulli(0.3, 5),
    "choice": lambda random: random.choice([1, 2, 3], 5),
    "permutation": lambda random: random.permutation(9),
    "selection": lambda random: random.selection(4, 9, 2),
    "subset": lambda random: random.subset(4, 9, 2),
}


# Independence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DRAWS, "normal"])
def test_draws_do_not_depend_on_how_a_batch_is_split(name: str) -> None:
    draw = DRAWS.get(name, lambda random: random.normal(3))
    whole = draw(of_examples(64, 1, "x").fold("a"))
    for low, high in ((0, 1), (1, 17), (17, 64)):
        part = Random.of(1, "x", examples_B=torch.arange(low, high)).fold("a")
        assert torch.equal(draw(part), whole[low:high])


@pytest.mark.parametrize("name", [*DRAWS, "normal"])
def test_keys_of_several_runs_draw_together_what_each_draws_alone(name: str) -> None:
    draw = DRAWS.get(name, lambda random: random.normal(3))
    runs = [of_examples(8, seed, "data") for seed in range(4)]
    stacked = Random.from_keys(torch.cat([run.example_B for run in runs]), torch.cat([run.group_B for run in runs]))
    assert torch.equal(draw(stacked.fold("a")), torch.cat([draw(run.fold("a")) for run in runs]))


def test_fewer_slots_are_the_first_of_more() -> None:
    random = of_examples(4, 1)
    assert torch.equal(random.bits(5), random.bits(9)[:, :5])
    assert torch.equal(random.bits(3, 2), random.bits(7, 2)[:, :3])


def test_the_same_draw_twice_is_the_same() -> None:
    random = of_examples(4, 1)
    assert torch.equal(random.uniform(6), random.uniform(6))


def test_children_parents_siblings_and_neighbours_are_independent() -> None:
    parent = of_examples(500, 1, "data")
    relatives = [
        parent,
        parent.fold("a"),
        parent.fold("b"),
        parent.fold("a").fold("a"),
        parent.fold("a").fold("b"),
        parent.fold("b").fold("a"),
        parent.fold(0),
        parent.fold("0"),
        parent.shared(),
        of_examples(500, 2, "data"),
        of_examples(500, 1, "test"),
        of_examples(500, 1, "data", 0),
        of_examples(500, 1, "data", 1),
        Random.of(1, "data", examples_B=torch.arange(500) + 2**40),
    ]
    drawn = [random.uniform(100) for random in relatives]
    for one, other in itertools.combinations(drawn, 2):
        assert correlation(one, other) < 5
    for random in drawn[:8]:
        assert correlation(random[1:], random[:-1]) < 5
        assert correlation(random[:, 1:], random[:, :-1]) < 5


def test_every_bit_of_a_word_is_fair_and_free_of_its_neighbours() -> None:
    words = of_examples(300, 3).bits(100).flatten()
    planes = torch.stack([(words >> bit) & 1 for bit in range(64)])
    assert ((planes.double().mean(dim=1) - 0.5).abs() * 2 * math.sqrt(len(words)) < 5).all()
    for low in range(63):
        assert correlation(planes[low], planes[low + 1]) < 5


def test_shared_draws_are_equal_within_a_group_and_differ_between_groups() -> None:
    groups_B = torch.arange(12) // 4
    random = Random.of(1, "positions", examples_B=torch.arange(12), groups_B=groups_B)
    for shared in (random.shared(), random.fold("a").shared(), random.shared().fold("a")):
        drawn = shared.bits(3)
        assert torch.equal(drawn[:, None].eq(drawn[None]).all(dim=-1), groups_B[:, None] == groups_B)
    assert torch.equal(random.fold("a").shared().bits(3), random.shared().fold("a").bits(3))


def test_without_groups_a_whole_batch_shares() -> None:
    assert len(of_examples(20, 1).shared().bits(2).unique(dim=0)) == 1
    assert not torch.equal(
        Random.of(1, examples_B=torch.arange(2), groups_B=0).shared().bits(1),
        Random.of(1, examples_B=torch.arange(2), groups_B=1).shared().bits(1),
    )


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("groups", [[0, 0, 0, 0, 0, 0], [7, 2, 2, 7, 2, 1], [5, 4, 3, 2, 1, 0]])
def test_what_a_group_shares_is_what_each_of_its_examples_would_draw_from_the_key_of_the_group(
    name: str, groups: list[int]
) -> None:
    random = Random.of(1, "x", examples_B=torch.arange(6), groups_B=torch.tensor(groups)).fold("a")
    keys_B = random.group_B
    assert len(keys_B) == 6
    alone = DRAWS[name](Random.from_keys(keys_B, keys_B))
    assert torch.equal(DRAWS[name](random.shared()), alone)
    for low, high in ((0, 6), (1, 4), (4, 5)):
        assert torch.equal(DRAWS[name](random.shared().rows(low, high)), alone[low:high])
        assert torch.equal(DRAWS[name](random.rows(low, high).shared()), alone[low:high])


@pytest.mark.parametrize("groups", [3, torch.tensor([3, 3, 3, 3])])
def test_what_a_whole_batch_shares_is_one_row(groups: int | Tensor) -> None:
    shared = Random.of(1, "x", examples_B=torch.arange(4), groups_B=groups).fold("a").shared()
    for drawn in (shared.bits(3), shared.permutation(5), shared.selection(2, 5), shared.subset(2, 5)):
        assert drawn.shape[0] == 4
        assert drawn.stride(0) == 0


# Distributions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0, 2), (0, 10), (-3, 4), (1, 102), (5, 6)])
def test_integers_are_uniform(low: int, high: int) -> None:
    drawn = of_examples(400, low, high).integers(low, high, 250)
    assert drawn.dtype == torch.int64
    assert p_value(drawn - low, [1 / (high - low)] * (high - low)) > 1e-4


def test_integers_take_bounds_from_tensors() -> None:
    low_B1 = torch.arange(50)[:, None] - 20
    high_B1 = low_B1 + 1 + torch.arange(50)[:, None] % 7
    drawn = of_examples(50, 1).integers(low_B1, high_B1, 2000)
    for low, high, row in zip(low_B1.flatten().tolist(), high_B1.flatten().tolist(), drawn, strict=True):
        assert p_value(row - low, [1 / (high - low)] * (high - low)) > 1e-5


@given(st.lists(KEYS, min_size=1, max_size=5), st.integers(-(2**40), 2**40), st.integers(1, 2**31 - 1))
def test_integers_stay_within_their_bounds(keys: list[int], low: int, size: int) -> None:
    for random in (of_keys(keys), of_keys([key_of(word) for word in EXTREMES])):
        drawn = random.integers(low, low + size, 50)
        assert drawn.min() >= low
        assert drawn.max() < low + size
        lows = torch.full((len(random), 1), low)
        assert torch.equal(random.integers(lows, lows + size, 50), drawn)


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**31 - 1))
def test_integers_reach_both_bounds(low: int, size: int) -> None:
    ends = of_keys([key_of(0), key_of(WORD - 1)]).integers(low, low + size, 1)
    assert ends.flatten().tolist() == [low, low + size - 1]


def test_uniforms_are_uniform_and_below_one() -> None:
    drawn = of_examples(400, 1).uniform(250)
    assert drawn.dtype == torch.float32
    assert kolmogorov(drawn, lambda x: x) < 2.2
    ends = of_keys([key_of(word) for word in EXTREMES]).uniform(1)
    assert ends.min() == 0
    assert ends.max() == 1 - 2**-24


@pytest.mark.parametrize("probability", [0.0, 1e-3, 0.3, 0.5, 0.999, 1.0])
def test_bernoulli_is_true_with_its_probability(probability: float) -> None:
    drawn = of_examples(400, round(probability * 1000)).bernoulli(probability, 500)
    deviation = math.sqrt(probability * (1 - probability) * drawn.numel())
    assert abs(int(drawn.sum()) - probability * drawn.numel()) <= 4.5 * deviation
    if probability in (0, 1):
        assert (of_keys([key_of(word) for word in EXTREMES]).bernoulli(probability, 3) == bool(probability)).all()


@pytest.mark.parametrize("weights", [[1, 1], [1, 2, 3, 4], [0.1, 0.7, 0.2], [5]])
def test_choice_follows_its_weights(weights: list[float]) -> None:
    drawn = of_examples(400, "choice").choice(weights, 250)
    assert p_value(drawn, [weight / sum(weights) for weight in weights]) > 1e-4


def test_choice_never_draws_a_weight_of_zero() -> None:
    random = of_keys([key_of(word) for word in EXTREMES])
    for weights, possible in (([0, 1, 0], {1}), ([0, 0, 1, 1], {2, 3}), ([1, 0, 1, 0], {0, 2})):
        assert set(random.choice(weights, 50).flatten().tolist()) == possible


@pytest.mark.parametrize("weights", [[0.0], [1.0, -1.0, 3.0], [float("nan")]])
def test_weights_that_mean_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights must be non-negative"):
        of_examples(1, 1).choice(weights)


def test_permutations_are_uniform() -> None:
    drawn = of_examples(48_000, "permutation").permutation(4)
    assert (drawn.sort(dim=-1).values == torch.arange(4)).all()
    code = (drawn * torch.tensor([64, 16, 4, 1])).sum(dim=1)
    rank = torch.searchsorted(code.unique(), code)
    assert p_value(rank, [1 / 24] * 24) > 1e-4


def test_subsets_are_sorted_distinct_and_uniform() -> None:
    drawn = of_examples(30_000, "subset").subset(2, 5)
    assert (drawn[:, 0] < drawn[:, 1]).all()
    code = drawn[:, 0] * 5 + drawn[:, 1]
    assert p_value(torch.searchsorted(code.unique(), code), [1 / 10] * 10) > 1e-4
    assert of_examples(3, 1).subset(0, 5).shape == (3, 0)
    assert (of_examples(3, 1).subset(5, 5) == torch.arange(5)).all()


def test_selections_are_uniform_over_values_and_orders() -> None:
    drawn = of_examples(30_000, "selection").selection(2, 4)
    code = drawn[:, 0] * 4 + drawn[:, 1]
    assert p_value(torch.searchsorted(code.unique(), code), [1 / 12] * 12) > 1e-4


@pytest.mark.parametrize("count", [-1, 6])
def test_subsets_larger_than_the_set_are_refused(count: int) -> None:
    for draw in (of_examples(1, 1).subset, of_examples(1, 1).selection):
        with pytest.raises(ValueError, match=f"cannot draw {count} distinct values from 5"):
            draw(count, 5)


def test_normals_are_normal() -> None:
    drawn = of_examples(400, "normal").normal(250)
    assert drawn.dtype == torch.float32
    assert kolmogorov(drawn, torch.special.ndtr) < 2.2
    n = drawn.numel()
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float((drawn.double() ** power).mean()) - moment) < 4.5 * math.sqrt(variance / n)


def test_normals_are_finite_whatever_the_bits() -> None:
    drawn = of_keys([key_of(word) for word in EXTREMES]).normal(1)
    assert drawn.isfinite().all()
    assert drawn.min() == -drawn.max()
