"""Transformer-XL's positions: a double loop over pairs with the sinusoid of their distance."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from algolen.encodings.base import Encoding, Shape, Site
from algolen.encodings.transformer_xl import TransformerXL
from algolen.errors import Refusal
from algolen.phase import Phase
from tests import building
from tests.encodings.sites import build, drawn, site

SHAPE = Shape(layers=2, width=12, heads=2, attention_heads=3)


def naive(encoding: Encoding, at: Site, head: int, i: int, j: int) -> float:
    own = {name: value.detach().double()[at.layer, head] for name, value in encoding.named_parameters()}
    assert at.q_BHTK is not None and at.k_BHTK is not None
    q_K, k_K = at.q_BHTK[0, head, i].double(), at.k_BHTK[0, head, j].double()
    distance = float(at.ids_BTA[0, i, 0] - at.ids_BTA[0, j, 0])
    angles = [distance * 100.0 ** (-2 * k / 12) for k in range(6)]
    sinusoid_D = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)
    relative = (q_K + own["v_LHK"]) @ (own["project_LHKD"] @ sinusoid_D)
    return at.scale * float(own["u_LHK"] @ k_K + relative)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("ids", [list(range(6)), [0, 4, 2, 4, 40, 2000]])
def test_equals_a_double_loop(ids: list[int], causal: bool) -> None:
    encoding = build(TransformerXL, SHAPE, base=100.0, std=0.5)
    for layer in range(2):
        at = site(drawn(ids), encoding, causal, layer, scale=0.7)
        bias_BHTT = encoding.bias(at)
        assert bias_BHTT is not None
        for head in range(3):
            for i in range(6):
                for j in range(6):
                    expected = naive(encoding, at, head, i, j)
                    assert bias_BHTT[0, head, i, j].item() == pytest.approx(expected, abs=2e-3)


def test_does_not_change_under_a_shift() -> None:
    encoding = build(TransformerXL, SHAPE)
    near, far = (encoding.bias(site(drawn([start + n for n in range(8)]), encoding)) for start in (0, 300))
    assert near is not None and far is not None
    torch.testing.assert_close(near, far, atol=1e-3, rtol=1e-3)


def test_autocast_does_not_round_positions() -> None:
    encoding = build(TransformerXL, SHAPE)
    at = site(drawn([1000 + n for n in range(8)]), encoding)
    assert at.q_BHTK is not None and at.k_BHTK is not None
    at = replace(at, q_BHTK=at.q_BHTK.bfloat16(), k_BHTK=at.k_BHTK.bfloat16())
    plain = encoding.bias(at)
    with torch.autocast("cpu", torch.bfloat16):
        low = encoding.bias(at)
    assert plain is not None and low is not None
    assert torch.equal(plain, low)


def test_parameters_of_zero_are_no_encoding() -> None:
    model, nope = building.model(building.expression("transformer-xl")), building.model(building.expression("nope"))
    with torch.no_grad():
        for parameter in model.encodings.parameters():
            parameter.zero_()
    batch, positions = building.batch(building.task(), [4] * 3)
    draws = nope.draw(batch, positions, Phase.TEST)
    torch.testing.assert_close(model(batch, draws), nope(batch, draws), atol=1e-5, rtol=1e-4)


def test_odd_widths_are_refused() -> None:
    with pytest.raises(Refusal, match=r"model.width=9 is odd"):
        TransformerXL.check_shape(TransformerXL.Options(), Shape(1, 9, 3))
