"""Drawn distances: increasing maps of distance, shared as they say, and the published encodings where nothing moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.alibi import slopes
from algolen.encodings.base import Drawn, Encoding, Shape, Site
from algolen.encodings.random_distances import by_distance
from algolen.encodings.randomized_alibi import RandomizedAlibi
from algolen.encodings.randomized_relative import RandomizedRelative
from algolen.errors import Refusal
from algolen.phase import Phase
from algolen.random import Random
from tests import building
from tests.encodings.sites import batch_of, build, full, site

SHAPE = Shape(layers=2, width=12, heads=2, attention_heads=3)
KINDS: tuple[type[Encoding], ...] = (RandomizedAlibi, RandomizedRelative)


@pytest.fixture(params=KINDS, ids=lambda cls: cls.name)
def kind(request: pytest.FixtureRequest) -> type[Encoding]:
    cls: type[Encoding] = request.param
    return cls


def own(encoding: Encoding, batch: Batch, phase: Phase = Phase.TRAINING, groups: int = 1, seed: int = 0) -> Drawn:
    """What an encoding draws for a batch, in groups of as many examples; the ids beside it are those of the tape."""
    index_B = torch.arange(len(batch))
    random = Random.of(seed, examples_B=index_B, groups_B=index_B * groups // len(batch))
    ids_BTA = torch.arange(batch.tape_length)[None, :, None].expand(len(batch), -1, 1)
    return Drawn(ids_BTA, encoding.draw(ids_BTA, batch, random, phase))


def taken_for(
    counts: Sequence[int], phase: Phase = Phase.TRAINING, groups: int = 1, extra: int = 0, **options: object
) -> Tensor:
    """(B, L, S, T): what the distances 0 … T − 1 are taken for, in examples of so many tokens."""
    batch = batch_of(torch.arange(max(counts) + extra) < torch.tensor(counts)[:, None])
    noise_BLST = own(build(RandomizedAlibi, SHAPE, **options), batch, phase, groups).noise
    return torch.nn.functional.pad(noise_BLST + 1, (1, 0))


# What is drawn --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("sides", ["mirrored", "separate"])
def test_distances_grow_from_0_and_stay_in_range(phase: Phase, sides: str) -> None:
    distance_BLST = taken_for([12] * 1000, phase, distances=40, draw="sequence", sides=sides)
    assert distance_BLST.shape == (1000, 2, 1 if sides == "mirrored" else 2, 12)
    assert (distance_BLST[..., 0] == 0).all()
    assert (distance_BLST.diff(dim=-1) > 0).all()
    assert distance_BLST.max() < 40
    if phase is not Phase.EVEN:
        assert distance_BLST[..., 1].min() == 1
        assert distance_BLST.max() == 39


def test_the_mean_of_each_distance_is_that_of_order_statistics() -> None:
    count, distances = 12, 40
    mean_T = taken_for([count] * 8000, distances=distances, draw="sequence").double().mean(dim=(0, 1, 2))
    for m in range(count):
        assert float(mean_T[m]) == pytest.approx(m * distances / count, abs=0.2)


def test_layers_and_separate_sides_have_draws_of_their_own() -> None:
    distance_BLST = taken_for([12], sides="separate")
    assert len(distance_BLST.flatten(0, 2).unique(dim=0)) == 4


def test_a_batch_shares_its_draw_and_sequences_have_their_own() -> None:
    assert len(taken_for([6] * 40).unique(dim=0)) == 1
    assert len(taken_for([6] * 40, groups=4).unique(dim=0)) == 4
    assert len(taken_for([6] * 40, draw="sequence").unique(dim=0)) == 40


def test_other_seeds_draw_other_distances(kind: type[Encoding]) -> None:
    encoding = build(kind, SHAPE)
    first, second = (own(encoding, full(2, 9), seed=seed).noise for seed in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("draw", ["batch", "sequence"])
def test_neighbours_and_padding_do_not_change_what_is_drawn_in_training(draw: str) -> None:
    together, alone = taken_for([3, 8, 5], draw=draw), taken_for([3], draw=draw, extra=20)
    assert torch.equal(together[0, ..., :3], alone[0, ..., :3])
    encoding = build(RandomizedAlibi, SHAPE, draw=draw)
    unpadded = own(encoding, replace(full(1, 3), padded=False)).noise
    assert torch.equal(together[0, ..., 1:3] - 1, unpadded[0])


def test_examples_of_different_lengths_take_nested_parts_of_the_draw_of_their_batch() -> None:
    counts = [3, 11, 7, 11, 1]
    rows = [set(row[0, 0, :count].tolist()) for row, count in zip(taken_for(counts), counts, strict=True)]
    assert rows[4] <= rows[0] <= rows[2] <= rows[1] == rows[3]


@pytest.mark.parametrize("phase", [Phase.TEST, Phase.EVEN])
def test_at_test_distances_do_not_depend_on_how_many_tokens_are_there_yet(phase: Phase) -> None:
    assert torch.equal(taken_for([10, 10], phase), taken_for([4, 10], phase))


def test_even_spacing_is_in_the_middle_of_equal_parts() -> None:
    assert taken_for([5], Phase.EVEN, distances=81)[0, 0].tolist() == [[0, 11, 31, 51, 71]]
    assert taken_for([1], Phase.EVEN)[0, 1].tolist() == [[0]]


# What is made of it ---------------------------------------------------------------------------------------------------


def called(encoding: Encoding, noise: Tensor, size: int, causal: bool, layer: int) -> Site:
    ids_BTA = torch.arange(size)[None, :, None].expand(len(noise), -1, 1)
    return site(Drawn(ids_BTA, noise), encoding, causal, layer, scale=0.7)


def naive_alibi(encoding: Encoding, at: Site, head: int, i: int, j: int, distance: float) -> float:
    nearer = 0.5 if j < i and not at.causal else 0.0
    return -2.0 * slopes(3)[head] * (abs(distance) - nearer)


def naive_relative(encoding: Encoding, at: Site, head: int, i: int, j: int, distance: float) -> float:
    parameters = {name: value.detach().double()[at.layer, head] for name, value in encoding.named_parameters()}
    assert at.q_BHTK is not None and at.k_BHTK is not None
    q_K, k_K = at.q_BHTK[-1, head, i].double(), at.k_BHTK[-1, head, j].double()
    angles = [distance * 100.0 ** (-2 * k / 12) for k in range(6)]
    sinusoid_D = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)
    relative = (q_K + parameters["v_LHK"]) @ (parameters["project_LHKD"] @ sinusoid_D)
    return at.scale * float(parameters["u_LHK"] @ k_K + relative)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("options", [{"draw": "batch"}, {"draw": "sequence", "sides": "separate"}], ids=str)
@pytest.mark.parametrize(
    ("cls", "own_options", "naive"),
    [
        (RandomizedAlibi, {"steepness": 2.0}, naive_alibi),
        (RandomizedRelative, {"base": 100.0, "std": 0.5}, naive_relative),
    ],
    ids=["alibi", "relative"],
)
def test_equals_a_double_loop(cls, own_options, naive, options, causal) -> None:  # type: ignore[no-untyped-def]
    encoding, size = build(cls, SHAPE, distances=50, **options, **own_options), 6
    noise_BLST = own(encoding, full(3, size)).noise
    for layer in range(2):
        at = called(encoding, noise_BLST, size, causal, layer)
        bias_BHTT = encoding.bias(at).expand(3, 3, size, size)
        for i in range(size):
            for j in range(i + 1 if causal else size):
                side = 0 if j < i else -1
                distance = 0 if i == j else 1 + int(noise_BLST[-1, layer, side, abs(i - j) - 1])
                for head in range(3):
                    expected = naive(encoding, at, head, i, j, distance if j < i else -distance)
                    assert bias_BHTT[-1, head, i, j].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("causal", [True, False])
def test_the_bias_is_a_function_of_distance_falls_with_it_and_differs_between_layers(causal: bool) -> None:
    encoding = build(RandomizedAlibi, SHAPE)
    drawn = own(encoding, full(2, 9)).noise
    layers = [encoding.bias(called(encoding, drawn, 9, causal, layer)) for layer in range(2)]
    for bias_BHTT in layers:
        assert bias_BHTT is not None
        assert torch.equal(bias_BHTT[..., 1:, 1:].tril(), bias_BHTT[..., :-1, :-1].tril())
        assert (bias_BHTT[..., -1, :].diff(dim=-1) > 0).all()
    assert not torch.equal(*layers)  # type: ignore[arg-type]


def test_behind_is_half_a_step_nearer_than_ahead_in_bidirectional_attention() -> None:
    encoding = build(RandomizedAlibi, SHAPE)
    bias_BHTT = encoding.bias(called(encoding, own(encoding, full(1, 9)).noise, 9, False, 0))
    assert bias_BHTT is not None
    difference_HTT = (bias_BHTT - bias_BHTT.transpose(-2, -1))[0].tril(-1)
    expected_H = 0.5 * torch.tensor(slopes(3))
    torch.testing.assert_close(difference_HTT, (expected_H[:, None, None] * torch.ones(9, 9)).tril(-1))


def test_an_unpadded_batch_that_shares_its_draw_computes_one_row() -> None:
    encoding = build(RandomizedAlibi, SHAPE)
    assert len(by_distance(own(encoding, replace(full(8, 9), padded=False)).noise)) == 1
    assert len(by_distance(own(encoding, full(8, 9), Phase.TEST).noise)) == 1
    assert len(by_distance(own(encoding, full(8, 9), Phase.EVEN, groups=2).noise)) == 1


# Where nothing moves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("sides", ["mirrored", "separate"])
@pytest.mark.parametrize(
    ("written", "plain", "causal"),
    [
        ("randomized-alibi", "alibi", True),
        ("randomized-relative", "transformer-xl", True),
        ("randomized-relative", "transformer-xl", False),
    ],
)
def test_as_many_distances_as_tokens_leave_the_encoding_that_draws_none(
    written: str, plain: str, causal: bool, sides: str, phase: Phase
) -> None:
    batch, positions = building.batch(building.task(), [4] * 3)
    pe = building.expression(written, **{written: {"distances": batch.tape_length, "sides": sides}})
    drawing = building.model(pe, causal=causal)
    other = building.model(building.expression(plain), causal=causal)
    other.load_state_dict(drawing.state_dict())
    torch.testing.assert_close(
        drawing(batch, drawing.draw(batch, positions, phase)),
        other(batch, other.draw(batch, positions, phase)),
        atol=1e-5,
        rtol=1e-5,
    )


def test_more_distances_than_tokens_do_not() -> None:
    batch, positions = building.batch(building.task(), [4] * 3)
    drawing = building.model(building.expression("randomized-relative"))
    other = building.model(building.expression("transformer-xl"))
    other.load_state_dict(drawing.state_dict())
    logits_BTV = drawing(batch, drawing.draw(batch, positions, Phase.TEST))
    assert (logits_BTV - other(batch, other.draw(batch, positions, Phase.TEST))).abs().max() > 1e-3


def test_autocast_does_not_round_distances() -> None:
    encoding = build(RandomizedRelative, SHAPE)
    at = called(encoding, own(encoding, full(1, 9)).noise, 9, True, 0)
    assert at.q_BHTK is not None and at.k_BHTK is not None
    at = replace(at, q_BHTK=at.q_BHTK.bfloat16(), k_BHTK=at.k_BHTK.bfloat16())
    plain = encoding.bias(at)
    with torch.autocast("cpu", torch.bfloat16):
        low = encoding.bias(at)
    assert plain is not None and low is not None
    assert torch.equal(plain, low)


@pytest.mark.parametrize("causal", [True, False])
def test_a_single_token_has_no_distance(kind: type[Encoding], causal: bool) -> None:
    encoding = build(kind, SHAPE)
    noise_BLST = own(encoding, full(2, 1)).noise
    bias_BHTT = encoding.bias(called(encoding, noise_BLST, 1, causal, 1))
    assert bias_BHTT is not None
    assert bias_BHTT.shape[-2:] == (1, 1)
    assert (bias_BHTT == 0).all() == (kind is RandomizedAlibi)


# Ranges and names -----------------------------------------------------------------------------------------------------


def test_a_tape_longer_than_the_range_is_refused_and_the_exact_number_is_not(kind: type[Encoding]) -> None:
    task, length = building.task(), 6
    exact = task.tape_length(length)
    kind.check_task(kind.Options(distances=exact), task, length)
    with pytest.raises(Refusal, match=rf"^{kind.name}\.distances={exact - 1} .*--set {kind.name}\.distances={exact}$"):
        kind.check_task(kind.Options(distances=exact - 1), task, length)
    assert kind.ceiling(kind.Options(distances=exact)) == exact - 1


@pytest.mark.parametrize(
    ("before", "reader"), [("coupling", "learned"), ("randomized", "rope"), ("offset+randomized", "learned")]
)
def test_an_id_map_needs_another_encoding_that_reads_it(kind: type[Encoding], before: str, reader: str) -> None:
    with pytest.raises(Refusal, match=rf"^{kind.name} goes by places.*'\S*\+{reader}', or leave \w+ out$") as refused:
        building.expression(f"{before}+{kind.name}")
    assert f"'{before}+{kind.name}+{reader}'" in str(refused.value)
    assert building.expression(f"{before}+{reader}+{kind.name}").expansion == f"{before}+{reader}+{kind.name}"


def test_odd_widths_are_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"^randomized-relative needs .*model.width=9 is odd$"):
        RandomizedRelative.check_shape(RandomizedRelative.Options(), Shape(1, 9, 3))


def test_a_selection_for_keys_ahead_is_refused_where_none_are_seen(kind: type[Encoding]) -> None:
    pe = building.expression(kind.name, **{kind.name: {"sides": "separate"}})
    pe.check(building.task(), [3], causal=False)
    with pytest.raises(Refusal, match=rf"--set {kind.name}\.sides=mirrored"):
        pe.check(building.task(), [3], causal=True)


def test_what_is_shown_of_the_draws_are_the_distances_from_the_first_token(kind: type[Encoding]) -> None:
    encoding, batch = build(kind, SHAPE, sides="separate"), batch_of(torch.ones(3, 7, dtype=torch.bool))
    drawn = own(encoding, batch)
    shown_BTS = encoding.streams(drawn)["distances"]
    assert shown_BTS.shape == (3, 7, 2)
    assert (shown_BTS[:, 0] == 0).all()
    assert torch.equal(shown_BTS[:, 1:], (drawn.noise[:, 0] + 1).transpose(1, 2))
