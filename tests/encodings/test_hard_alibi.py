"""Hard-ALiBi: a naive mask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algolen.encodings.base import Shape
from algolen.encodings.hard_alibi import HardAlibi, HardAlibiOptions
from algolen.errors import Refusal
from algolen.phase import Phase
from tests import building
from tests.encodings.sites import build, drawn, site
from tests.encodings.toys import TOYS


@pytest.mark.parametrize(("heads", "masked", "expected"), [(4, None, 2), (5, None, 2), (4, 1, 1), (3, 3, 3)])
def test_equals_a_naive_mask(heads: int, masked: int | None, expected: int) -> None:
    encoding = build(HardAlibi, Shape(1, 4, 1, attention_heads=heads), masked=masked)
    # By place: ids, here all equal, do not matter.
    visible_HTT = encoding.mask(site(drawn([3] * 7), encoding))
    assert visible_HTT is not None
    for head in range(heads):
        for i in range(7):
            for j in range(i + 1):
                window = head + 1 if head < expected else 7
                assert bool(visible_HTT[head, i, j]) == (j > i - window)


def test_masked_heads_attend_to_their_window_alone() -> None:
    """With every head masked, a token reaches no further than the windows of all layers together."""
    model = building.model(building.expression("hard-alibi", **{"hard-alibi": {"masked": 2}}))
    batch, positions = building.batch(building.task(), [5] * 3)
    draws = model.draw(batch, positions, Phase.TEST)
    tokens_BT = batch.tokens_BT.clone()
    tokens_BT[:, 4] = (tokens_BT[:, 4] + 1) % 14
    before, after = model(batch, draws), model(replace(batch, tokens_BT=tokens_BT), draws)
    changed_T = (before != after).any(dim=2).any(dim=0)
    assert changed_T.nonzero()[:, 0].tolist() == [4, 5, 6]  # two layers, one token back each


def test_more_masked_heads_than_there_are_is_refused() -> None:
    HardAlibi.check_shape(HardAlibiOptions(masked=4), Shape(1, 8, 4))
    HardAlibi.check_shape(HardAlibiOptions(masked=4), Shape(1, 8, 2, attention_heads=4))
    with pytest.raises(Refusal, match=r"hard-alibi.masked=5 is more than the 4 heads"):
        HardAlibi.check_shape(HardAlibiOptions(masked=5), Shape(1, 8, 4))
    with pytest.raises(Refusal, match=r"change model.heads"):
        HardAlibi.check_shape(HardAlibiOptions(), Shape(1, 8, 1))


def test_heads_that_other_encodings_add_count() -> None:
    pe = building.expression("doubled+hard-alibi", TOYS)
    pe.check(building.task(), [3], causal=True, shape=Shape(1, 8, 1))
    with pytest.raises(Refusal, match=r"change model.heads"):
        building.expression("hard-alibi").check(building.task(), [3], causal=True, shape=Shape(1, 8, 1))


def test_bidirectional_attention_is_refused() -> None:
    with pytest.raises(Refusal, match="hard-alibi is for causal attention"):
        building.expression("hard-alibi").check(building.task(), [3], causal=False)
