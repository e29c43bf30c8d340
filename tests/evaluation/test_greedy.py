"""Teacher-forced exact match equals the exact match of real greedy decoding from the prompt alone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from algolen.encodings.expression import Expression
from algolen.evaluation.counting import count
from algolen.evaluation.greedy import decode, exact
from algolen.evaluation.sweep import evaluate
from algolen.evaluation.test_sets import TestSet
from algolen.model import Transformer
from algolen.phase import Phase
from algolen.task import PADDING, Layout, Task
from algolen.training.step import Stepper
from tests import building
from tests.tasks.test_every_task import VARIANTS

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
        pytest.param("nope", {"reverse_operands": True}, marks=pytest.mark.slow),
        pytest.param("coupling", {"padded": False}, marks=pytest.mark.slow),
        pytest.param("offset", {"padded": False, "operand_lengths": "independent"}, marks=pytest.mark.slow),
        pytest.param("coupling", {"reverse_answer": False, "id_direction": "most"}, marks=pytest.mark.slow),
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


COMBINED = ("coupling+fire", "abacus+fire", "coupling+randomized", "coupling+randomized+rope", "randomized+learned")


def decoded_cases() -> Iterator[Any]:
    """Every encoding on every task whose answer is fed back, over its options; `make test` tries each encoding on
    addition, and each task with coupled ids and without."""
    for variant, pe in itertools.product(VARIANTS, (*building.REGISTRY.encodings, *COMBINED)):
        (task,) = variant.values
        served = all(member.cls.needs <= task.structures for member in building.expression(pe).members)
        if task.layout is Layout.SUFFIX and served:
            sampled = variant.id in ("addition:", "addition:padded=False")
            sampled |= variant.id.endswith(":") and pe in ("coupling", "learned")
            yield pytest.param(pe, task, id=f"{pe}-{variant.id}", marks=() if sampled else pytest.mark.slow)


@pytest.mark.parametrize(("pe", "task"), [*decoded_cases()])
def test_teacher_forcing_with_what_was_decoded_predicts_it_again_unless_marked(pe: str, task: Task) -> None:
    """Untrained models will do: to a model, what it says is the right answer. The first ones that say the same to every
    prompt, as some do, prove nothing."""
    expression = building.expression(pe)
    marked = expression.not_greedy(task) is not None
    for seed in range(20):
        decoded_BT, forced_BT = decoded_and_forced(expression, task, seed)
        same = torch.equal(decoded_BT, forced_BT)
        assert same or marked
        if len(decoded_BT.unique(dim=0)) > 1 and same != marked:
            break
    else:
        pytest.fail("no model shows it")


def decoded_and_forced(pe: Expression, task: Task, seed: int) -> tuple[Tensor, Tensor]:
    """What an untrained model of strong opinions decodes, and what it predicts when all of that is on the tape."""
    rows, vocabulary = 48, len(task.vocabulary)
    model = building.model(pe, seed, vocabulary, heads=4, embedding_std=1.0, logit_multiplier=4.0)
    source = TestSet(task, "random", 5, rows, 7)
    batch, positions = source.batch(0, rows, building.CPU), source.positions(0, rows, building.CPU)
    decoded_BT = decode(model, task, batch, positions)
    fed_back_BT = batch.valid_BT[:, 1:] & batch.scored_BT[:, :-1]
    tokens_BT = batch.tokens_BT.clone()
    tokens_BT[:, 1:] = torch.where(fed_back_BT, decoded_BT[:, :-1], tokens_BT[:, 1:])
    fed = replace(batch, tokens_BT=tokens_BT, structure=task.structure(tokens_BT, batch.size_BA))
    with torch.inference_mode():
        forced_BT = model(fed, model.draw(fed, positions, Phase.TEST)).argmax(-1)
    return decoded_BT, torch.where(batch.scored_BT, forced_BT, PADDING)


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
