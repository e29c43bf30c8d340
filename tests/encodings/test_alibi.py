"""ALiBi: the published slopes and a double loop."""

from __future__ import annotations

import pytest
import torch

from algolen.encodings.alibi import Alibi, slopes
from algolen.encodings.base import Shape
from tests.encodings.sites import build, drawn, site


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (4, [2, 4, 6, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_the_published_slopes(heads: int, exponents: list[float]) -> None:
    assert slopes(heads) == pytest.approx([2.0**-exponent for exponent in exponents], rel=1e-12)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("ids", [list(range(6)), [0, 1, 2, 0, 2, 1], [3, 90, 91, 400, 401, 1000]])
def test_equals_a_double_loop(ids: list[int], causal: bool) -> None:
    encoding = build(Alibi, Shape(1, 12, 2, attention_heads=3), steepness=2.0)
    bias_BHTT = encoding.bias(site(drawn(ids), encoding, causal))
    assert bias_BHTT is not None
    assert bias_BHTT.shape == (1, 3, 6, 6)
    for head, slope in enumerate((1 / 16, 1 / 256, 1 / 4)):
        for i in range(6):
            for j in range(6):
                assert bias_BHTT[0, head, i, j] == pytest.approx(-2 * slope * abs(ids[i] - ids[j]), rel=1e-6)


def test_without_queries_weights_fall_off_exponentially() -> None:
    encoding = build(Alibi, Shape(1, 4, 1))
    bias_BHTT = encoding.bias(site(drawn(list(range(50))), encoding))
    assert bias_BHTT is not None
    weights = torch.softmax(bias_BHTT[0, 0, -1], dim=-1)
    torch.testing.assert_close(weights[:-1] / weights[1:], torch.full((49,), 2**-8.0).neg().exp())
