"""What the tests of tasks of the form `[EOS] prompt = answer` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from algolen.batch import Batch
from algolen.random import Random
from algolen.task import Task


def draw(task: Task, lengths: int | Sequence[int], count: int = 64, test_set: str = "random", seed: int = 0) -> Batch:
    """Examples of one length, `count` of them, or of given lengths."""
    lengths_B = torch.full((count,), lengths) if isinstance(lengths, int) else torch.tensor(lengths)
    return task.sample_test(test_set, lengths_B, Random.of(seed, "test", examples_B=torch.arange(len(lengths_B))))


def strings(task: Task, batch: Batch) -> list[tuple[list[str], list[str]]]:
    """Prompt and answer of each example; the answer is what the targets spell."""
    found = []
    for tokens_T, targets_T, scored_T, valid_T in zip(
        batch.tokens_BT, batch.targets_BT, batch.scored_BT, batch.valid_BT, strict=True
    ):
        begin, *prompt = task.decode(tokens_T[valid_T].tolist())
        *answer, end = task.decode(targets_T[scored_T].tolist())
        assert (begin, end) == ("[EOS]", "[EOS]")
        found.append((prompt[: prompt.index("=")], answer))
    return found


def labels(task: Task, batch: Batch, test_set: str = "random") -> list[str]:
    """The stratum of each example."""
    strata_B = torch.where(batch.scored_BT, batch.stratum_BT, -1).amax(dim=1)
    return [task.stratum_name(test_set, stratum) for stratum in strata_B.tolist()]


def structure(task: Task, tape: Sequence[str], length: int) -> dict[str, list[Any]]:
    """Coupled ids, digit marks and segments of a tape that is given in symbols."""
    read = task.structure(torch.tensor([task.encode(tape)]), torch.tensor([[length]]))
    assert read.coupled_BTA is not None
    assert read.digit_BT is not None
    assert read.segment_BT is not None
    return {
        "ids": read.coupled_BTA[0, :, 0].tolist(),
        "digits": read.digit_BT[0].long().tolist(),
        "segments": read.segment_BT[0].tolist(),
    }


def ids_of_junk(task: Task, batch: Batch, seed: int) -> tuple[int, int]:
    """The smallest and largest id of tapes on which, after each prompt, stands anything a wrong model may write."""
    rows_B = torch.arange(len(batch))
    junk_BT = Random.of(seed, "junk", examples_B=rows_B).integers(0, len(task.vocabulary), batch.tape_length)
    prompt_BT = batch.valid_BT & (batch.scored_BT.cumsum(dim=1) <= 1)
    coupled_BTA = task.structure(torch.where(prompt_BT, batch.tokens_BT, junk_BT), batch.size_BA).coupled_BTA
    assert coupled_BTA is not None
    return int(coupled_BTA.min()), int(coupled_BTA.max())


def p_value(observed: Sequence[int], probabilities: Sequence[float]) -> float:
    """Chi-square: how likely counts at least as far from these probabilities are."""
    total = sum(observed)
    statistic = sum((seen - total * p) ** 2 / (total * p) for seen, p in zip(observed, probabilities, strict=True))
    halves = torch.tensor([len(observed) - 1, statistic], dtype=torch.float64) / 2
    return float(torch.special.gammaincc(halves[0], halves[1]))
