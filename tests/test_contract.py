"""A task that breaks its contract is told which field, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from algolen.batch import Batch, Structure
from algolen.contract import check_samples
from algolen.errors import UserError
from algolen.tasks.addition import Addition
from tests import building

BREAK: dict[str, tuple[Callable[[Batch], Batch], str]] = {
    "shape": (lambda b: replace(b, targets_BT=b.targets_BT[:, :-1]), "targets_BT has shape"),
    "type": (lambda b: replace(b, unit_BT=b.scored_BT), "unit_BT is of torch.bool"),
    "vocabulary": (lambda b: replace(b, tokens_BT=b.tokens_BT + 90), "tokens_BT goes beyond the vocabulary"),
    "nothing scored": (lambda b: replace(b, scored_BT=b.scored_BT & False), "no position in scored_BT"),
    "padding": (lambda b: replace(b, valid_BT=b.valid_BT & False), "positions on padding"),
    "units": (lambda b: replace(b, unit_BT=b.unit_BT * 0), "unit_BT has to be"),
    "predicted from": (lambda b: replace(b, predicted_from=b.tape_length), "predicted_from="),
    "structure": (lambda b: replace(b, structure=Structure()), "structures names 'coupled'"),
    "ids": (
        lambda b: replace(b, structure=replace(b.structure, coupled_BTA=torch.full((2, b.tape_length, 1), 99))),
        "largest_coupled_id says 5, an id is 99",
    ),
}


@pytest.mark.parametrize("name", BREAK)
def test_a_batch_that_breaks_the_contract_is_refused_by_the_name_of_its_field(name: str) -> None:
    change, message = BREAK[name]

    @dataclass(frozen=True)
    class Broken(Addition):
        def sample(self, *arguments: Any) -> Batch:
            return change(super().sample(*arguments))

    with pytest.raises(UserError, match=message):
        check_samples(Broken(), 3)


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("tape_length", 5, "tape_length says 5"),
        ("chance", 5.0, "chance is 5.0"),
        ("input_blind", -1.0, "input_blind is"),
    ],
)
def test_what_a_task_says_of_its_lengths_and_baselines_is_checked(method: str, value: float, message: str) -> None:
    sample = {"sample": lambda self, *arguments: Addition().sample(*arguments)}
    broken = type("Broken", (Addition,), {method: lambda self, length: value, **sample})
    with pytest.raises(UserError, match=message):
        check_samples(broken(), 3)


@pytest.mark.parametrize("name", sorted(building.REGISTRY.tasks))
def test_every_built_in_task_keeps_its_contract(name: str) -> None:
    check_samples(building.task(name), 8)


def test_a_structure_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    broken = type("Broken", (Addition,), {"structures": property(lambda self: frozenset({"digits"}))})
    with pytest.raises(UserError, match="structures names 'digits'; there is: coupled, digit, segment"):
        check_samples(broken(), 3)
