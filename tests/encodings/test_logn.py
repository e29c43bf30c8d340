"""Log-n scaling: the factor of every row, and of nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Shape
from algolen.encodings.logn import LogN
from algolen.phase import Phase
from tests import building
from tests.encodings.sites import batch_of, build, site

SHAPE = Shape(layers=2, width=8, heads=2, attention_heads=4)
SIZE = 12


def factor(encoding: Encoding, batch: Batch, causal: bool, layer: int = 0) -> torch.Tensor:
    own = Drawn(torch.arange(SIZE)[None, :, None].expand(len(batch), -1, 1))
    at = site(own, encoding, causal, layer)
    at = replace(at, ctx=encoding.prepare(batch, own))
    assert at.q_BHTK is not None
    scale = encoding.logit_scale(at.q_BHTK, at)
    assert scale is not None
    return scale.expand(len(batch), 4, SIZE, 1)[..., 0]


def ragged(*counts: int) -> Batch:
    return batch_of(torch.arange(SIZE) < torch.tensor(counts)[:, None])


@pytest.mark.parametrize("form", ["log", "clip", "learned"])
def test_a_causal_row_counts_the_keys_up_to_itself(form: str) -> None:
    scale_BHT = factor(build(LogN, SHAPE, form=form, trained=5), ragged(12, 4), causal=True)
    for i in range(SIZE):
        expected = max(1.0, math.log(i + 1) / math.log(5)) if form == "clip" else math.log(i + 1)
        for row in range(2):
            for head in range(4):
                assert scale_BHT[row, head, i].item() == pytest.approx(expected, rel=1e-6)


def test_clip_does_nothing_up_to_the_trained_length_and_grows_from_there() -> None:
    scale_T = factor(build(LogN, SHAPE, form="clip", trained=6), ragged(12), causal=True)[0, 0]
    assert (scale_T[:6] == 1).all()
    assert (scale_T[6:] > 1).all()
    assert (scale_T[5:].diff() > 0).all()


def test_bidirectional_rows_count_the_tokens_without_padding() -> None:
    scale_BHT = factor(build(LogN, SHAPE), ragged(12, 5), causal=False)
    torch.testing.assert_close(scale_BHT[0], torch.full((4, SIZE), math.log(12)))
    torch.testing.assert_close(scale_BHT[1], torch.full((4, SIZE), math.log(5)))


def test_learned_factors_are_of_each_layer_and_head() -> None:
    encoding = build(LogN, SHAPE, form="learned")
    (s_LH,) = encoding.parameters()
    with torch.no_grad():
        s_LH.copy_(torch.arange(8).view(2, 4))
    for layer in range(2):
        scale_BHT = factor(encoding, ragged(12), True, layer).detach()
        for head in range(4):
            assert scale_BHT[0, head, 9].item() == pytest.approx((4 * layer + head) * math.log(10))


@pytest.mark.parametrize("beside", ["", "+alibi"])
def test_learned_factors_receive_gradient_on_both_paths_through_attention(beside: str) -> None:
    model = building.model(building.expression(f"logn{beside}", logn={"form": "learned"}))
    batch, positions = building.batch(building.task(), [5] * 4)
    model(batch, model.draw(batch, positions, Phase.TRAINING)).square().mean().backward()
    for parameter in model.encodings.parameters():
        assert parameter.grad is not None
        assert (parameter.grad.abs() > 0).all()


def test_fused_and_plain_attention_scale_alike() -> None:
    """A bias of next to nothing takes the plain path."""
    fused = building.model(building.expression("logn"))
    plain = building.model(building.expression("logn+alibi", alibi={"steepness": 1e-9}))
    batch, positions = building.batch(building.task(), [6] * 4)
    draws = [model.draw(batch, positions, Phase.TEST) for model in (fused, plain)]
    torch.testing.assert_close(fused(batch, draws[0]), plain(batch, draws[1]), atol=1e-5, rtol=1e-4)
