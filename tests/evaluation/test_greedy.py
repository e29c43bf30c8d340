"""Teacher-forced exact match equals the exact match of real greedy decoding from the prompt alone."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch

from algolen.evaluation.counting import count
from algolen.evaluation.greedy import decode, exact
from algolen.evaluation.sweep import evaluate
from algolen.evaluation.test_sets import TestSet
from algolen.model import Transformer
from algolen.phase import Phase
from algolen.task import Task
from algolen.training.step import Stepper
from tests import building

ROWS = 1000
STEPS = 3000


@functools.cache
def half_trained(pe: str, **addition: object) -> tuple[Transformer, Task]:
    """A model that is right about some sums of two digits and wrong about others: trained until it is."""
    sections = {
        "addition": addition,
        "model": {
            "width": 32,
            "heads": 4,
            "logit_multiplier": 2,
            "norm_position": "both",
            "activation": "geglu",
            "embedding_std": 1,
        },
        "train": {"steps": STEPS, "batch": 64, "learning_rate": 3e-3},
    }
    made = building.experiment(sections, pe=pe, train_lengths="1-2", test_lengths="2")  # type: ignore[arg-type]
    stepper, data = Stepper(made.model(0, building.CPU), made.config.train, STEPS), made.data(0, building.CPU)
    look = TestSet(made.task, "random", 2, 100, 0)
    for step in range(STEPS):
        stepper(step, data.micro_batches(step))
        if step % 25 == 0 and evaluate(stepper.model, look, building.CPU).total.exact > 15:
            break
    return stepper.model, made.task


@pytest.mark.parametrize(
    ("pe", "addition"),
    [
        ("coupling", {}),
        ("learned", {}),
        ("nope", {"reverse_operands": True}),
        ("coupling", {"padded": False}),
        ("offset", {"padded": False, "operand_lengths": "independent"}),
        ("coupling", {"reverse_answer": False, "id_direction": "most"}),
    ],
    ids=str,
)
def test_exact_match_under_teacher_forcing_equals_greedy_decoding_row_by_row(
    pe: str, addition: dict[str, object]
) -> None:
    model, task = half_trained(pe, **addition)
    source = TestSet(task, "random", 2, ROWS, 7)
    batch, positions = source.batch(0, ROWS, building.CPU), source.positions(0, ROWS, building.CPU)
    with torch.inference_mode():
        logits_BTV = model(batch, model.draw(batch, positions, Phase.TEST))
    forced_B = exact(torch.where(batch.scored_BT, logits_BTV.argmax(-1), 0), batch)
    decoded_B = exact(decode(model, task, batch, positions), batch)
    assert torch.equal(forced_B, decoded_B)
    assert 20 < int(forced_B.sum()) < ROWS - 20
    assert sum(counts.exact for counts in count(logits_BTV, batch).values()) == int(decoded_B.sum())


def test_decoding_never_reads_the_answer() -> None:
    model, task = half_trained("coupling")
    source = TestSet(task, "random", 2, 200, 7)
    batch, positions = source.batch(0, 200, building.CPU), source.positions(0, 200, building.CPU)
    after_prompt_BT = batch.scored_BT.cumsum(dim=1) > 1
    garbled = replace(
        batch,
        tokens_BT=torch.where(after_prompt_BT, 9, batch.tokens_BT),
        targets_BT=torch.full_like(batch.targets_BT, 9),
        structure=replace(batch.structure, coupled_BTA=torch.full_like(batch.structure.coupled_BTA, 3)),  # type: ignore[arg-type]
    )
    assert torch.equal(decode(model, task, batch, positions), decode(model, task, garbled, positions))


def test_what_is_marked_as_not_greedy_is_what_would_differ() -> None:
    plain = building.task(reverse_answer=False, padded=False)
    assert building.expression("coupling").not_greedy(plain) is not None
    assert building.expression("learned").not_greedy(plain) is None
    assert building.expression("coupling").not_greedy(building.task()) is None
