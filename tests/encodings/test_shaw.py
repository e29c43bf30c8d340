"""Shaw's relative keys: a double loop."""

from __future__ import annotations

import pytest
import torch

from algolen.encodings.base import Shape
from algolen.encodings.shaw import Shaw
from algolen.phase import Phase
from tests import building
from tests.encodings.sites import build, drawn, site

SHAPE = Shape(layers=2, width=12, heads=2, attention_heads=3)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("ids", [list(range(6)), [0, 4, 2, 4, 40, 41]])
def test_equals_a_double_loop(ids: list[int], shared: bool, causal: bool) -> None:
    encoding = build(Shaw, SHAPE, clip=2, shared=shared)
    (table_LKN,) = encoding.parameters()
    for layer in range(2):
        at = site(drawn(ids), encoding, causal, layer, scale=0.7)
        bias_BHTT = encoding.bias(at)
        assert bias_BHTT is not None and at.q_BHTK is not None
        for head in range(3):
            for i, query in enumerate(ids):
                for j, key in enumerate(ids):
                    row = min(max(key - query, -2), 2) + 2
                    vector_K = table_LKN[0 if shared else layer, :, row].detach().double()
                    expected = 0.7 * float(at.q_BHTK[0, head, i].double() @ vector_K)
                    assert bias_BHTT[0, head, i, j].item() == pytest.approx(expected, abs=1e-5)


def test_a_table_of_zeros_is_no_encoding() -> None:
    model, nope = building.model(building.expression("shaw")), building.model(building.expression("nope"))
    with torch.no_grad():
        for parameter in model.encodings.parameters():
            parameter.zero_()
    batch, positions = building.batch(building.task(), [4] * 3)
    draws = nope.draw(batch, positions, Phase.TEST)
    torch.testing.assert_close(model(batch, draws), nope(batch, draws), atol=1e-5, rtol=1e-4)
