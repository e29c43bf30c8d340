"""Rotary embedding: complex multiplication, shifts, norms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from algolen.encodings.base import Shape
from algolen.encodings.rope import Rope
from algolen.errors import Refusal
from tests.encodings.sites import build, drawn, site

SHAPE = Shape(layers=1, width=16, heads=2)


def turned(ids: list[int], base: float = 10_000.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    encoding = build(Rope, SHAPE, base=base)
    at = site(drawn(ids), encoding)
    assert at.q_BHTK is not None and at.k_BHTK is not None
    return at.q_BHTK, at.k_BHTK, *encoding.rotate(at.q_BHTK, at.k_BHTK, at)


@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_equals_multiplication_by_complex_numbers(base: float) -> None:
    ids = [0, 1, 5, 300, 2047]
    q, k, new_q, new_k = turned(ids, base)
    for before, after in ((q, new_q), (k, new_k)):
        pairs = torch.complex(*before.double().chunk(2, dim=-1))
        for place, position in enumerate(ids):
            for pair in range(4):
                angle = position * base ** (-2 * pair / 8)
                expected = pairs[:, :, place, pair] * complex(math.cos(angle), math.sin(angle))
                got = torch.complex(after[:, :, place, pair].double(), after[:, :, place, pair + 4].double())
                torch.testing.assert_close(got, expected, atol=5e-4, rtol=0)


def test_scores_do_not_change_under_a_shift_nor_norms_at_all() -> None:
    ids = [0, 3, 4, 9, 20]
    q, _, near_q, near_k = turned(ids)
    _, _, far_q, far_k = turned([position + 117 for position in ids])
    torch.testing.assert_close(near_q @ near_k.mT, far_q @ far_k.mT, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(far_q.norm(dim=-1), q.norm(dim=-1))
    assert not torch.allclose(near_q, far_q, atol=0.1)


def test_equal_ids_leave_the_plain_product() -> None:
    q, k, new_q, new_k = turned([77] * 4)
    torch.testing.assert_close(new_q @ new_k.mT, q @ k.mT, atol=1e-5, rtol=1e-5)


def test_id_0_is_not_turned() -> None:
    q, _, new_q, _ = turned([0, 0])
    assert torch.equal(q, new_q)


def test_positions_beyond_256_stay_apart_in_bf16() -> None:
    encoding = build(Rope, SHAPE)
    at = site(drawn([1000, 1001]), encoding)
    ones = torch.ones(1, 2, 2, 8, dtype=torch.bfloat16)
    new_q, _ = encoding.rotate(ones, ones, at)
    assert new_q.dtype == torch.bfloat16
    assert new_q[0, 0, 0, 0].item() == pytest.approx(math.cos(1000) - math.sin(1000), abs=0.02)
    assert new_q[0, 0, 1, 0].item() == pytest.approx(math.cos(1001) - math.sin(1001), abs=0.02)


def test_odd_heads_are_refused() -> None:
    with pytest.raises(Refusal, match="head width of 3 is odd"):
        Rope.check_shape(Rope.Options(), Shape(1, 6, 2))
    Rope.check_shape(Rope.Options(), Shape(1, 8, 2))
