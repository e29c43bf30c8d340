"""From predictions to integer counts by stratum."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from algolen.batch import Batch


@dataclass(frozen=True, slots=True)
class Counts:
    """How many units (whole answers, reads) were predicted exactly, and how many of their tokens; loss in nats."""

    units: int = 0
    exact: int = 0
    tokens: int = 0
    tokens_correct: int = 0
    loss: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.units + other.units,
            self.exact + other.exact,
            self.tokens + other.tokens,
            self.tokens_correct + other.tokens_correct,
            self.loss + other.loss,
        )


def count(logits_BTV: Tensor, batch: Batch) -> dict[int, Counts]:
    """Counts by stratum for the logits of a batch's last positions, all scored ones among them."""
    rows, _ = batch.scored_BT.nonzero(as_tuple=True)
    targets_N = batch.targets_BT[batch.scored_BT]
    logits_NV = logits_BTV[batch.scored_BT[:, -logits_BTV.shape[1] :]].float()
    correct_N = logits_NV.argmax(dim=-1) == targets_N
    loss_N = F.cross_entropy(logits_NV, targets_N, reduction="none").double()
    return count_correct(correct_N, loss_N, rows, batch)


def count_correct(correct_N: Tensor, loss_N: Tensor, rows_N: Tensor, batch: Batch) -> dict[int, Counts]:
    """Counts by stratum, from whether each scored token (in order, `rows_N` their examples) was predicted."""
    units_N = rows_N * (batch.unit_BT.amax() + 1) + batch.unit_BT[batch.scored_BT]
    strata_N = batch.stratum_BT[batch.scored_BT]
    unit_U, of_unit_N = torch.unique(units_N, return_inverse=True)
    wrong_U = torch.zeros(len(unit_U), dtype=torch.int64, device=units_N.device)
    wrong_U = wrong_U.index_add(0, of_unit_N, (~correct_N).long())
    stratum_U = torch.zeros_like(wrong_U).index_copy(0, of_unit_N, strata_N)
    names, place_N = torch.unique(strata_N, return_inverse=True)
    place_U = torch.searchsorted(names, stratum_U)
    size = len(names)
    columns = zip(
        names.tolist(),
        place_U.bincount(minlength=size).tolist(),
        place_U[wrong_U == 0].bincount(minlength=size).tolist(),
        place_N.bincount(minlength=size).tolist(),
        place_N[correct_N].bincount(minlength=size).tolist(),
        place_N.bincount(weights=loss_N, minlength=size).tolist(),
        strict=True,
    )
    return {stratum: Counts(*numbers) for stratum, *numbers in columns}


def merge(parts: list[dict[int, Counts]]) -> dict[int, Counts]:
    """The counts of several batches together."""
    total: defaultdict[int, Counts] = defaultdict(Counts)
    for part in parts:
        for stratum, counts in part.items():
            total[stratum] += counts
    return dict(total)
