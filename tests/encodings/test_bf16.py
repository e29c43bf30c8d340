"""Under bf16 autocast positions stay what they are: bf16 has no whole numbers between 256 and 258."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from algolen.encodings.base import Drawn, Encoding, Shape, Site
from algolen.phase import Phase
from algolen.random import Random
from algolen.training.step import autocast
from tests import building
from tests.encodings.sites import build, drawn, full, site

SHAPE = Shape(layers=1, width=32, heads=2)
START, SIZE = 1000, 640
OPTIONS: dict[str, dict[str, object]] = {
    "learned": {"table": START + SIZE},
    "cope": {"npos": 2 * SIZE},
    "t5": {"max_distance": SIZE, "buckets": 128},
    "shaw": {"clip": SIZE},
}
"""Options without which a position would not be told from its neighbours here."""
ROUNDED = {"rope": 2e-2, "shaw": 2e-2, "fire": 2e-2, "cope": 5e-2}
"""Those that also multiply with what is in bf16, and how far off the largest value that may put them."""
WITHOUT_POSITIONS = {"nope", "hard-alibi", "abacus"}
"""Encodings that compute nothing from positions but a mask or a row of a table."""

READERS = sorted(
    name for name, cls in building.REGISTRY.encodings.items() if not cls.maps_ids and name not in WITHOUT_POSITIONS
)


def made(name: str) -> Encoding:
    """With parameters some way off their initial values."""
    encoding, generator = build(building.REGISTRY.encoding(name), SHAPE, **OPTIONS.get(name, {})), torch.Generator()
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator.manual_seed(0))
    return encoding


def computed(encoding: Encoding, precision: str) -> list[Tensor]:
    """What each hook makes of far positions; queries and keys are rounded to bf16 in either precision."""
    ids_BTA = drawn([*range(START, START + SIZE)]).ids_BTA
    random = Random.of("bf16", examples_B=torch.zeros(1, dtype=torch.int64))
    own = Drawn(ids_BTA, encoding.draw(ids_BTA, full(1, SIZE), random, Phase.TEST))
    with autocast(precision, building.CPU):
        at: Site = site(own, encoding)
        assert at.q_BHTK is not None and at.k_BHTK is not None
        q_BHTK, k_BHTK = at.q_BHTK.bfloat16(), at.k_BHTK.bfloat16()
        if precision == "fp32":
            q_BHTK, k_BHTK = q_BHTK.float(), k_BHTK.float()
        at = replace(at, q_BHTK=q_BHTK, k_BHTK=k_BHTK)
        found = [encoding.embed(torch.zeros(1, SIZE, SHAPE.width), own, at.ctx), *encoding.rotate(q_BHTK, k_BHTK, at)]
        found += [part for part in (encoding.logit_scale(q_BHTK, at), encoding.bias(at)) if part is not None]
    return found


@pytest.mark.parametrize("name", READERS)
def test_positions_are_computed_in_fp32_under_autocast(name: str) -> None:
    encoding = made(name)
    for low, high in zip(computed(encoding, "bf16"), computed(encoding, "fp32"), strict=True):
        if name in ROUNDED:
            torch.testing.assert_close(low.float(), high, atol=ROUNDED[name] * high.abs().max().item(), rtol=0)
        else:
            assert torch.equal(low.float(), high)
