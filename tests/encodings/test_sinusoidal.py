"""Sines and cosines: closed values and inner products."""

from __future__ import annotations

import math

import pytest
import torch

from algolen.encodings.base import Shape
from algolen.encodings.sinusoidal import Sinusoidal, sinusoids
from tests.encodings.sites import build, drawn, full


@pytest.mark.parametrize("width", [8, 7])
def test_channels_are_sines_and_cosines_in_turn(width: int) -> None:
    table = sinusoids(torch.arange(30), width, 10_000.0)
    for position in range(30):
        for channel in range(width):
            angle = position * 10_000.0 ** (-(channel // 2 * 2) / width)
            assert table[position, channel] == pytest.approx((math.sin, math.cos)[channel % 2](angle), abs=1e-5)


def test_inner_products_depend_on_the_difference_only() -> None:
    table = sinusoids(torch.arange(100), 16, 10_000.0)
    gram = table @ table.T
    for difference in (0, 1, 7, 40):
        expected = sum(math.cos(difference * 10_000.0 ** (-2 * k / 16)) for k in range(8))
        torch.testing.assert_close(gram.diagonal(difference), torch.full((100 - difference,), expected))


def test_every_example_gets_the_vectors_of_its_own_ids_times_the_scale() -> None:
    encoding = build(Sinusoidal, Shape(1, 6, 1), base=100.0, scale=3.0)
    own = drawn([5, 0, 2], [1, 1, 9])
    added_BTD = encoding.embed(torch.zeros(2, 3, 6), own, encoding.prepare(full(2, 3), own))
    torch.testing.assert_close(added_BTD, 3 * sinusoids(own.ids_BTA[..., 0], 6, 100.0))
    torch.testing.assert_close(added_BTD[0, 1], torch.tensor([0.0, 3.0] * 3))
