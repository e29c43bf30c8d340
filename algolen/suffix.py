"""Tapes of the form `[EOS] prompt = answer`, for tasks whose prompt has one symbol for each unit of nominal length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from algolen.batch import Batch
from algolen.random import Random
from algolen.task import PADDING, Task

SYMBOLS = ("[PAD]", "[EOS]", "=")
"""The first symbols of such a task's vocabulary; those that prompts and answers are made of come after them."""
EOS, EQUALS, FIRST = 1, 2, 3


def suffix_batch(
    task: Task, lengths_B: Tensor, prompt_BL: Tensor, answer_BA: Tensor, answered_B1: Tensor, stratum_B: Tensor
) -> Batch:
    """The batch of given prompts and answers (tokens) whose answers and last `[EOS]` are trained and scored.

    Each example uses the first `lengths_B` symbols of its prompt and the first `answered_B1` of its answer; what stands
    after them is not looked at.
    """
    longest = prompt_BL.shape[1]
    length_B1 = lengths_B.to(prompt_BL.device)[:, None]
    eos_B1, equals_B1, padding_B1 = (torch.full_like(length_B1, token) for token in (EOS, EQUALS, PADDING))
    # What the tape is picked from, column by column.
    column_BC = torch.cat([eos_B1, prompt_BL, equals_B1, answer_BA, eos_B1, padding_B1], dim=1)
    # One token more than the tape: what a position reads is tape[:-1], what it predicts is tape[1:].
    index_T = torch.arange(task.tape_length(longest) + 1, device=prompt_BL.device)
    stop_B1 = length_B1 + answered_B1 + 2
    after_prompt_BT = (index_T > length_B1) * (longest - length_B1)
    after_answer_BT = (index_T >= stop_B1) * (answer_BA.shape[1] - answered_B1)
    picked_BT = (index_T + after_prompt_BT + after_answer_BT).clamp(max=column_BC.shape[1] - 1)
    tape_BT = column_BC.gather(1, picked_BT)

    shortest = int(lengths_B.min())
    return fed_back(
        task,
        tape_BT,
        answered_from_B1=length_B1 + 1,
        stop_B1=stop_B1,
        size_B1=length_B1,
        stratum_B=stratum_B,
        padded=shortest != longest,
        predicted_from=shortest + 1,
    )


def fed_back(
    task: Task,
    tape_BT: Tensor,
    answered_from_B1: Tensor,
    stop_B1: Tensor,
    size_B1: Tensor,
    stratum_B: Tensor,
    padded: bool,
    predicted_from: int,
) -> Batch:
    """The batch of tapes, each one token longer than what is read: all from place `answered_from`, where the first
    token of the answer is predicted, up to `stop` is trained and scored, as one unit."""
    index_T = torch.arange(tape_BT.shape[1] - 1, device=tape_BT.device)
    valid_BT = index_T < stop_B1
    scored_BT = valid_BT & (index_T >= answered_from_B1)
    tokens_BT = torch.where(valid_BT, tape_BT[:, :-1], PADDING)
    return Batch(
        tokens_BT=tokens_BT,
        targets_BT=tape_BT[:, 1:].contiguous(),
        trained_BT=scored_BT,
        scored_BT=scored_BT,
        unit_BT=scored_BT.long() - 1,
        stratum_BT=stratum_B[:, None] * scored_BT,
        valid_BT=valid_BT,
        size_BA=size_B1,
        structure=task.structure(tokens_BT, size_B1),
        padded=padded,
        predicted_from=predicted_from,
    )


def segments(tokens_BT: Tensor) -> Tensor:
    """(B, T) how many `=` stand before each token."""
    equals_BT = (tokens_BT == EQUALS).long()
    return equals_BT.cumsum(dim=1) - equals_BT


def ids_in_order(tokens_BT: Tensor, size_BA: Tensor) -> Tensor:
    """(B, T) coupled ids of a prompt and an answer of the same length and order: 2 for the first symbol of each, 1 for
    `=`, so that the token with id n predicts one with id n + 1."""
    index_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
    return within_table(torch.where(index_T <= size_BA, index_T + 1, index_T - size_BA), tokens_BT, size_BA)


def within_table(id_BT: Tensor, tokens_BT: Tensor, size_BA: Tensor) -> Tensor:
    """Ids from 1 to one more than the length, also where a model that is wrong goes on for longer than any answer; 0
    for `[EOS]` and padding."""
    return torch.minimum(id_BT.clamp(min=1), size_BA + 1) * (tokens_BT > EOS)


def one_of(cases: Sequence[Tensor], random: Random) -> tuple[Tensor, Tensor]:
    """For each example one of several (B, L) tensors, drawn uniformly, and the index of the one drawn."""
    kind_B = random.integers(0, len(cases), 1)[:, 0]
    return torch.stack(list(cases))[kind_B, torch.arange(len(random), device=random.device)], kind_B
