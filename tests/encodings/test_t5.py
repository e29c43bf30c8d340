"""T5's buckets: the published ones, and a double loop in fp64."""

from __future__ import annotations

import math

import pytest
import torch

from algolen.encodings.base import Shape
from algolen.encodings.t5 import T5, T5Options, buckets
from algolen.phase import Phase
from tests import building
from tests.encodings.sites import build, drawn, site

PUBLISHED = {
    0: 0,
    15: 15,
    16: 16,
    18: 16,
    20: 17,
    24: 19,
    31: 21,
    32: 21,
    45: 23,
    64: 26,
    90: 29,
    112: 30,
    113: 31,
    128: 31,
}


def test_the_published_buckets() -> None:
    table = buckets(32, 128)
    assert {distance: table[distance] for distance in PUBLISHED} == PUBLISHED
    assert table == sorted(table)
    assert set(table) == set(range(32))


def bucket(i: int, j: int, count: int, most: int, causal: bool) -> int:
    ahead = 0
    if causal:
        n = max(i - j, 0)
    else:
        count //= 2
        ahead, n = count * (j > i), abs(i - j)
    exact = count // 2
    if n < exact:
        return ahead + n
    return ahead + min(count - 1, exact + math.floor(math.log(n / exact) / math.log(most / exact) * (count - exact)))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("count", "most"), [(32, 128), (8, 20), (4, 3)])
def test_equals_a_double_loop(causal: bool, count: int, most: int) -> None:
    encoding = build(T5, Shape(2, 12, 2, attention_heads=3), buckets=count, max_distance=most)
    ids = [0, 1, 2, 5, 4, 5, 40, 300, 290, 7]
    bias_BHTT = encoding.bias(site(drawn(ids), encoding, causal))
    table_NH = dict(encoding.named_parameters())["table_NH"]
    assert bias_BHTT is not None
    for i, query in enumerate(ids):
        for j, key in enumerate(ids):
            assert torch.equal(bias_BHTT[0, :, i, j], table_NH[bucket(query, key, count, most, causal)])


def test_unscaled_logits_are_not_divided() -> None:
    for unscaled, expected in ((False, None), (True, math.sqrt(6))):
        encoding = build(T5, Shape(1, 12, 2), unscaled=unscaled)
        at = site(drawn([0, 1]), encoding)
        assert at.q_BHTK is not None
        factor = encoding.logit_scale(at.q_BHTK, at)
        assert (None if factor is None else float(factor)) == (expected and pytest.approx(expected))


def test_unscaled_multiplies_what_the_model_computes() -> None:
    models = [building.model(building.expression("t5", t5={"unscaled": unscaled})) for unscaled in (False, True)]
    with torch.no_grad():
        for block in models[1].blocks:
            block.attention.query_DD /= math.sqrt(8)
    batch, positions = building.batch(building.task(), [5] * 3)
    draws = models[0].draw(batch, positions, Phase.TEST)
    torch.testing.assert_close(models[0](batch, draws), models[1](batch, draws), atol=1e-5, rtol=1e-4)


def test_more_exact_buckets_than_distances_are_refused() -> None:
    with pytest.raises(ValueError, match="max_distance=16 has to be above half of buckets=32"):
        T5Options(max_distance=16)
