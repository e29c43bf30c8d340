"""Counts against a slow recount, example by example and unit by unit."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from algolen.batch import Batch, Structure
from algolen.evaluation.counting import Counts, count, merge


def slow(logits_BTV: torch.Tensor, batch: Batch) -> dict[int, Counts]:
    """Counts in plain Python."""
    units: defaultdict[tuple[int, int], list[tuple[bool, float]]] = defaultdict(list)
    strata: dict[tuple[int, int], int] = {}
    for row in range(len(batch)):
        for place in range(batch.tape_length):
            if not batch.scored_BT[row, place]:
                continue
            logits, target = logits_BTV[row, place].tolist(), int(batch.targets_BT[row, place])
            loss = math.log(sum(math.exp(v) for v in logits)) - logits[target]
            unit = (row, int(batch.unit_BT[row, place]))
            units[unit].append((logits.index(max(logits)) == target, loss))
            strata[unit] = int(batch.stratum_BT[row, place])
    counts: defaultdict[int, Counts] = defaultdict(Counts)
    for unit, tokens in units.items():
        right = [correct for correct, _ in tokens]
        own = Counts(1, all(right), len(tokens), sum(right), sum(loss for _, loss in tokens))
        counts[strata[unit]] += own
    return dict(counts)


@st.composite
def scored(draw: st.DrawFn) -> tuple[torch.Tensor, Batch]:
    """A batch with several units an example, as in flip-flop, and logits that are often right."""
    rows, tape, vocabulary = draw(st.integers(1, 4)), draw(st.integers(1, 7)), 4
    numbers = st.lists(st.integers(-1, 2), min_size=rows * tape, max_size=rows * tape)
    unit_BT = torch.tensor(draw(numbers)).view(rows, tape)
    if (unit_BT < 0).all():
        unit_BT[0, 0] = 0
    targets_BT = torch.tensor(draw(st.lists(st.integers(0, 3), min_size=rows * tape, max_size=rows * tape)))
    seed = draw(st.integers(0, 10**6))
    logits_BTV = torch.randn(rows, tape, vocabulary, generator=torch.Generator().manual_seed(seed))
    targets_BT = targets_BT.view(rows, tape)
    logits_BTV += 1.5 * torch.nn.functional.one_hot(targets_BT, vocabulary)
    scored_BT = unit_BT >= 0
    batch = Batch(
        tokens_BT=targets_BT,
        targets_BT=targets_BT,
        trained_BT=scored_BT,
        scored_BT=scored_BT,
        unit_BT=unit_BT,
        stratum_BT=(unit_BT % 2) * scored_BT,
        valid_BT=torch.ones_like(scored_BT),
        size_BA=torch.full((rows, 1), tape),
        structure=Structure(),
        padded=False,
    )
    return logits_BTV, batch


@given(scored())
@settings(max_examples=200, deadline=None)
def test_counts_by_stratum_equal_a_slow_recount(made: tuple[torch.Tensor, Batch]) -> None:
    logits_BTV, batch = made
    ours, theirs = count(logits_BTV, batch), slow(logits_BTV, batch)
    assert ours.keys() == theirs.keys()
    for stratum, counts in ours.items():
        assert replace(counts, loss=0.0) == replace(theirs[stratum], loss=0.0)
        assert counts.loss == pytest.approx(theirs[stratum].loss, rel=1e-4, abs=1e-5)


@given(scored(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_counts_of_parts_add_up_to_the_counts_of_the_whole(made: tuple[torch.Tensor, Batch], cut: int) -> None:
    logits_BTV, batch = made
    pieces = [slice(0, cut), slice(cut, None)]
    parts = [
        count(logits_BTV[piece], batch.rows(piece.start, piece.stop or len(batch)))
        for piece in pieces
        if batch.scored_BT[piece].any()
    ]
    together, whole = merge(parts), count(logits_BTV, batch)
    assert {s: (c.units, c.exact, c.tokens, c.tokens_correct) for s, c in together.items()} == {
        s: (c.units, c.exact, c.tokens, c.tokens_correct) for s, c in whole.items()
    }


def test_logits_of_the_last_positions_are_enough_if_they_hold_all_scored_ones() -> None:
    batch = _suffix_batch()
    logits_BTV = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1))
    assert count(logits_BTV, batch) == count(logits_BTV[:, 3:], batch)


def _suffix_batch() -> Batch:
    targets_BT = torch.tensor([[0, 1, 2, 3, 1], [3, 2, 1, 0, 2]])
    scored_BT = torch.tensor([[False, False, False, True, True]] * 2)
    return Batch(
        targets_BT, targets_BT, scored_BT, scored_BT, scored_BT.long() - 1, 0 * targets_BT, targets_BT >= 0,
        torch.full((2, 1), 2), Structure(), False,
    )  # fmt: skip
