"""CoPE: a naive loop in fp64, and its limits: gates that are open, a table of zeros, saturation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from algolen.encodings.base import Encoding, Shape, Site
from algolen.encodings.cope import Cope
from algolen.phase import Phase
from algolen.training.step import loss_sum
from tests import building
from tests.encodings.sites import build, drawn, site

SHAPE = Shape(layers=2, width=12, heads=2, attention_heads=3)
SIZE = 9


def made(**options: object) -> Encoding:
    encoding = build(Cope, SHAPE, **options)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in encoding.named_parameters():
            if name == "table_LKN":
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return encoding


def naive(encoding: Encoding, at: Site, head: int, i: int, j: int) -> float:
    own = {name: value.detach().double() for name, value in encoding.named_parameters()}
    options, width = encoding.options, encoding.shape.head_width
    assert at.q_BHTK is not None and at.k_BHTK is not None
    q_K, keys_TK = at.q_BHTK[0, head, i].double(), at.k_BHTK[0, head].double()
    if options.separate_keys:
        keys_TK = at.x_BTD[0].double() @ own["gate_key_LKD"][at.layer, head * width : (head + 1) * width].T
    place = 0.0
    for t in range(j, i + 1):
        place += 1 / (1 + math.exp(-at.scale * float(q_K @ keys_TK[t])))
    place = min(place, options.npos - 1)
    table_KN, below, above = own["table_LKN"][0 if options.shared else at.layer], math.floor(place), math.ceil(place)
    share = place - below
    value = (1 - share) * float(q_K @ table_KN[:, below]) + share * float(q_K @ table_KN[:, above])
    return value * (at.scale if options.scale_pos else 1)


@pytest.mark.parametrize("scale_pos", [True, False])
@pytest.mark.parametrize("separate_keys", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("npos", [3, 32])
def test_equals_a_naive_loop(scale_pos: bool, separate_keys: bool, shared: bool, npos: int) -> None:
    encoding = made(scale_pos=scale_pos, separate_keys=separate_keys, shared=shared, npos=npos)
    for layer in range(2):
        at = site(drawn(list(range(SIZE))), encoding, layer=layer, scale=0.6)
        bias_BHTT = encoding.bias(at)
        assert bias_BHTT is not None
        for head in range(3):
            for i in range(SIZE):
                for j in range(i + 1):
                    expected = naive(encoding, at, head, i, j)
                    assert bias_BHTT[0, head, i, j].item() == pytest.approx(expected, abs=1e-4)


def test_open_gates_make_it_a_table_of_distances_that_ends_in_its_last_row() -> None:
    encoding = made(npos=6, scale_pos=False)
    at = site(drawn(list(range(SIZE))), encoding)
    assert at.q_BHTK is not None
    q_BHTK = at.q_BHTK.abs()
    at = replace(at, q_BHTK=q_BHTK, k_BHTK=torch.full_like(q_BHTK, 1e4))
    bias_BHTT = encoding.bias(at)
    table_KN = dict(encoding.named_parameters())["table_LKN"][0]
    assert bias_BHTT is not None
    for i in range(SIZE):
        for j in range(i + 1):
            expected = q_BHTK[:, :, i] @ table_KN[:, min(i - j + 1, 5)]
            torch.testing.assert_close(bias_BHTT[:, :, i, j], expected)


def test_positions_interpolate_without_a_jump_at_whole_numbers() -> None:
    encoding = made(npos=8, scale_pos=False)
    at = site(drawn([0, 1]), encoding)
    assert at.q_BHTK is not None
    near = []
    for gate in (0.4999, 0.5001):  # two of them: just below and just above position 1
        logit = math.log(gate / (1 - gate))
        keys_BHTK = logit * at.q_BHTK[:, :, 1:] / at.q_BHTK[:, :, 1:].square().sum(-1, keepdim=True)
        bias_BHTT = encoding.bias(replace(at, k_BHTK=keys_BHTK.expand_as(at.q_BHTK)))
        assert bias_BHTT is not None
        near.append(bias_BHTT[0, :, 1, 0])
    table_KN = dict(encoding.named_parameters())["table_LKN"][0]
    torch.testing.assert_close(near[0], near[1], atol=1e-2, rtol=0)
    torch.testing.assert_close(near[0], at.q_BHTK[0, :, 1] @ table_KN[:, 1], atol=1e-2, rtol=0)


def test_a_table_of_zeros_as_at_the_start_is_no_encoding() -> None:
    model, nope = building.model(building.expression("cope")), building.model(building.expression("nope"))
    batch, positions = building.batch(building.task(), [4] * 3)
    draws = nope.draw(batch, positions, Phase.TEST)
    torch.testing.assert_close(model(batch, draws), nope(batch, draws), atol=1e-5, rtol=1e-4)


def test_the_future_does_not_open_gates() -> None:
    encoding = made(separate_keys=True)
    at = site(drawn(list(range(SIZE))), encoding)
    assert at.k_BHTK is not None
    k_BHTK, x_BTD = at.k_BHTK.clone(), at.x_BTD.clone()
    k_BHTK[:, :, 5:], x_BTD[:, 5:] = 7.0, -3.0
    before, after = encoding.bias(at), encoding.bias(replace(at, k_BHTK=k_BHTK, x_BTD=x_BTD))
    assert before is not None and after is not None
    assert torch.equal(before[:, :, :5, :5], after[:, :, :5, :5])
    assert not torch.equal(before[:, :, 5:], after[:, :, 5:])


def test_gates_learn_once_the_table_has_left_zero() -> None:
    pe = building.expression("cope", cope={"separate_keys": True})
    model = building.model(pe)
    with torch.no_grad():
        for name, parameter in model.encodings.named_parameters():
            if name.endswith("table_LKN"):
                parameter.normal_(generator=torch.Generator().manual_seed(0))
    batch, positions = building.batch(building.task(), [6] * 4)
    loss_sum(model, batch, model.draw(batch, positions, Phase.TRAINING)).backward()
    for name, parameter in model.encodings.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad.abs().amax(dim=(-2, -1)) > 0).all(), name
