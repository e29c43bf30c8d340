"""Greedy decoding from the prompt alone: slow, and the thing a sweep's exact match is about."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from algolen.batch import Batch
from algolen.model import Transformer
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import PADDING, Layout, Task


@torch.inference_mode()
def decode(model: Transformer, task: Task, batch: Batch, positions: Random) -> Tensor:
    """What the model predicts at every scored position of a batch when it is fed its own predictions; (B, T) int64.

    The tape is built up from the prompts: answers are never read, and structure is read off what has been decoded so
    far. Positions that are not scored hold padding.
    """
    if task.layout is not Layout.SUFFIX:
        return torch.where(batch.scored_BT, model(batch, model.draw(batch, positions, Phase.TEST)).argmax(-1), PADDING)
    rows_B = torch.arange(len(batch), device=batch.tokens_BT.device)
    first_B = batch.scored_BT.int().argmax(dim=1)
    place_T = torch.arange(batch.tape_length, device=rows_B.device)
    tokens_BT = torch.where(place_T <= first_B[:, None], batch.tokens_BT, PADDING)
    predicted_BT = torch.full_like(tokens_BT, PADDING)
    for answered in range(int(batch.scored_BT.sum(dim=1).max())):
        last_B = (first_B + answered).clamp(max=batch.tape_length - 1)
        # On the whole tape, as the sweep has it: ids that are drawn may depend on how long it is.
        prefix = _prefix(task, batch, tokens_BT, place_T <= last_B[:, None])
        logits_BTV = model(prefix, model.draw(prefix, positions, Phase.TEST))
        next_B = logits_BTV[rows_B, last_B].argmax(dim=-1)
        scored_B = batch.scored_BT[rows_B, last_B] & (first_B + answered == last_B)
        predicted_BT[rows_B, last_B] = torch.where(scored_B, next_B, predicted_BT[rows_B, last_B])
        into_B = (last_B + 1).clamp(max=batch.tape_length - 1)
        fits_B = scored_B & (last_B + 1 < batch.tape_length)
        tokens_BT[rows_B, into_B] = torch.where(fits_B, next_B, tokens_BT[rows_B, into_B])
    return predicted_BT


def _prefix(task: Task, batch: Batch, tokens_BT: Tensor, valid_BT: Tensor) -> Batch:
    """The batch as it looks when only these tokens are known."""
    nothing_BT = torch.zeros_like(valid_BT)
    return replace(
        batch,
        tokens_BT=torch.where(valid_BT, tokens_BT, PADDING),
        targets_BT=torch.full_like(tokens_BT, PADDING),
        trained_BT=nothing_BT,
        scored_BT=nothing_BT,
        unit_BT=torch.full_like(tokens_BT, -1),
        stratum_BT=torch.zeros_like(tokens_BT),
        valid_BT=valid_BT,
        structure=task.structure(torch.where(valid_BT, tokens_BT, PADDING), batch.size_BA),
        padded=True,
    )


def exact(predicted_BT: Tensor, batch: Batch) -> Tensor:
    """(B,) bool: whether all scored positions of an example were predicted."""
    return ((predicted_BT == batch.targets_BT) | ~batch.scored_BT).all(dim=1)
