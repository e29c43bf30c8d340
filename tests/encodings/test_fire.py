"""FIRE: a double loop in fp64, and the range of its argument."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from algolen.encodings.alibi import Alibi, slopes
from algolen.encodings.base import Encoding, Shape
from algolen.encodings.fire import Fire
from algolen.encodings.t5 import T5, buckets
from tests.encodings.sites import build, drawn, site

SHAPE = Shape(layers=2, width=12, heads=2, attention_heads=3)


def naive(encoding: Encoding, network: int, head: int, query: int, key: int, threshold: float) -> float:
    own = {name: value.detach().double()[network] for name, value in encoding.named_parameters()}
    c = float(own["c_N"])

    def psi(x: float) -> float:
        return math.log(abs(c * x) + 1)

    furthest = max(abs(query), abs(float(own["mu_N"]) * threshold))
    share = psi(abs(query - key)) / (psi(furthest) + 1e-6)
    value = float(own["down_bias_NH"][head])
    for unit in range(len(own["up_NF"])):
        hidden = max(0.0, share * float(own["up_NF"][unit]) + float(own["up_bias_NF"][unit]))
        value += hidden * float(own["down_NHF"][head, unit])
    return value


@pytest.mark.parametrize("per_layer", [False, True])
@pytest.mark.parametrize("mu", [1.0, -0.7])
def test_equals_a_double_loop_on_both_sides_of_the_threshold(per_layer: bool, mu: float) -> None:
    encoding = build(Fire, SHAPE, hidden=5, threshold=10.0, per_layer=per_layer)
    with torch.no_grad():
        for name, parameter in encoding.named_parameters():
            if name == "mu_N":
                parameter.fill_(mu)
            if name == "down_bias_NH":
                parameter.normal_(generator=torch.Generator().manual_seed(0))
    ids = [0, 1, 6, 9, 12, 25, 11, 3]
    for layer in range(2):
        bias_BHTT = encoding.bias(site(drawn(ids), encoding, layer=layer))
        assert bias_BHTT is not None
        for head in range(3):
            for i, query in enumerate(ids):
                for j, key in enumerate(ids):
                    expected = naive(encoding, layer * per_layer, head, query, key, 10.0)
                    assert bias_BHTT[0, head, i, j].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("c", [0.1, -3.0, 0.0])
@pytest.mark.parametrize("threshold", [0.001, 30.0, 512.0])
def test_its_argument_lies_between_0_and_1_at_every_length(c: float, threshold: float) -> None:
    encoding = build(Fire, Shape(1, 4, 1), hidden=1, threshold=threshold)
    own = dict(encoding.named_parameters())
    with torch.no_grad():
        own["c_N"].fill_(c)
        own["up_NF"].fill_(1)
        own["up_bias_NF"].fill_(0)
        own["down_NHF"].fill_(1)
    bias_BHTT = encoding.bias(site(drawn(list(range(400))), encoding))
    assert bias_BHTT is not None
    argument_TT = bias_BHTT[0, 0].tril()
    assert argument_TT.min() >= 0
    assert argument_TT.max() <= 1
    assert (argument_TT.diagonal() == 0).all()
    if threshold == 0.001 and c:
        torch.testing.assert_close(argument_TT[1:, 0], torch.ones(399), atol=1e-4, rtol=0)


# Other biases are special cases ---------------------------------------------------------------------------------------

FAR = 1000.0
"""A threshold beyond all queries, so that the argument is ψ(distance) over a constant."""


def set_to(encoding: Encoding, **values: Tensor | float) -> None:
    own = dict(encoding.named_parameters())
    with torch.no_grad():
        for name, value in values.items():
            own[name].copy_(torch.as_tensor(value))


def biases(encoding: Encoding, ids: list[int]) -> Tensor:
    bias_BHTT = encoding.bias(site(drawn(ids), encoding))
    assert bias_BHTT is not None
    return bias_BHTT.detach()


@pytest.mark.parametrize("c", [1e-3, 0.5])
def test_a_linear_network_is_the_logarithmic_kernel_and_for_small_c_alibi(c: float) -> None:
    shape, ids = Shape(1, 8, 4), [0, 1, 2, 4, 5, 8]
    slope_H = torch.tensor(slopes(4))
    encoding = build(Fire, shape, hidden=1, threshold=FAR, c=c)
    set_to(encoding, up_NF=1.0, up_bias_NF=0.0, down_NHF=-slope_H[:, None] / c * (math.log(c * FAR + 1) + 1e-6))
    bias_BHTT = biases(encoding, ids)
    for head in range(4):
        for i, query in enumerate(ids):
            for j, key in enumerate(ids[: i + 1]):
                expected = -float(slope_H[head]) / c * math.log(1 + c * (query - key))
                assert bias_BHTT[0, head, i, j].item() == pytest.approx(expected, rel=1e-3, abs=1e-6)
    if c < 0.01:
        torch.testing.assert_close(bias_BHTT, biases(build(Alibi, shape), ids), rtol=1e-2, atol=1e-6)


def test_a_network_of_steps_is_t5() -> None:
    shape, count, most = Shape(1, 8, 4), 8, 20
    t5 = build(T5, shape, buckets=count, max_distance=most, std=1.0)
    (table_NH,) = t5.parameters()
    of_distance = buckets(count, most)
    first_K = torch.tensor([of_distance.index(bucket) for bucket in range(1, count)])
    largest = math.log(FAR + 1) + 1e-6
    below_K, above_K = torch.log(first_K) / largest, torch.log(first_K + 1.0) / largest
    steep_K, step_KH = 1 / (above_K - below_K), table_NH.detach().diff(dim=0)
    fire = build(Fire, shape, hidden=2 * (count - 1), threshold=FAR, c=1.0)
    # Each step is the difference of two ramps, one of which begins where the other ends.
    set_to(
        fire,
        up_NF=torch.cat((steep_K, steep_K)),
        up_bias_NF=torch.cat((-steep_K * below_K, -steep_K * above_K)),
        down_NHF=torch.cat((step_KH, -step_KH)).T,
        down_bias_NH=table_NH[0].detach(),
    )
    ids = [0, 1, 2, 3, 4, 6, 9, 13, 14, 20, 21, 40]
    past_TT = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    torch.testing.assert_close(biases(fire, ids)[..., past_TT], biases(t5, ids)[..., past_TT], atol=1e-3, rtol=0)
